//! `kubectl edit` with an editor that types by itself.

use muster_e2e::kubectl::Kubectl;

#[test]
fn edit_saves_what_the_editor_changed() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    let said = kubectl.env("KUBE_EDITOR", "sed -i 's/priority: 1/priority: 2/'").ok("edit task a");
    assert_eq!(said, "task.muster.dev/a edited\n");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "2");
}

#[test]
fn edit_without_a_change_is_cancelled() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let transcript = kubectl.env("KUBE_EDITOR", "true").run("edit task a");
    assert_eq!(
        (transcript.code, &*transcript.stderr),
        (Some(0), "Edit cancelled, no changes made.\n"),
        "{transcript}"
    );
}

#[test]
fn edit_to_something_invalid_shows_the_reason_and_changes_nothing() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    let seen = tempfile::NamedTempFile::new().unwrap();
    let editor = format!("sed -i 's/priority: 1/priority: -4/;w {}'", seen.path().display());
    let said = kubectl.env("KUBE_EDITOR", editor).fails("edit task a");
    assert!(said.contains("no valid changes were saved"), "{said}");
    let shown = std::fs::read_to_string(seen.path()).unwrap();
    assert!(shown.contains("# * spec.priority: Invalid value: \"-4\": must be at least 0"), "{shown}");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn edit_that_breaks_the_yaml_changes_nothing() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    kubectl.env("KUBE_EDITOR", "sed -i 's/priority: 1/priority: [/'").fails("edit task a");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn edit_of_the_status_saves_the_status() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let done =
        r#"[{"type":"Done","status":"True","message":"before","lastTransitionTime":"2026-01-01T00:00:00Z"}]"#;
    kubectl.ok(&format!(
        r#"patch task a --subresource=status --type=merge -p '{{"status":{{"conditions":{done}}}}}'"#
    ));
    kubectl
        .env("KUBE_EDITOR", "sed -i 's/message: before/message: after/'")
        .ok("edit task a --subresource=status");
    assert_eq!(kubectl.field("task/a", ".status.conditions[0].message"), "after");
}

#[test]
fn edit_of_several_objects_saves_each() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1}");
    kubectl.create_task("b", "{kind: k, priority: 1}");
    kubectl.env("KUBE_EDITOR", "sed -i 's/priority: 1/priority: 2/'").ok("edit tasks a b");
    assert_eq!(kubectl.ok("get tasks -o jsonpath={.items[*].spec.priority}"), "2 2");
}
