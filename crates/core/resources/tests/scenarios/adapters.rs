//! Adapters, step by step: create, reuse, recreate, report.

use muster_types::condition::{ConditionStatus, find_condition};
use serde_json::{Value as Json, json};

use crate::stage::Stage;

fn command() -> Json {
    json!({"spec": {"container": {"command": ["true"]}}})
}

#[test]
fn a_pulse_makes_a_task_and_its_end_is_reported() {
    let mut stage = Stage::new(&["dns"]).with_task_adapter("dns");
    stage.play(
        "create                -> Available=False@1 Ready=False
         plan                  -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False",
    );
    assert_eq!(
        stage.says("dns"),
        "Applied=True(Started) Available=Unknown(InProgress) Health=True(Evaluated)"
    );
    stage.play(
        "task x-dns-1 Running   ->
         wait 1m                ->
         plan                   -> Available=False@1 Ready=False
         task x-dns-1 Succeeded ->
         plan                   -> Available=True@1 Ready=True",
    );
    assert_eq!(stage.says("dns"), "Applied=True(Done) Available=True(Succeeded) Health=True(Evaluated)");
    let task = &stage.tasks["x-dns-1"];
    assert_eq!(task.metadata.labels["resources.muster.dev/adapter"], "dns");
    assert_eq!(task.metadata.labels["resources.muster.dev/generation"], "1");
    assert_eq!(task.metadata.owner_references[0].uid, "u");
    assert_eq!(task.spec.data.as_ref().unwrap()["resource"]["spec"], json!({"size": 1}));
    assert!(task.spec.ttl.succeeded.is_some_and(muster_types::Duration::is_zero), "it is kept");
    assert_eq!(task.spec.subject, None, "adapters of one resource do not wait for each other");
}

#[test]
fn a_failed_task_is_reported_and_made_anew_after_a_rest() {
    let mut stage = Stage::new(&["dns"]).with_task_adapter("dns");
    stage.play(
        "create              -> Available=False@1 Ready=False
         plan                -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False
         task x-dns-1 Failed ->
         plan                -> Available=False@1 Ready=False",
    );
    assert_eq!(stage.says("dns"), "Applied=True(Done) Available=False(TaskFailed) Health=True(Evaluated)");
    stage.play(
        "wait 10s               ->
         plan                   -> Available=False@1 Ready=False
         wait 1s                ->
         plan                   -> pulse 2 Stale, make x-dns-2, Available=False@1 Ready=False
         task x-dns-2 Failed    ->
         plan                   -> Available=False@1 Ready=False
         wait 11s               ->
         plan                   -> Available=False@1 Ready=False
         wait 10s               ->
         plan                   -> pulse 3 Stale, make x-dns-3, Available=False@1 Ready=False
         task x-dns-3 Succeeded ->
         plan                   -> Available=True@1 Ready=True",
    );
}

#[test]
fn a_result_is_reused_until_its_ttl_is_over() {
    let mut stage =
        Stage::new(&["dns"]).with_adapter("dns", json!({"task": command(), "lifecycle": {"ttl": "40m"}}));
    stage.play(
        "create                 -> Available=False@1 Ready=False
         plan                   -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False
         task x-dns-1 Succeeded ->
         plan                   -> Available=True@1 Ready=True
         wait 31m               ->
         plan                   -> pulse 2 Stale, Available=True@1 Ready=True",
    );
    let renewed = stage.resource.status.standing("dns").unwrap().last_report_time;
    assert_eq!(renewed, Some(stage.now.to_timestamp()), "the result is reported again");
    stage.play(
        "wait 31m               ->
         plan                   -> pulse 3 Stale, make x-dns-2, Available=True@1 Ready=True
         wait 31m               ->
         plan                   -> Available=True@1 Ready=True
         task x-dns-2 Failed    ->
         plan                   -> Available=False@1 Ready=False",
    );
}

#[test]
fn what_is_not_to_be_recreated_is_reported_again() {
    let lifecycle = json!({"recreateOn": ["Expired"]});
    Stage::new(&["dns"]).with_adapter("dns", json!({"task": command(), "lifecycle": lifecycle})).play(
        "create              -> Available=False@1 Ready=False
         plan                -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False
         task x-dns-1 Failed ->
         plan                -> Available=False@1 Ready=False
         wait 11s            ->
         plan                -> pulse 2 Stale, Available=False@1 Ready=False
         wait 31m            ->
         plan                -> pulse 3 Stale, make x-dns-2, Available=False@1 Ready=False",
    );
}

#[test]
fn retrying_until_success_reports_unknown_meanwhile() {
    let lifecycle = json!({"retry": "untilSuccess"});
    let mut stage =
        Stage::new(&["dns"]).with_adapter("dns", json!({"task": command(), "lifecycle": lifecycle}));
    stage.play(
        "create              -> Available=False@1 Ready=False
         plan                -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False
         task x-dns-1 Failed ->
         plan                -> Available=False@1 Ready=False",
    );
    assert_eq!(
        stage.says("dns"),
        "Applied=True(Retrying) Available=Unknown(Retrying) Health=True(Evaluated)"
    );
    stage.play(
        "wait 11s               ->
         plan                   -> pulse 2 Stale, make x-dns-2, Available=False@1 Ready=False
         task x-dns-2 Succeeded ->
         plan                   -> Available=True@1 Ready=True",
    );
}

#[test]
fn unmet_preconditions_are_reported_and_met_ones_are_noticed_at_once() {
    let mut stage = Stage::new(&["dns", "validation"]).with_task_adapter("validation").with_adapter(
        "dns",
        json!({
            "preconditions": [{"expression": "'validation' in done", "message": "validation comes first"}],
            "task": command(),
        }),
    );
    stage.play(
        "create -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, make x-validation-1, Available=False@1 Ready=False",
    );
    assert_eq!(
        stage.says("dns"),
        "Applied=False(PreconditionsNotMet) Available=False(PreconditionsNotMet) Health=True(Evaluated)"
    );
    stage.play(
        "task x-validation-1 Succeeded ->
         plan                          -> pulse 2 Progress, make x-dns-1, Available=False@1 Ready=False
         task x-dns-1 Succeeded        ->
         plan                          -> Available=True@1 Ready=True",
    );
}

#[test]
fn an_adapter_that_cannot_evaluate_says_so_and_harms_nobody_else() {
    let mut stage = Stage::new(&["broken", "dns"]).with_task_adapter("dns").with_adapter(
        "broken",
        json!({"params": [{"name": "zone", "value": "resource.spec.zone"}], "task": command()}),
    );
    stage.play(
        "create -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False",
    );
    assert_eq!(
        stage.says("broken"),
        "Applied=False(NotEvaluated) Available=False(NotEvaluated) Health=False(EvaluationFailed)"
    );
    let message = &stage.resource.status.standing("broken").unwrap().conditions[2].message;
    assert!(message.contains("param zone has no value: line 1, column 14"), "{message}");
}

#[test]
fn params_fill_the_template_and_the_report_is_said_by_rules() {
    let mut stage = Stage::new(&["dns"]).with_adapter(
        "dns",
        json!({
            "params": [
                {"name": "region", "value": "env.REGION"},
                {"name": "zone", "value": "params.region + '.' + resource.metadata.name"},
                {"name": "why", "value": "event.reason"},
            ],
            "task": {"spec": {"container": {
                "command": ["sh", "-c", "echo {{ params.zone }} {{ resource.spec.size + 1 }} {{ params.why }}"],
                "env": [{"name": "SIZE", "value": "{{ resource.spec.size }}"}],
            }, "data": {"size": "{{ resource.spec.size }}"}}},
            "report": [
                {"type": "Available", "status": "task.status.state == 'Succeeded' && params.zone != ''", "reason": "'Zone'", "message": "params.zone"},
                {"type": "Large", "status": "resource.spec.size > 10"},
            ],
            "reportData": "{'task': task.metadata.name}",
        }),
    );
    stage.play(
        "create                 -> Available=False@1 Ready=False
         plan                   -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False",
    );
    let container = stage.tasks["x-dns-1"].spec.container.clone().unwrap();
    assert_eq!(container.command[2], "echo north.x 2 Created");
    assert_eq!(container.env[0].value, "1", "a variable is a text");
    assert_eq!(
        stage.tasks["x-dns-1"].spec.data,
        Some(json!({"size": 1})),
        "a document takes values as they are"
    );
    let started = "Applied=True(Started) Available=Unknown(InProgress) Health=True(Evaluated)";
    assert_eq!(stage.says("dns"), started, "rules look at what ended");
    stage.play(
        "task x-dns-1 Succeeded ->
         plan                   -> Available=True@1 Ready=True",
    );
    assert_eq!(
        stage.says("dns"),
        "Applied=True(Done) Available=True(Zone) Health=True(Evaluated) Large=False(ByRule)"
    );
    assert_eq!(stage.resource.status.standing("dns").unwrap().data, Some(json!({"task": "x-dns-1"})));
}

#[test]
fn a_new_generation_waits_for_the_task_of_the_old_one() {
    let mut stage = Stage::new(&["dns"]).with_task_adapter("dns");
    stage.play(
        "create                 -> Available=False@1 Ready=False
         plan                   -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False
         edit                   -> Available=False@1 Ready=False
         plan                   -> pulse 2 Changed, Available=False@1 Ready=False
         wait 1m                ->
         plan                   -> Available=False@1 Ready=False
         task x-dns-1 Succeeded ->
         plan                   -> make x-dns-2, Available=True@1 Ready=False
         task x-dns-2 Succeeded ->
         plan                   -> Available=True@2 Ready=True",
    );
}

#[test]
fn a_task_that_is_gone_has_failed() {
    let mut stage = Stage::new(&["dns"]).with_task_adapter("dns");
    stage.play(
        "create -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False",
    );
    stage.tasks.clear();
    stage.play("plan -> Available=False@1 Ready=False");
    assert_eq!(stage.says("dns"), "Applied=True(Done) Available=False(TaskDeleted) Health=True(Evaluated)");
}

#[test]
fn a_name_that_is_taken_is_passed_over_and_old_tasks_are_let_go() {
    let mut stage = Stage::new(&["dns"]).with_task_adapter("dns");
    stage.tasks.insert("x-dns-1".to_owned(), muster_types::Task::default());
    stage.play(
        "create                 -> Available=False@1 Ready=False
         plan                   -> pulse 1 Created, make x-dns-2, Available=False@1 Ready=False
         task x-dns-2 Succeeded ->
         edit                   -> Available=False@1 Ready=False
         plan                   -> pulse 2 Changed, make x-dns-3, Available=True@1 Ready=False
         task x-dns-3 Succeeded ->
         edit                   -> Available=True@1 Ready=False
         plan                   -> pulse 3 Changed, make x-dns-4, forget x-dns-1, Available=True@2 Ready=False",
    );
}

#[test]
fn a_suspended_adapter_does_nothing() {
    Stage::new(&["dns"]).with_adapter("dns", json!({"task": command(), "suspend": true})).play(
        "create -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, Available=False@1 Ready=False",
    );
}

#[test]
fn a_call_is_made_after_the_commit_and_its_answer_judged() {
    let http = json!({"url": "http://dns/{{ resource.metadata.name }}", "failed": "response.status == 418"});
    let mut stage = Stage::new(&["dns"]).with_adapter("dns", json!({"http": http}));
    stage.play(
        "create         -> Available=False@1 Ready=False
         plan           -> pulse 1 Created, call dns 1, Available=False@1 Ready=False
         plan           -> Available=False@1 Ready=False
         answer dns 202 ->
         plan           -> Available=False@1 Ready=False
         wait 5s        ->
         plan           -> Available=False@1 Ready=False
         wait 6s        ->
         plan           -> pulse 2 Stale, call dns 1, Available=False@1 Ready=False
         answer dns 418 ->
         plan           -> Available=False@1 Ready=False",
    );
    assert_eq!(stage.says("dns"), "Applied=True(Done) Available=False(CallFailed) Health=True(Evaluated)");
    stage.play(
        "wait 11s       ->
         plan           -> pulse 3 Stale, call dns 2, Available=False@1 Ready=False
         answer dns 200 ->
         plan           -> Available=True@1 Ready=True",
    );
}

#[test]
fn a_call_that_may_have_been_lost_is_made_again_after_a_restart() {
    Stage::new(&["dns"]).with_adapter("dns", json!({"http": {"url": "http://dns/"}})).play(
        "create          -> Available=False@1 Ready=False
         plan            -> pulse 1 Created, call dns 1, Available=False@1 Ready=False
         restart         ->
         plan            -> call dns 1, Available=False@1 Ready=False
         answer dns none ->
         plan            -> Available=False@1 Ready=False",
    );
}

#[test]
fn a_manifest_is_in_progress_while_the_cluster_is_behind() {
    let manifest = json!({"template": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ resource.metadata.name }}"},
    }});
    let mut stage = Stage::new(&["dns"]).with_adapter("dns", json!({"manifest": manifest}));
    let behind = r#"{"metadata":{"generation":2},"status":{"observedGeneration":1}}"#;
    let there = r#"{"metadata":{"generation":2},"status":{"observedGeneration":2}}"#;
    stage.play(&format!(
        "create              -> Available=False@1 Ready=False
         plan                -> pulse 1 Created, call dns 1, Available=False@1 Ready=False
         answer dns {behind} ->
         plan                -> Available=False@1 Ready=False
         wait 11s            ->
         plan                -> pulse 2 Stale, call dns 1, Available=False@1 Ready=False
         answer dns {there}  ->
         plan                -> Available=True@1 Ready=True
         delete              -> Available=True@1 Ready=False
         plan                -> pulse 3 Deleted, call dns 2, Available=True@1 Ready=False
         answer dns null     ->
         plan                -> Available=True@1 Ready=False THEN release"
    ));
}

#[test]
fn expressions_that_cost_too_much_are_stopped_and_said() {
    let nested = (1..6).map(|depth| {
        let before = depth - 1;
        json!({"name": format!("p{depth}"), "value": format!("params.p0.map(x, params.p{before})")})
    });
    let first = json!({"name": "p0", "value": format!("{:?}", (0..100).collect::<Vec<_>>())});
    let params: Vec<_> = std::iter::once(first).chain(nested).collect();
    let mut stage = Stage::new(&["dns"]).with_adapter("dns", json!({"params": params, "task": command()}));
    stage.play(
        "create -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, Available=False@1 Ready=False Evaluated=False",
    );
    let conditions = stage.resource.status.conditions.clone();
    let evaluated = find_condition(&conditions, "Evaluated").expect("it is said");
    assert_eq!((evaluated.status, evaluated.reason.as_str()), (ConditionStatus::False, "TooCostly"));
    assert!(stage.says("dns").contains("Health=False(EvaluationFailed)"), "{}", stage.says("dns"));
    let why = &stage.resource.status.standing("dns").unwrap().conditions[2].message;
    assert!(why.contains("param p2 has no value") && why.contains("takes more than"), "{why}");
    // Another adapter, and it is looked at again.
    let mut stage = Stage { adapters: vec![], ..stage }.with_task_adapter("dns");
    stage.play(
        "edit -> Available=False@1 Ready=False Evaluated=False
         plan -> pulse 2 Changed, make x-dns-1, Available=False@1 Ready=False",
    );
    assert_eq!(find_condition(&stage.resource.status.conditions, "Evaluated"), None);
}
