//! `kubectl delete` of one, some and all objects, and finalizers.

use muster_e2e::kubectl::{Kubectl, manifest, task};
use muster_e2e::wait::{SOON, wait_for};

fn with_tasks(names: &[&str]) -> Kubectl {
    let kubectl = Kubectl::current();
    for name in names {
        kubectl.create_labelled(name, &format!("{{is: {name}}}"));
    }
    kubectl
}

fn names(kubectl: &Kubectl) -> String {
    kubectl.ok("get tasks -o jsonpath={.items[*].metadata.name}")
}

#[test]
fn delete_by_name_removes_the_object() {
    let kubectl = with_tasks(&["a", "b"]);
    let said = kubectl.ok("delete task a");
    assert_eq!(said, format!("task.muster.dev \"a\" deleted from {} namespace\n", kubectl.namespace()));
    assert_eq!(names(&kubectl), "b");
}

#[test]
fn delete_by_label_removes_those_that_match() {
    let kubectl = with_tasks(&["a", "b", "c"]);
    kubectl.ok("delete tasks -l 'is in (a,c)'");
    assert_eq!(names(&kubectl), "b");
}

#[test]
fn delete_by_field_removes_those_that_match() {
    let kubectl = with_tasks(&["a", "b"]);
    kubectl.ok("delete tasks --field-selector metadata.name=b");
    assert_eq!(names(&kubectl), "a");
}

#[test]
fn delete_all_removes_every_object_of_the_namespace() {
    let (kubectl, other) = (with_tasks(&["a", "b"]), with_tasks(&["c"]));
    kubectl.ok("delete tasks --all");
    assert_eq!((&*names(&kubectl), &*names(&other)), ("", "c"));
}

#[test]
fn delete_by_file_removes_its_objects() {
    let kubectl = with_tasks(&["a", "b"]);
    kubectl.given(task("a", "{}")).ok("delete -f -");
    assert_eq!(names(&kubectl), "b");
}

#[test]
fn delete_of_the_collection_removes_all_at_once() {
    let (kubectl, other) = (with_tasks(&["a", "b"]), with_tasks(&["c"]));
    kubectl.ok(&format!("delete --raw {}", kubectl.tasks_path()));
    assert_eq!((&*names(&kubectl), &*names(&other)), ("", "c"));
}

#[test]
fn delete_of_the_collection_by_label_removes_those_that_match() {
    let kubectl = with_tasks(&["a", "b"]);
    kubectl.ok(&format!("delete --raw {}?labelSelector=is%3Da", kubectl.tasks_path()));
    assert_eq!(names(&kubectl), "b");
}

#[test]
fn delete_with_server_dry_run_removes_nothing() {
    let kubectl = with_tasks(&["a"]);
    let said = kubectl.ok("delete task a --dry-run=server");
    assert!(said.contains("(server dry run)"), "{said}");
    assert_eq!(names(&kubectl), "a");
}

#[test]
fn delete_of_a_missing_object_is_not_found() {
    let kubectl = Kubectl::current();
    let said = kubectl.fails("delete task a");
    assert!(said.contains("(NotFound)"), "{said}");
    kubectl.ok("delete task a --ignore-not-found");
}

#[test]
fn delete_now_removes_at_once() {
    let kubectl = with_tasks(&["a"]);
    kubectl.ok("delete task a --now");
    assert_eq!(names(&kubectl), "");
}

#[test]
fn delete_with_force_removes_at_once() {
    let kubectl = with_tasks(&["a"]);
    kubectl.ok("delete task a --force --grace-period=0");
    assert_eq!(names(&kubectl), "");
}

#[test]
fn delete_waits_for_finalizers() {
    let kubectl = Kubectl::current();
    kubectl
        .given(manifest("Task", "{name: a, finalizers: [example.com/hold]}", "{kind: k}"))
        .ok("create -f -");
    let waiting = kubectl.start("delete task a --timeout=20s");
    wait_for("the task to be marked", SOON, || {
        !kubectl.field("task/a", ".metadata.deletionTimestamp").is_empty()
    });
    kubectl.ok(r#"patch task a --type=merge -p '{"metadata":{"finalizers":null}}'"#);
    let transcript = waiting.finish();
    assert_eq!((transcript.code, &*names(&kubectl)), (Some(0), ""), "{transcript}");
}

#[test]
fn delete_of_an_object_that_is_held_gives_up_after_its_timeout() {
    let kubectl = Kubectl::current();
    kubectl
        .given(manifest("Task", "{name: a, finalizers: [example.com/hold]}", "{kind: k}"))
        .ok("create -f -");
    let said = kubectl.fails("delete task a --timeout=300ms");
    assert!(said.contains("timed out waiting for the condition"), "{said}");
}

#[test]
fn finalizers_cannot_be_added_to_what_is_being_deleted() {
    let kubectl = Kubectl::current();
    kubectl
        .given(manifest("Task", "{name: a, finalizers: [example.com/hold]}", "{kind: k}"))
        .ok("create -f -");
    kubectl.ok("delete task a --wait=false");
    let patch = r#"{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}"#;
    let said = kubectl.fails(&format!("patch task a --type=merge -p '{patch}'"));
    assert!(said.contains("metadata.finalizers") && said.contains("example.com/more"), "{said}");
}

#[test]
fn a_name_can_be_used_again_after_deletion() {
    let kubectl = with_tasks(&["a"]);
    let before = kubectl.field("task/a", ".metadata.uid");
    kubectl.ok("delete task a");
    kubectl.create_task("a", "{kind: k}");
    assert_ne!(kubectl.field("task/a", ".metadata.uid"), before);
}
