//! `kubectl apply` in its old, client-side way, and `kubectl diff`.

use muster_e2e::kubectl::{Kubectl, manifest, task};

#[test]
fn apply_creates_what_is_not_there() {
    let kubectl = Kubectl::current();
    assert_eq!(kubectl.given(task("a", "{kind: k}")).ok("apply -f -"), "task.muster.dev/a created\n");
}

#[test]
fn apply_of_the_same_leaves_the_object_unchanged() {
    let kubectl = Kubectl::current();
    let given = kubectl.given(task("a", "{kind: k, priority: 1}"));
    given.ok("apply -f -");
    let before = kubectl.field("task/a", ".metadata.resourceVersion");
    assert_eq!(given.ok("apply -f -"), "task.muster.dev/a unchanged\n");
    assert_eq!(kubectl.field("task/a", ".metadata.resourceVersion"), before);
}

#[test]
fn apply_of_a_change_configures_the_object() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    let said = kubectl.given(task("a", "{kind: k, priority: 2}")).ok("apply -f -");
    assert_eq!(said, "task.muster.dev/a configured\n");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "2");
}

#[test]
fn apply_removes_a_field_that_is_no_longer_given() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1, locator: here}")).ok("apply -f -");
    kubectl.given(task("a", "{kind: k, locator: here}")).ok("apply -f -");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k","locator":"here"}"#);
}

#[test]
fn apply_keeps_a_field_that_somebody_else_set() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k}")).ok("apply -f -");
    kubectl.ok("label task a team=blue");
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    assert_eq!(kubectl.field("task/a", ".metadata.labels.team"), "blue");
}

#[test]
fn apply_adopts_what_was_created_otherwise() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let transcript = kubectl.given(task("a", "{kind: k, priority: 1}")).run("apply -f -");
    assert_eq!(transcript.stdout, "task.muster.dev/a configured\n", "{transcript}");
    assert!(transcript.stderr.contains("missing the kubectl.kubernetes.io/last-applied-configuration"));
}

#[test]
fn apply_with_server_dry_run_changes_nothing() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    let said = kubectl.given(task("a", "{kind: k, priority: 2}")).ok("apply --dry-run=server -f -");
    assert_eq!(said, "task.muster.dev/a configured (server dry run)\n");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn apply_prune_deletes_what_is_no_longer_given() {
    let kubectl = Kubectl::current();
    let labelled =
        |name: &str| manifest("Task", &format!("{{name: {name}, labels: {{set: s}}}}"), "{kind: k}");
    kubectl.given(format!("{}---\n{}", labelled("a"), labelled("b"))).ok("apply -f -");
    let prune = "apply -f - --prune -l set=s --prune-allowlist=muster.dev/v1alpha1/Task";
    let said = kubectl.given(labelled("a")).ok(prune);
    assert!(said.contains("task.muster.dev/b pruned"), "{said}");
    assert_eq!(kubectl.ok("get tasks -o name"), "task.muster.dev/a\n");
}

#[test]
fn apply_of_an_invalid_change_is_refused_and_changes_nothing() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    let said = kubectl.given(task("a", "{kind: k, priority: -1}")).fails("apply -f -");
    assert!(said.contains("spec.priority"), "{said}");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn diff_of_the_same_is_silent() {
    let kubectl = Kubectl::current();
    let given = kubectl.given(task("a", "{kind: k, priority: 1}"));
    given.ok("apply -f -");
    assert_eq!(given.ok("diff -f -"), "");
}

#[test]
fn diff_shows_the_line_that_would_change() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    let said = kubectl.given(task("a", "{kind: k, priority: 2}")).fails("diff -f -");
    assert!(said.contains("\n-  priority: 1\n+  priority: 2\n"), "{said}");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1", "diff changes nothing");
}

#[test]
fn diff_of_what_is_not_there_shows_all_of_it() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", "{kind: k}")).fails("diff -f -");
    assert!(said.contains("\n+  kind: k\n"), "{said}");
}

#[test]
fn diff_server_side_shows_the_line_that_would_change() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply --server-side -f -");
    let said = kubectl.given(task("a", "{kind: k, priority: 2}")).fails("diff --server-side -f -");
    assert!(said.contains("\n-  priority: 1\n+  priority: 2\n"), "{said}");
}

#[test]
fn apply_takes_back_a_list_that_was_read() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    kubectl.create_task("b", "{kind: k, priority: 1}");
    let list = kubectl.ok("get tasks -o yaml").replace("priority: 1", "priority: 2");
    let said = kubectl.given(list).ok("apply -f -");
    assert_eq!(said, "task.muster.dev/a configured\ntask.muster.dev/b configured\n");
    assert_eq!(kubectl.ok("get tasks -o jsonpath={.items[*].spec.priority}"), "2 2");
}

#[test]
fn apply_keeps_what_was_applied_last_for_editing() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply -f -");
    kubectl.env("KUBE_EDITOR", "sed -i 's/priority: 1/priority: 2/'").ok("apply edit-last-applied task a");
    assert!(kubectl.ok("apply view-last-applied task a").contains("priority: 2"));
}
