//! Verbs that look.

use muster_e2e::kubectl::Kubectl;
use muster_e2e::server::Server;
use serde_json::Value;

fn with_two_tasks() -> Kubectl {
    let kubectl = Kubectl::old();
    kubectl.create_labelled("a", "{color: red}");
    kubectl.create_labelled("b", "{color: green}");
    kubectl
}

#[test]
fn api_resources_lists_every_kind() {
    let listed = Kubectl::old().ok("api-resources --api-group=muster.dev -o name");
    assert_eq!(listed.lines().count(), 14, "{listed}");
    assert!(listed.contains("tasks.muster.dev\n"), "{listed}");
}

#[test]
fn api_versions_lists_the_group() {
    let listed = Kubectl::old().ok("api-versions");
    assert!(listed.lines().any(|line| line == "muster.dev/v1alpha1"), "{listed}");
}

#[test]
fn version_names_the_server() {
    let said = Kubectl::old().ok("version --short");
    assert!(said.contains("Client Version: v1.20"), "{said}");
    assert!(said.contains("Server Version: v1.36.0+muster-"), "{said}");
}

#[test]
fn get_shows_a_table() {
    let shown = with_two_tasks().ok("get tasks");
    assert!(shown.starts_with("NAME   STATE   KIND       PRIORITY"), "{shown}");
    assert_eq!(shown.lines().count(), 3, "{shown}");
}

#[test]
fn get_wide_shows_more_columns() {
    let shown = with_two_tasks().ok("get mtask -o wide");
    assert!(shown.lines().next().unwrap().ends_with("MESSAGE"), "{shown}");
}

#[test]
fn get_shows_every_form() {
    let kubectl = with_two_tasks();
    for (form, expected) in [
        ("name", "task.muster.dev/a\n"),
        ("jsonpath={.spec.kind}", "analyzer"),
        ("go-template={{.spec.kind}}", "analyzer"),
        ("custom-columns=N:.metadata.name", "N\na\n"),
    ] {
        assert_eq!(kubectl.ok(&format!("get task a -o {form}")), expected, "{form}");
    }
    let shown: Value = serde_json::from_str(&kubectl.ok("get task a -o json")).unwrap();
    assert_eq!(shown["kind"], "Task");
    assert!(kubectl.ok("get task a -o yaml").starts_with("apiVersion: muster.dev/v1alpha1\nkind: Task\n"));
}

#[test]
fn get_selects_by_labels_and_fields() {
    let kubectl = with_two_tasks();
    assert_eq!(kubectl.ok("get tasks -l color!=red -o name"), "task.muster.dev/b\n");
    assert_eq!(kubectl.ok("get tasks --field-selector metadata.name=a -o name"), "task.muster.dev/a\n");
}

#[test]
fn get_in_small_chunks_shows_everything() {
    assert_eq!(with_two_tasks().ok("get tasks --chunk-size=1 -o name").lines().count(), 2);
}

#[test]
fn get_by_category_shows_every_kind() {
    assert_eq!(with_two_tasks().ok("get muster -o name"), "task.muster.dev/a\ntask.muster.dev/b\n");
}

#[test]
fn get_of_a_missing_object_is_not_found() {
    let said = Kubectl::old().fails("get task a");
    assert!(said.contains(r#"Error from server (NotFound): tasks.muster.dev "a" not found"#), "{said}");
}

#[test]
fn watch_shows_what_is_there_and_then_every_change() {
    let kubectl = with_two_tasks();
    let mut watch = kubectl.start("get tasks -w --output-watch-events --no-headers");
    watch.expect_line("ADDED      b ");
    kubectl.ok("delete task a");
    watch.expect_line("DELETED    a ");
}

#[test]
fn describe_tells_about_an_object() {
    let told = with_two_tasks().ok("describe task a");
    assert!(told.contains("Name:         a") && told.contains("Kind:  analyzer"), "{told}");
}

#[test]
fn can_i_answers() {
    let kubectl = Kubectl::old();
    assert_eq!(kubectl.ok("auth can-i create tasks"), "yes\n");
    assert!(kubectl.ok("auth can-i --list").contains("[*]"));
}

#[test]
fn raw_reads_reach_the_server() {
    let kubectl = Kubectl::old();
    assert_eq!(kubectl.ok("get --raw /healthz"), "ok");
    assert!(kubectl.ok("get --raw /version").contains("muster"));
}

#[test]
fn wait_ends_when_the_condition_holds() {
    let kubectl = with_two_tasks();
    let waiting = kubectl.start("wait task/a --for=condition=Done --timeout=20s");
    let condition =
        r#"{"type":"Done","status":"True","reason":"R","lastTransitionTime":"2026-01-01T00:00:00Z"}"#;
    let status = format!(r#"{{"status":{{"conditions":[{condition}]}}}}"#);
    let path = format!("{}/a/status", kubectl.tasks_path());
    let answer = Server::shared().http().patch(&path, "merge-patch+json", &status);
    assert_eq!(answer.code, 200, "{}", answer.text());
    let transcript = waiting.finish();
    assert_eq!(transcript.code, Some(0), "{transcript}");
}
