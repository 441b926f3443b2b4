//! `kubectl label` and `kubectl annotate`.

use muster_e2e::kubectl::Kubectl;

fn with_task() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_labelled("a", "{x: old}");
    kubectl
}

#[test]
fn label_adds_a_label() {
    let kubectl = with_task();
    assert_eq!(kubectl.ok("label task a team=blue"), "task.muster.dev/a labeled\n");
    assert_eq!(kubectl.field("task/a", ".metadata.labels"), r#"{"team":"blue","x":"old"}"#);
}

#[test]
fn label_changes_a_value_only_when_told_to_overwrite() {
    let kubectl = with_task();
    let said = kubectl.fails("label task a x=new");
    assert!(said.contains("--overwrite is false"), "{said}");
    kubectl.ok("label task a x=new --overwrite");
    assert_eq!(kubectl.field("task/a", ".metadata.labels.x"), "new");
}

#[test]
fn label_removes_a_label() {
    let kubectl = with_task();
    assert_eq!(kubectl.ok("label task a x-"), "task.muster.dev/a unlabeled\n");
    assert_eq!(kubectl.field("task/a", ".metadata.labels"), "");
}

#[test]
fn label_reaches_every_selected_object() {
    let kubectl = with_task();
    kubectl.create_labelled("b", "{x: old}");
    kubectl.create_labelled("c", "{}");
    kubectl.ok("label tasks -l x=old team=blue");
    assert_eq!(kubectl.ok("get tasks -l team=blue -o name"), "task.muster.dev/a\ntask.muster.dev/b\n");
}

#[test]
fn label_does_not_count_as_a_generation() {
    let kubectl = with_task();
    kubectl.ok("label task a team=blue");
    assert_eq!(kubectl.field("task/a", ".metadata.generation"), "1");
}

#[test]
fn annotate_adds_overwrites_and_removes() {
    let kubectl = with_task();
    kubectl.ok("annotate task a note='any text: even this'");
    kubectl.ok("annotate task a note=changed other=x --overwrite");
    assert_eq!(kubectl.field("task/a", ".metadata.annotations.note"), "changed");
    assert_eq!(kubectl.ok("annotate task a note-"), "task.muster.dev/a annotated\n");
    assert_eq!(kubectl.field("task/a", ".metadata.annotations"), r#"{"other":"x"}"#);
}

#[test]
fn label_with_a_stale_resource_version_conflicts() {
    let said = with_task().fails("label task a team=blue --resource-version=1");
    assert!(said.contains("(Conflict)"), "{said}");
}
