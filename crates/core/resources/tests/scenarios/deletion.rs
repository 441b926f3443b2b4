//! Deletion, step by step.

use serde_json::json;

use crate::stage::Stage;

#[test]
fn a_resource_goes_when_its_adapters_have_cleaned_up() {
    let run = json!({"spec": {"container": {"command": ["true"]}}});
    Stage::new(&["dns"]).with_adapter("dns", json!({"task": run, "delete": {"task": run}})).play(
        "create                 -> Available=False@1 Ready=False
         plan                   -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False
         task x-dns-1 Succeeded ->
         plan                   -> Available=True@1 Ready=True
         delete                 -> Available=True@1 Ready=False
         plan                   -> pulse 2 Deleted, make x-dns-2, Available=True@1 Ready=False
         task x-dns-2 Failed    ->
         plan                   -> Available=True@1 Ready=False
         wait 11s               ->
         plan                   -> pulse 3 Stale, make x-dns-3, Available=True@1 Ready=False
         task x-dns-3 Succeeded ->
         plan                   -> Available=True@1 Ready=False THEN release",
    );
}

#[test]
fn an_adapter_with_nothing_to_clean_up_agrees_at_once() {
    Stage::new(&["dns"]).with_task_adapter("dns").play(
        "create -> Available=False@1 Ready=False
         delete -> Available=False@1 Ready=False
         plan   -> pulse 1 Created, Available=False@1 Ready=False THEN release",
    );
}

#[test]
fn work_that_goes_on_is_canceled_first() {
    Stage::new(&["dns"]).with_task_adapter("dns").play(
        "create                -> Available=False@1 Ready=False
         plan                  -> pulse 1 Created, make x-dns-1, Available=False@1 Ready=False
         delete                -> Available=False@1 Ready=False
         plan                  -> pulse 2 Deleted, cancel x-dns-1, Available=False@1 Ready=False
         task x-dns-1 Canceled ->
         plan                  -> Available=False@1 Ready=False THEN release",
    );
}

#[test]
fn what_belongs_to_it_goes_first() {
    let mut stage = Stage::new(&["dns"]).with_task_adapter("dns");
    stage.play(
        "create     -> Available=False@1 Ready=False
         children 1 ->
         delete     -> Available=False@1 Ready=False
         plan       -> pulse 1 Created, Available=False@1 Ready=False
         children 0 ->
         plan       -> Available=False@1 Ready=False THEN release",
    );
}

#[test]
fn adapters_of_others_must_agree_at_the_deletion_generation() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create             -> Available=False@1 Ready=False
         report dns g1 True -> Accepted; Available=True@1 Ready=True
         delete             -> Available=True@1 Ready=False
         plan               -> pulse 1 Created, Available=True@1 Ready=False",
    );
    let now = muster_types::timestamp::MicroTimestamp::from_microsecond(stage.now.0 * 1000);
    let mut finalized =
        crate::stage::report("dns", 2, muster_types::condition::ConditionStatus::False, "Gone", now);
    let mut condition = finalized.conditions[0].clone();
    condition.r#type = "Finalized".to_owned();
    finalized.conditions.push(condition);
    let verdict =
        muster_resources::accept_report(&stage.rules, &stage.resource, &finalized, true, now).unwrap();
    stage.resource.status = verdict.into_status().unwrap();
    stage.play("plan -> release");
}

#[test]
fn a_forced_deletion_is_written_down_before_it_happens() {
    let mut stage = Stage::new(&["dns"]);
    stage.play(
        "create          -> Available=False@1 Ready=False
         force the cloud account is gone -> Available=False@1 Ready=False
         plan            -> pulse 1 Created, Available=False@1 Ready=False
         delete          -> Available=False@1 Ready=False",
    );
    // The second plan, which follows the commit of the first, lets it go.
    stage.play("plan -> Available=False@1 Ready=False ForceDeleted=True THEN release");
    let forced = stage.resource.status.conditions.iter().find(|it| it.r#type == "ForceDeleted").unwrap();
    assert_eq!(forced.message, "deleted without its adapters: the cloud account is gone");
}
