//! `kubectl events`, `kubectl get events` and `kubectl describe`: what happened to tasks and jobs.

use muster_e2e::kubectl::{Kubectl, manifest};
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};

/// A task that ends with code 3.
const FAILING: &str = "{container: {command: [sh, -c, 'exit 3']}}";
/// A task that waits to be submitted.
const HELD: &str = "{suspend: true, container: {command: ['true']}}";

/// A kubectl with a task `a` that failed and a task `b` that was canceled, both a moment ago.
fn with_events() -> Kubectl {
    let kubectl = Kubectl::on("MUSTER_KUBECTL", Server::with_engine());
    kubectl.create_task("a", FAILING);
    cancel(&kubectl, "b");
    for (task, state) in [("a", "Failed"), ("b", "Canceled")] {
        kubectl.ok(&format!("wait task/{task} --for=jsonpath={{.status.state}}={state} --timeout=60s"));
    }
    kubectl
}

/// Makes a task and cancels it.
fn cancel(kubectl: &Kubectl, task: &str) {
    kubectl.create_task(task, HELD);
    kubectl.ok(&format!(r#"patch task {task} --type=merge -p '{{"spec":{{"cancel":true}}}}'"#));
}

#[test]
fn describe_shows_what_happened_to_a_task() {
    let said = with_events().ok("describe task a");
    let events = said.split("\nEvents:").nth(1).unwrap_or_default();
    assert!(events.contains("Normal") && events.contains("Warning"), "{said}");
    assert!(events.contains("exit code 3"), "{said}");
    assert!(!events.contains("Canceled"), "{said}");
}

#[test]
fn describe_shows_how_a_job_ended() {
    let kubectl = with_events();
    let groups = format!("{{taskGroups: [{{name: g, tasks: [{{name: t, spec: {FAILING}}}]}}]}}");
    kubectl.given(manifest("Job", "{name: a}", &groups)).ok("create -f -");
    kubectl.ok("wait jobs.muster.dev/a --for=condition=Failed --timeout=60s");
    let said = kubectl.ok("describe job.muster.dev a");
    let events = said.split("\nEvents:").nth(1).unwrap_or_default();
    assert!(events.contains("Warning") && events.contains("Failed is True"), "{said}");
    assert!(!events.contains("exit code 3"), "the task of the same name is another object: {said}");
}

#[test]
fn get_shows_events_as_people_know_them() {
    let kubectl = with_events();
    let said = kubectl.ok("get events");
    let head: Vec<_> = said.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], "{said}");
    assert!(said.contains("task/a") && said.contains("task/b"), "{said}");
    let warnings = kubectl.ok("get events --field-selector type=Warning,involvedObject.name=a");
    assert!(warnings.contains("exit code 3") && !warnings.contains("Normal"), "{warnings}");
    let newer = kubectl.ok("get events.events.k8s.io -o jsonpath={.items[*].note}");
    assert!(newer.contains("exit code 3"), "{newer}");
}

#[test]
fn the_events_command_shows_one_task() {
    let kubectl = with_events();
    let said = kubectl.ok("events --for task.muster.dev/b");
    assert!(said.contains("Canceled") && !said.contains("exit code 3"), "{said}");
    let all = kubectl.ok("events --types=Warning");
    assert!(all.contains("exit code 3") && !all.contains("Normal"), "{all}");
}

#[test]
fn a_watch_of_events_shows_what_happens_next() {
    let kubectl = with_events();
    let mut watch = kubectl.start("get events --watch-only");
    let mut made = 0;
    // Until the watch is open its events may be missed, so they happen over and over.
    wait_for("an event", SOON, || {
        made += 1;
        cancel(&kubectl, &format!("more-{made}"));
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
    let server = Server::shared();
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
