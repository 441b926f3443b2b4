//! The status subresource and what counts as a generation.

use muster_e2e::kubectl::{Kubectl, task};

fn with_task() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    kubectl
}

/// A status with a condition, which is what users may write of it.
const DONE: &str =
    r#"{"conditions":[{"type":"Done","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}"#;

#[test]
fn status_patch_sets_a_condition_and_does_not_count_as_a_generation() {
    let kubectl = with_task();
    kubectl.ok(&format!(r#"patch task a --subresource=status --type=merge -p '{{"status":{DONE}}}'"#));
    assert_eq!(kubectl.field("task/a", ".status.conditions[0].type"), "Done");
    assert_eq!(kubectl.field("task/a", ".metadata.generation"), "1");
}

#[test]
fn status_patch_of_the_state_is_refused_with_the_way_to_ask_for_it() {
    let kubectl = with_task();
    let said = kubectl
        .fails(r#"patch task a --subresource=status --type=merge -p '{"status":{"state":"Running"}}'"#);
    assert!(said.contains("status.state") && said.contains("only the engine writes it"), "{said}");
    assert_eq!(kubectl.field("task/a", ".status.state"), "Ready");
}

#[test]
fn status_patch_does_not_reach_the_spec() {
    let kubectl = with_task();
    let patch = format!(r#"{{"spec":{{"priority":9}},"status":{DONE}}}"#);
    kubectl.ok(&format!("patch task a --subresource=status --type=merge -p '{patch}'"));
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn status_patch_does_not_reach_labels() {
    let kubectl = with_task();
    let patch = format!(r#"{{"metadata":{{"labels":{{"x":"y"}}}},"status":{DONE}}}"#);
    kubectl.ok(&format!("patch task a --subresource=status --type=merge -p '{patch}'"));
    assert_eq!(kubectl.field("task/a", ".metadata.labels"), "");
}

#[test]
fn patch_of_the_object_does_not_reach_the_status() {
    let kubectl = with_task();
    kubectl.ok(r#"patch task a --type=merge -p '{"status":{"state":"Running"}}'"#);
    assert_eq!(kubectl.field("task/a", ".status.state"), "Ready");
}

#[test]
fn patch_of_the_spec_counts_as_a_generation() {
    let kubectl = with_task();
    kubectl.ok(r#"patch task a --type=merge -p '{"spec":{"priority":2}}'"#);
    assert_eq!(kubectl.field("task/a", ".metadata.generation"), "2");
}

#[test]
fn create_with_a_status_stores_that_of_a_new_task() {
    let kubectl = Kubectl::current();
    kubectl.given(format!("{}status: {{state: Running}}\n", task("a", "{kind: k}"))).ok("create -f -");
    assert_eq!(kubectl.field("task/a", ".status.state"), "Ready");
}

#[test]
fn status_is_shown_in_the_table() {
    let kubectl = with_task();
    let shown = kubectl.ok("get task a --no-headers");
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>()[..5], ["a", "Ready", "k", "1", "0"]);
}

#[test]
fn status_of_a_kind_without_one_does_not_exist() {
    let kubectl = Kubectl::current();
    kubectl
        .given("apiVersion: muster.dev/v1alpha1\nkind: Application\nmetadata: {name: a}\n")
        .ok("create -f -");
    let said = kubectl.fails(r#"patch application a --subresource=status --type=merge -p '{"status":{}}'"#);
    assert!(said.contains("NotFound"), "{said}");
}

#[test]
fn status_with_an_unknown_state_is_refused() {
    let kubectl = with_task();
    let said = kubectl
        .fails(r#"patch task a --subresource=status --type=merge -p '{"status":{"state":"Dancing"}}'"#);
    assert!(said.contains("status.state") && said.contains("Dancing"), "{said}");
}

#[test]
fn status_is_applied_server_side() {
    let kubectl = with_task();
    let manifest = format!("{}status: {DONE}\n", task("a", "{kind: k}"));
    kubectl.given(manifest).ok("apply --server-side --subresource=status --field-manager=worker -f -");
    assert_eq!(kubectl.field("task/a", ".status.conditions[0].type"), "Done");
}
