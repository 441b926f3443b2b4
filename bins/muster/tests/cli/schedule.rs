//! `muster schedule`, and schedules that run.

use serde_json::Value;

use crate::world::{Served, World, eventually};

/// A schedule whose times lie in a far future, unless told otherwise.
fn schedule(name: &str, policy: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: muster.dev/v1alpha1\nkind: Schedule\nmetadata: {{name: {name}}}\nspec:\n  \
         schedulePolicy: {{{policy}}}\n  template: {{spec: {{container: {{command: [\"true\"]}}}}}}\n  {rest}\n"
    )
}

const FAR: &str = "timeSpec: R5/2100-01-01T01:00:00/P1D, timeZone: Europe/Berlin";

fn tasks(served: &Served, selector: &str) -> Vec<Value> {
    let list = served.muster(&["get", "tasks", "-l", selector, "-o", "json"]).json();
    list["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn the_next_times_are_shown_in_the_zone_and_in_utc() {
    let served = Served::new();
    served.apply(&schedule("far", FAR, ""));
    let said = served.muster(&["schedule", "preview", "far", "-c", "2"]);
    assert_eq!((said.code, said.err.as_str()), (0, "Understood as R5/2100-01-01T01:00:00+01:00/P1D\n"));
    let rows = said.rows();
    assert_eq!(rows[0], ["EUROPE/BERLIN", "UTC"]);
    assert_eq!(rows[1], ["2100-01-01T01:00:00+01:00", "2100-01-01T00:00:00Z"]);
    assert_eq!(rows.len(), 3);
}

#[test]
fn a_time_spec_is_explained_without_a_server() {
    let world = World::new();
    let line = ["schedule", "preview", "--spec", "R2/T01:00:00/PT01", "--from", "2015-04-30T00:10:00Z"];
    let said = world.muster(&line);
    assert_eq!((said.code, said.err.as_str()), (0, "Understood as R2/2015-04-30T01:00:00Z/PT1H\n"));
    assert_eq!(said.rows()[2], ["2015-04-30T02:00:00Z"], "one column where the zone is UTC");
    let said = world.muster(&["schedule", "preview", "--spec", "R/P1H"]);
    said.fails("--spec R/P1H: at character 5: H is a unit of time and needs a T before it: write PT1H");
}

#[test]
fn a_run_is_made_now_and_belongs_to_the_schedule() {
    let served = Served::new();
    served.apply(&schedule("far", FAR, ""));
    let said = served.muster(&["schedule", "run", "far"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let name = said.out.trim_end();
    assert!(name.starts_with("far-now-"), "{name}");
    let task = served.muster(&["get", "task", name, "-o", "json"]).json();
    assert_eq!(task["metadata"]["ownerReferences"][0]["name"], "far");
    assert_eq!(task["spec"]["retention"]["failed"], "0s");
}

/// Midnight of every New Year's Day.
const YEARLY: &str = "timeSpec: 0 0 1 1 *";

#[test]
fn a_backfill_makes_each_time_once_and_none_that_lies_ahead() {
    let served = Served::running("2");
    served.apply(&schedule("yearly", YEARLY, ""));
    let line = |more: &[&'static str]| -> Vec<&str> {
        let range = ["--from", "2024-06-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];
        ["schedule", "backfill", "yearly"].into_iter().chain(range).chain(more.iter().copied()).collect()
    };
    let said = served.muster(&line(&["--dry-run"]));
    let shown: Vec<_> = said.out.lines().collect();
    assert_eq!(shown[0], "2025-01-01T00:00:00Z yearly-20250101t000000");
    assert!(shown.len() < 50, "times to come are the schedule's own: {}", said.out);
    assert!(said.err.contains("lies in the future; the backfill ends at "), "{}", said.err);
    for names in 1..3 {
        let said = served.muster(&line(&[]));
        assert_eq!(said.code, 0, "{}", said.err);
        let status = || served.muster(&["get", "schedule", "yearly", "-o", "json"]).json()["status"].clone();
        eventually("the backfill to end", || {
            let status = status();
            let done =
                status["backfills"].as_array().is_some_and(|all| all.iter().all(|it| it["next"].is_null()));
            done && status["active"].is_null() && status["made"] == shown.len()
        });
        assert_eq!(tasks(&served, "muster.dev/schedule=yearly").len(), shown.len(), "time {names}");
    }
    let said = served.muster(&[
        "schedule",
        "backfill",
        "yearly",
        "--from",
        "2100-01-01T00:00:00Z",
        "--to",
        "2101-01-01T00:00:00Z",
    ]);
    said.fails(
        "--from 2100-01-01T00:00:00Z lies in the future; the schedule makes the runs of times to come itself",
    );
}

#[test]
fn a_backfill_that_the_concurrency_does_not_allow_is_refused() {
    let served = Served::new();
    served.apply(&schedule("yearly", YEARLY, ""));
    let range = ["--from", "2024-06-01T00:00:00Z", "--to", "2026-06-01T00:00:00Z", "--max-active", "2"];
    let line: Vec<_> = ["schedule", "backfill", "yearly"].into_iter().chain(range).collect();
    let said = served.muster(&line);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("more than 1 needs spec.schedulePolicy.concurrency Allow"), "{}", said.err);
}

#[test]
fn bad_schedules_are_refused_with_place_and_reason() {
    let served = Served::new();
    let refused = |text: &str, part: &str| {
        let said = served.world.muster_with(text, &["apply", "-f", "-"]);
        assert_eq!(said.code, 1, "{text}");
        assert!(said.err.contains(part), "{part} is not in {}", said.err);
    };
    refused(&schedule("a", "timeSpec: R/P1H", ""), "at character 5: H is a unit of time");
    refused(&schedule("a", "timeSpec: R/PT0S", ""), "the period is zero");
    refused(&schedule("a", "timeSpec: R/PT0.5S", ""), "nothing finer can be kept");
    refused(&schedule("a", "timeSpec: R/PT1S, timeZone: Mars/Olympus", ""), "spec.schedulePolicy.timeZone");
    refused(&schedule("a", "", ""), "a schedule needs times or triggers");
    refused(
        &schedule("a", FAR, "templateRef: {name: t}"),
        "only one of template, templateRef and jobTemplate",
    );
    let both = "allowConcurrent: true, concurrency: Replace, timeSpec: R/PT1S";
    refused(&schedule("a", both, ""), "cannot be set together with allowConcurrent");
    refused(&schedule("a", FAR, "selector: {a: b}"), "is not a label of the template");
    refused(&schedule("a", FAR, "triggers: [{\"on\": {kind: Task}}]"), "one of name and selector is needed");
    let none = "apiVersion: muster.dev/v1alpha1\nkind: Schedule\nmetadata: {name: a}\nspec: {schedulePolicy: {timeSpec: R/PT1S}}\n";
    refused(none, "one of template, templateRef and jobTemplate is needed");
    let leading = "apiVersion: muster.dev/v1alpha1\nkind: Schedule\nmetadata: {name: a}\nspec:\n  schedulePolicy: {timeSpec: R/PT1S}\n  \
        template: {spec: {containers: [{name: a, image: i, leading: true}, {name: b, image: i, leading: true}]}}\n";
    refused(leading, "at most one container leads");
}

#[test]
fn the_proposals_own_document_is_stored_as_a_schedule() {
    let served = Served::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/job-controller.json");
    let said = served.muster(&["apply", "-f", file]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let stored = served.muster(&["get", "schedule", "myjob-controller", "-o", "json"]).json();
    assert_eq!(stored["spec"]["schedulePolicy"]["timeSpec"], "R5/T01:00:00/PT01");
    assert_eq!(stored["spec"]["schedulePolicy"]["execTimeout"], "1m40s");
    assert_eq!(stored["spec"]["template"]["spec"]["containers"][0]["image"], "app/job");
    assert_eq!(stored["spec"]["selector"]["name"], "myjob");
}

#[test]
fn the_examples_schedules_run_and_trigger_each_other() {
    let served = Served::running("2");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/schedules.yaml");
    let said = served.muster(&["apply", "-f", file]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let ended = |name: &str| {
        let state = |task: &Value| task["status"]["state"] == "Succeeded";
        tasks(&served, &format!("muster.dev/schedule={name}")).iter().filter(|task| state(task)).count()
    };
    eventually("a heartbeat and its report", || ended("heartbeat") >= 1 && ended("report") >= 1);
    let status = served.muster(&["get", "schedule", "heartbeat", "-o", "json"]).json()["status"].clone();
    assert!(status["made"].as_u64().is_some_and(|made| made >= 1), "{status}");
    assert!(status["normalTimeSpec"].as_str().is_some_and(|spec| spec.ends_with("/PT10S")), "{status}");
}

#[test]
fn a_schedule_keeps_its_limits_and_goes_with_its_runs() {
    let served = Served::running("2");
    served.apply(&schedule(
        "quick",
        "timeSpec: R4/PT1S, allowConcurrent: true, skipOutdated: false",
        "successfulHistoryLimit: 1",
    ));
    let status = || served.muster(&["get", "schedule", "quick", "-o", "json"]).json()["status"].clone();
    eventually("all four runs to end", || status()["made"] == 4 && status()["active"].is_null());
    eventually("old runs to go", || tasks(&served, "muster.dev/schedule=quick").len() == 1);
    let conditions = status()["conditions"].to_string();
    assert!(conditions.contains("Exhausted"), "{conditions}");
    let said = served.muster(&["delete", "schedule", "quick"]);
    assert_eq!(said.code, 0, "{}", said.err);
    eventually("its runs to go", || tasks(&served, "muster.dev/schedule=quick").is_empty());
}

#[test]
fn a_schedule_waits_for_its_template_and_runs_when_it_appears() {
    let served = Served::running("1");
    let text = "apiVersion: muster.dev/v1alpha1\nkind: Schedule\nmetadata: {name: s}\n\
                spec: {schedulePolicy: {timeSpec: R1/PT1S}, templateRef: {name: later}}\n";
    served.apply(text);
    let reason = || {
        let status = served.muster(&["get", "schedule", "s", "-o", "json"]).json()["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
        ready.map_or(Value::Null, |ready| ready["reason"].clone())
    };
    eventually("the schedule to say what is missing", || reason() == "TemplateNotFound");
    served.apply(
        "apiVersion: muster.dev/v1alpha1\nkind: TaskTemplate\nmetadata: {name: later}\n\
         spec: {template: {spec: {container: {command: [\"true\"]}}}}\n",
    );
    eventually("the run to be made", || tasks(&served, "muster.dev/schedule=s").len() == 1);
}

#[test]
fn an_attempt_that_takes_too_long_is_final_and_a_failing_one_is_started_again() {
    let served = Served::running("2");
    let made = |name: &str, policy: &str, script: &str| {
        served.apply(&format!(
            "apiVersion: muster.dev/v1alpha1\nkind: Schedule\nmetadata: {{name: {name}}}\nspec:\n  \
             schedulePolicy: {{timeSpec: R1/PT1S, {policy}}}\n  \
             template: {{spec: {{container: {{command: [sh, -c, \"{script}\"]}}}}}}\n"
        ));
        let ended = || {
            let task = tasks(&served, &format!("muster.dev/schedule={name}")).first().cloned();
            task.filter(|task| task["status"]["state"] == "Failed")
        };
        eventually("the run to fail", || ended().is_some());
        ended().map_or(0, |task| task["status"]["attempt"].as_u64().unwrap_or(0))
    };
    assert_eq!(made("slow", "execTimeout: 1, maxRestart: 5", "sleep 60"), 1);
    assert_eq!(made("bad", "maxRestart: 2", "exit 3"), 3);
}
