//! `kubectl apply --server-side`: who owns which field, and what happens when two want the same.

use muster_e2e::kubectl::{Kubectl, task};

const APPLY: &str = "apply --server-side -f -";

#[test]
fn server_side_apply_creates_and_records_the_owner() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", "{kind: k, priority: 1}")).ok(APPLY);
    assert_eq!(said, "task.muster.dev/a serverside-applied\n");
    let owned = kubectl.field("task/a", ".metadata.managedFields[?(@.manager=='kubectl')].fieldsV1");
    assert_eq!(owned, r#"{"f:spec":{"f:kind":{},"f:priority":{}}}"#);
}

#[test]
fn server_side_apply_of_the_same_changes_nothing() {
    let kubectl = Kubectl::current();
    let given = kubectl.given(task("a", "{kind: k, priority: 1}"));
    given.ok(APPLY);
    let before = kubectl.ok("get task a -o json --show-managed-fields");
    given.ok(APPLY);
    assert_eq!(kubectl.ok("get task a -o json --show-managed-fields"), before);
}

#[test]
fn server_side_apply_by_another_manager_conflicts_and_names_the_field() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply --server-side --field-manager=alice -f -");
    let said = kubectl
        .given(task("a", "{kind: k, priority: 2}"))
        .fails("apply --server-side --field-manager=bob -f -");
    assert!(said.contains("conflict with \"alice\": .spec.priority"), "{said}");
    assert!(!said.contains(".spec.kind"), "the same value is no conflict:\n{said}");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn server_side_apply_of_the_same_value_is_shared() {
    let kubectl = Kubectl::current();
    for manager in ["alice", "bob"] {
        let line = format!("apply --server-side --field-manager={manager} -f -");
        kubectl.given(task("a", "{kind: k, priority: 1}")).ok(&line);
    }
    assert_eq!(kubectl.field("task/a", ".metadata.managedFields[*].manager"), "alice bob");
}

#[test]
fn server_side_apply_with_force_takes_the_field_over() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply --server-side --field-manager=alice -f -");
    kubectl
        .given(task("a", "{kind: k, priority: 2}"))
        .ok("apply --server-side --field-manager=bob --force-conflicts -f -");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "2");
    let left = kubectl.field("task/a", ".metadata.managedFields[?(@.manager=='alice')].fieldsV1");
    assert_eq!(left, r#"{"f:spec":{"f:kind":{}}}"#);
}

#[test]
fn server_side_apply_removes_a_field_that_is_left_out() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok(APPLY);
    kubectl.given(task("a", "{kind: k}")).ok(APPLY);
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k"}"#);
}

#[test]
fn server_side_apply_leaves_a_left_out_field_that_another_manager_owns() {
    let kubectl = Kubectl::current();
    for manager in ["alice", "bob"] {
        let line = format!("apply --server-side --field-manager={manager} -f -");
        kubectl.given(task("a", "{kind: k, priority: 1}")).ok(&line);
    }
    kubectl.given(task("a", "{kind: k}")).ok("apply --server-side --field-manager=bob -f -");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn server_side_apply_merges_a_keyed_list() {
    let kubectl = Kubectl::current();
    let with = |container: &str| task("a", &format!("{{suspend: true, containers: [{container}]}}"));
    kubectl.given(with("{name: x, image: i}")).ok("apply --server-side --field-manager=alice -f -");
    kubectl.given(with("{name: z, image: j}")).ok("apply --server-side --field-manager=bob -f -");
    assert_eq!(kubectl.field("task/a", ".spec.containers[*].name"), "x z");
}

#[test]
fn server_side_apply_conflicts_with_a_field_that_was_patched() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok(APPLY);
    kubectl.ok(r#"patch task a --type=merge -p '{"spec":{"priority":5}}'"#);
    let said = kubectl.given(task("a", "{kind: k, priority: 1}")).fails(APPLY);
    assert!(said.contains("conflict with \"kubectl-patch\" using muster.dev/v1alpha1"), "{said}");
    assert!(said.contains(".spec.priority"), "{said}");
}

#[test]
fn server_side_apply_takes_over_from_client_side_apply() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1, locator: here}")).ok("apply -f -");
    kubectl.given(task("a", "{kind: k, priority: 2}")).ok(APPLY);
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k","priority":2}"#);
}

#[test]
fn server_side_apply_conflicts_with_what_was_created_otherwise() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    let said = kubectl.given(task("a", "{kind: k, priority: 2}")).fails(APPLY);
    assert!(said.contains(".spec.priority"), "{said}");
}

#[test]
fn server_side_apply_with_dry_run_changes_nothing() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", "{kind: k}")).ok("apply --server-side --dry-run=server -f -");
    assert_eq!(said, "task.muster.dev/a serverside-applied (server dry run)\n");
    assert_eq!(kubectl.ok("get tasks -o name"), "");
}

#[test]
fn server_side_apply_of_an_unknown_field_is_refused() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", "{kind: k, nonsense: 1}")).fails(APPLY);
    assert!(said.contains("spec.nonsense"), "{said}");
}

#[test]
fn managed_fields_are_hidden_unless_asked_for() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k}")).ok(APPLY);
    assert!(!kubectl.ok("get task a -o yaml").contains("managedFields"));
    assert!(kubectl.ok("get task a -o yaml --show-managed-fields").contains("managedFields"));
}

#[test]
fn server_side_apply_keeps_the_memory_of_client_side_apply_true() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    kubectl.given(task("a", "{kind: k, priority: 2}")).ok(APPLY);
    assert!(kubectl.ok("apply view-last-applied task a").contains("priority: 2"));
    kubectl.given(task("a", "{kind: k}")).ok("apply -f -");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k"}"#);
}

#[test]
fn server_side_apply_of_a_changed_field_conflicts_even_after_client_side_apply() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    kubectl.ok(r#"patch task a --type=merge -p '{"spec":{"priority":5}}'"#);
    let said = kubectl.given(task("a", "{kind: k, priority: 2}")).fails(APPLY);
    assert!(said.contains(".spec.priority"), "{said}");
}
