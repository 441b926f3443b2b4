//! The status subresource and what counts as a generation.

use muster_e2e::kubectl::{Kubectl, task};

fn with_task() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    kubectl
}

#[test]
fn status_patch_sets_the_status_and_does_not_count_as_a_generation() {
    let kubectl = with_task();
    kubectl.ok(
        r#"patch task a --subresource=status --type=merge -p '{"status":{"state":"Running","attempt":1}}'"#,
    );
    assert_eq!(kubectl.field("task/a", ".status.state"), "Running");
    assert_eq!(kubectl.field("task/a", ".metadata.generation"), "1");
}

#[test]
fn status_patch_does_not_reach_the_spec() {
    let kubectl = with_task();
    kubectl.ok(r#"patch task a --subresource=status --type=merge -p '{"spec":{"priority":9},"status":{"attempt":1}}'"#);
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn status_patch_does_not_reach_labels() {
    let kubectl = with_task();
    let patch = r#"{"metadata":{"labels":{"x":"y"}},"status":{"attempt":1}}"#;
    kubectl.ok(&format!("patch task a --subresource=status --type=merge -p '{patch}'"));
    assert_eq!(kubectl.field("task/a", ".metadata.labels"), "");
}

#[test]
fn patch_of_the_object_does_not_reach_the_status() {
    let kubectl = with_task();
    kubectl.ok(r#"patch task a --type=merge -p '{"status":{"state":"Running"}}'"#);
    assert_eq!(kubectl.field("task/a", ".status.state"), "");
}

#[test]
fn patch_of_the_spec_counts_as_a_generation() {
    let kubectl = with_task();
    kubectl.ok(r#"patch task a --type=merge -p '{"spec":{"priority":2}}'"#);
    assert_eq!(kubectl.field("task/a", ".metadata.generation"), "2");
}

#[test]
fn create_with_a_status_stores_none() {
    let kubectl = Kubectl::current();
    kubectl.given(format!("{}status: {{state: Running}}\n", task("a", "{kind: k}"))).ok("create -f -");
    assert_eq!(kubectl.field("task/a", ".status.state"), "");
}

#[test]
fn status_is_shown_in_the_table() {
    let kubectl = with_task();
    let status = r#"{"status":{"state":"Running","attempt":2,"completed":42,"total":100}}"#;
    kubectl.ok(&format!("patch task a --subresource=status --type=merge -p '{status}'"));
    let shown = kubectl.ok("get task a --no-headers");
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>()[..6], ["a", "Running", "k", "1", "2", "42/100"]);
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
    let manifest = format!("{}status: {{message: hello}}\n", task("a", "{kind: k}"));
    kubectl.given(manifest).ok("apply --server-side --subresource=status --field-manager=worker -f -");
    assert_eq!(kubectl.field("task/a", ".status.message"), "hello");
}
