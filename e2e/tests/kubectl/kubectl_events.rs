//! `kubectl events`, `kubectl get events` and `kubectl describe`: what happened to tasks and jobs.

use muster_e2e::kubectl::{Kubectl, manifest};
use serde_json::json;

/// A kubectl with a task `a` that failed twice and a task `b` that was preempted, both a moment ago.
fn with_events() -> Kubectl {
    let kubectl = Kubectl::current();
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).expect("a time").to_string();
    for (task, records) in [
        (
            "a",
            json!([
                {"kind": "PodCreated", "count": 1, "reason": "a-1", "last": now},
                {"kind": "PodFailed", "count": 2, "reason": "exit code 3", "last": now},
            ]),
        ),
        ("b", json!([{"kind": "Preempted", "count": 1, "reason": "for c", "last": now}])),
    ] {
        kubectl.create_task(task, "{kind: k}");
        let status = json!({"status": {"state": "Failed", "events": records}});
        kubectl.ok(&format!("patch task {task} --subresource=status --type=merge -p '{status}'"));
    }
    kubectl
}

#[test]
fn describe_shows_what_happened_to_a_task() {
    let said = with_events().ok("describe task a");
    let events = said.split("\nEvents:").nth(1).unwrap_or_default();
    assert!(events.contains("PodCreated") && events.contains("exit code 3"), "{said}");
    assert!(events.contains("Warning") && events.contains("(x2 over"), "{said}");
    assert!(!events.contains("Preempted"), "{said}");
}

#[test]
fn describe_shows_how_a_job_ended() {
    let kubectl = with_events();
    let groups = "{taskGroups: [{name: g, tasks: [{name: t, spec: {container: {command: ['true']}}}]}]}";
    kubectl.given(manifest("Job", "{name: a}", groups)).ok("create -f -");
    let now = jiff::Timestamp::now().to_string();
    let failed = json!({
        "type": "Failed", "status": "True", "reason": "Failed", "message": "1 failed", "lastTransitionTime": now,
    });
    let status = json!({"status": {"conditions": [failed]}});
    kubectl.ok(&format!("patch job a --subresource=status --type=merge -p '{status}'"));
    let said = kubectl.ok("describe job.muster.dev a");
    let events = said.split("\nEvents:").nth(1).unwrap_or_default();
    assert!(events.contains("Warning") && events.contains("Failed is True: 1 failed"), "{said}");
    assert!(!events.contains("exit code 3"), "the task of the same name is another object: {said}");
}

#[test]
fn get_shows_events_as_people_know_them() {
    let kubectl = with_events();
    let said = kubectl.ok("get events");
    let head: Vec<_> = said.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], "{said}");
    assert_eq!(said.lines().count(), 4, "{said}");
    let warnings = kubectl.ok("get events --field-selector type=Warning,involvedObject.name=a");
    assert!(warnings.contains("PodFailed") && warnings.lines().count() == 2, "{warnings}");
    let newer = kubectl.ok("get events.events.k8s.io -o jsonpath={.items[*].note}");
    assert_eq!(newer, "a-1 exit code 3 for c");
}

#[test]
fn the_events_command_shows_one_task() {
    let kubectl = with_events();
    let said = kubectl.ok("events --for task.muster.dev/b");
    assert!(said.contains("Preempted") && said.contains("for c") && !said.contains("PodFailed"), "{said}");
    let all = kubectl.ok("events --types=Warning");
    assert!(all.contains("Preempted") && all.contains("PodFailed") && !all.contains("PodCreated"), "{all}");
}

#[test]
fn a_watch_of_events_shows_what_happens_next() {
    let kubectl = with_events();
    let mut watch = kubectl.start("get events --watch-only");
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).expect("a time").to_string();
    // Until the watch is open its events may be missed, so they happen over and over.
    muster_e2e::wait::wait_for("an event", muster_e2e::wait::SOON, || {
        let reason = format!("by {}", jiff::Timestamp::now());
        let records = json!([{"kind": "Canceled", "count": 1, "reason": reason, "last": now}]);
        let status = json!({"status": {"events": records}});
        kubectl.ok(&format!("patch task b --subresource=status --type=merge -p '{status}'"));
        let soon = std::time::Duration::from_millis(200);
        watch.line_within(soon).is_some_and(|line| line.contains("Canceled"))
    });
}

#[test]
fn events_cannot_be_made_by_hand() {
    let kubectl = with_events();
    let event = "apiVersion: v1\nkind: Event\nmetadata: {name: x}\ninvolvedObject: {kind: Task, name: a}\n";
    let said = kubectl.given(event).fails("create --validate=false -f -");
    assert!(said.contains("MethodNotAllowed") || said.contains("does not allow"), "{said}");
}

#[test]
fn can_i_knows_the_parts_of_a_task() {
    let kubectl = Kubectl::current();
    for ask in ["get tasks --subresource=log", "create tasks --subresource=report", "list events"] {
        assert_eq!(kubectl.ok(&format!("auth can-i {ask}")), "yes\n", "{ask}");
    }
    let server = muster_e2e::server::Server::shared();
    let viewer = kubectl.with_token(&server.new_token("can-i-parts", "viewer"));
    assert_eq!(viewer.ok("auth can-i get tasks --subresource=log"), "yes\n");
    assert!(viewer.fails("auth can-i create tasks --subresource=report").starts_with("no"));
}

#[test]
fn parts_of_a_task_are_reached_by_their_paths() {
    let kubectl = with_events();
    let told = kubectl.ok(&format!("get --raw {}/a/explain", kubectl.tasks_path()));
    assert!(told.contains("TaskExplanation") && told.contains("Failed"), "{told}");
    let report = kubectl.ok(&format!("get --raw {}/a/report", kubectl.tasks_path()));
    assert!(report.contains("TaskReport"), "{report}");
}
