//! `kubectl replace`.

use muster_e2e::kubectl::{Kubectl, manifest, task};

#[test]
fn replace_puts_the_new_object_in_the_place_of_the_old() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1, suspend: true}");
    assert_eq!(kubectl.given(task("a", "{kind: other}")).ok("replace -f -"), "task.muster.dev/a replaced\n");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"other"}"#);
}

#[test]
fn replace_with_a_stale_resource_version_conflicts() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    let stale = kubectl.ok("get task a -o yaml");
    kubectl.ok("label task a x=y");
    let said = kubectl.given(stale).fails("replace -f -");
    assert!(said.contains("(Conflict)") && said.contains("the object has been modified"), "{said}");
    assert_eq!(kubectl.field("task/a", ".metadata.labels.x"), "y");
}

#[test]
fn replace_of_a_missing_object_is_not_found() {
    let said = Kubectl::current().given(task("a", "{kind: k}")).fails("replace -f -");
    assert!(said.contains("(NotFound)"), "{said}");
}

#[test]
fn replace_with_force_deletes_and_creates() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let before = kubectl.field("task/a", ".metadata.uid");
    kubectl.given(task("a", "{kind: k}")).ok("replace --force -f -");
    assert_ne!(kubectl.field("task/a", ".metadata.uid"), before);
}

#[test]
fn replace_of_the_uid_is_refused() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let said = kubectl.given(manifest("Task", "{name: a, uid: other}", "{kind: k}")).fails("replace -f -");
    assert!(said.contains("metadata.uid"), "{said}");
}

#[test]
fn replace_of_the_status_keeps_the_spec() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    // A replacement holds the whole status, of which users write the conditions.
    let user = kubectl.field("task/a", ".status.createUser");
    let done = "[{type: Done, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]";
    let status = format!("status: {{state: Ready, createUser: {user}, conditions: {done}}}\n");
    let manifest = format!("{}{status}", task("a", "{kind: other}"));
    kubectl.given(manifest).ok("replace --subresource=status -f -");
    assert_eq!(kubectl.field("task/a", ".status.conditions[0].type"), "Done");
    assert_eq!(kubectl.field("task/a", ".spec.kind"), "k");
}
