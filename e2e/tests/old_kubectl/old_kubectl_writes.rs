//! Verbs that change.

use muster_e2e::kubectl::{Kubectl, manifest, task};
use muster_e2e::wait::{SOON, wait_for};

fn with_task() -> Kubectl {
    let kubectl = Kubectl::old();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    kubectl
}

#[test]
fn create_stores_what_was_given() {
    let kubectl = Kubectl::old();
    assert_eq!(kubectl.given(task("a", "{kind: k}")).ok("create -f -"), "task.muster.dev/a created\n");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k"}"#);
}

#[test]
fn create_without_validation_stores_what_was_given() {
    let kubectl = Kubectl::old();
    kubectl.given(task("a", "{kind: k}")).ok("create --validate=false -f -");
    assert_eq!(kubectl.ok("get tasks -o name"), "task.muster.dev/a\n");
}

#[test]
fn create_warns_of_unknown_fields() {
    let transcript = Kubectl::old().given(task("a", "{kind: k, nonsense: 1}")).run("create -f -");
    assert_eq!(transcript.code, Some(0), "{transcript}");
    assert!(transcript.stderr.contains(r#"Warning: unknown field "spec.nonsense""#), "{transcript}");
}

#[test]
fn create_generates_a_name_from_a_prefix() {
    let generated = manifest("Task", "{generateName: analyze-}", "{kind: k}");
    let said = Kubectl::old().given(generated).ok("create -f - -o name");
    assert!(said.starts_with("task.muster.dev/analyze-"), "{said}");
}

#[test]
fn create_of_what_exists_is_refused() {
    let said = with_task().given(task("a", "{kind: k}")).fails("create -f -");
    assert!(said.contains("(AlreadyExists)"), "{said}");
}

#[test]
fn create_of_an_invalid_object_names_the_field() {
    let said = Kubectl::old().given(task("a", "{kind: k, priority: -1}")).fails("create -f -");
    assert!(said.contains("spec.priority: Invalid value"), "{said}");
}

#[test]
fn apply_creates_configures_and_removes() {
    let kubectl = Kubectl::old();
    let apply = |spec: &str| kubectl.given(task("a", spec)).ok("apply -f -");
    assert_eq!(apply("{kind: k, priority: 1, locator: here}"), "task.muster.dev/a created\n");
    assert_eq!(apply("{kind: k, priority: 1, locator: here}"), "task.muster.dev/a unchanged\n");
    assert_eq!(apply("{kind: k, priority: 2}"), "task.muster.dev/a configured\n");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k","priority":2}"#);
}

#[test]
fn server_side_apply_conflicts_until_forced() {
    let kubectl = Kubectl::old();
    kubectl.given(task("a", "{kind: k, priority: 1}")).ok("apply --server-side --field-manager=alice -f -");
    let other = kubectl.given(task("a", "{kind: k, priority: 2}"));
    let said = other.fails("apply --server-side --field-manager=bob -f -");
    assert!(said.contains("conflict with \"alice\": .spec.priority"), "{said}");
    other.ok("apply --server-side --field-manager=bob --force-conflicts -f -");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "2");
}

#[test]
fn diff_shows_the_line_that_would_change() {
    let kubectl = with_task();
    let said = kubectl.given(task("a", "{kind: k, priority: 2}")).fails("diff -f -");
    assert!(said.contains("\n-  priority: 1\n+  priority: 2\n"), "{said}");
}

#[test]
fn patches_of_every_sort_are_carried_out() {
    let kubectl = with_task();
    for (sort, patch, expected) in [
        ("merge", r#"{"spec":{"priority":2}}"#, "2"),
        ("strategic", r#"{"spec":{"priority":3}}"#, "3"),
        ("json", r#"[{"op":"replace","path":"/spec/priority","value":4}]"#, "4"),
    ] {
        kubectl.ok(&format!("patch task a --type={sort} -p '{patch}'"));
        assert_eq!(kubectl.field("task/a", ".spec.priority"), expected, "{sort}");
    }
}

#[test]
fn edit_saves_what_the_editor_changed() {
    let kubectl = with_task();
    kubectl.env("KUBE_EDITOR", "sed -i 's/priority: 1/priority: 2/'").ok("edit task a");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "2");
}

#[test]
fn label_and_annotate_set_and_remove() {
    let kubectl = with_task();
    kubectl.ok("label task a x=1 z=2");
    kubectl.ok("label task a x-");
    kubectl.ok("annotate task a note=text");
    assert_eq!(kubectl.field("task/a", ".metadata.labels"), r#"{"z":"2"}"#);
    assert_eq!(kubectl.field("task/a", ".metadata.annotations.note"), "text");
}

#[test]
fn replace_with_a_stale_resource_version_conflicts() {
    let kubectl = with_task();
    let stale = kubectl.ok("get task a -o yaml");
    kubectl.ok("label task a x=1");
    let said = kubectl.given(stale).fails("replace -f -");
    assert!(said.contains("(Conflict)"), "{said}");
}

#[test]
fn delete_removes_by_name_label_and_all() {
    let kubectl = with_task();
    kubectl.create_labelled("b", "{x: z}");
    kubectl.create_labelled("c", "{}");
    kubectl.create_labelled("d", "{}");
    kubectl.ok("delete task a");
    kubectl.ok("delete tasks -l x=z");
    assert_eq!(kubectl.ok("get tasks -o jsonpath={.items[*].metadata.name}"), "c d");
    kubectl.ok("delete tasks --all");
    assert_eq!(kubectl.ok("get tasks -o name"), "");
}

#[test]
fn delete_reaches_dependents_as_asked() {
    for (cascade, left) in [("background", ""), ("foreground", ""), ("orphan", "d")] {
        let kubectl = with_task();
        let uid = kubectl.field("task/a", ".metadata.uid");
        let owner = format!("{{apiVersion: muster.dev/v1alpha1, kind: Task, name: a, uid: {uid}}}");
        let metadata = format!("{{name: d, ownerReferences: [{owner}]}}");
        kubectl.given(manifest("Task", &metadata, "{kind: k}")).ok("create -f -");
        kubectl.ok(&format!("delete task a --cascade={cascade}"));
        wait_for(&format!("the dependent after {cascade}"), SOON, || {
            kubectl.ok("get tasks -o jsonpath={.items[*].metadata.name}") == left
        });
    }
}
