//! Namespaces, which need not be made.

use muster_e2e::kubectl::{Kubectl, task};

#[test]
fn a_namespace_that_was_never_made_can_be_used() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k}")).ok("create -f - -n never-heard-of");
    assert_eq!(kubectl.ok("get tasks -n never-heard-of -o name"), "task.muster.dev/a\n");
}

#[test]
fn namespaces_with_objects_are_listed() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let listed = kubectl.ok("get ns -o name");
    for name in ["default", kubectl.namespace()] {
        assert!(
            listed.lines().any(|line| line == format!("namespace/{name}")),
            "{name} is missing in:\n{listed}"
        );
    }
}

#[test]
fn a_namespace_is_found_by_name() {
    assert_eq!(Kubectl::current().ok("get ns anything -o jsonpath={.status.phase}"), "Active");
}

#[test]
fn a_namespace_is_not_made() {
    let said = Kubectl::current().fails("create namespace more");
    assert!(said.contains("(MethodNotAllowed)"), "{said}");
}
