//! `kubectl patch` in its three languages.

use muster_e2e::kubectl::Kubectl;

fn with_task() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k, priority: 1, containers: []}");
    kubectl
}

#[test]
fn merge_patch_sets_and_removes_fields() {
    let kubectl = with_task();
    let said = kubectl.ok(r#"patch task a --type=merge -p '{"spec":{"priority":null,"locator":"here"}}'"#);
    assert_eq!(said, "task.muster.dev/a patched\n");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k","locator":"here"}"#);
}

#[test]
fn merge_patch_that_changes_nothing_says_so() {
    let kubectl = with_task();
    let before = kubectl.field("task/a", ".metadata.resourceVersion");
    let said = kubectl.ok(r#"patch task a --type=merge -p '{"spec":{"priority":1}}'"#);
    assert_eq!(said, "task.muster.dev/a patched (no change)\n");
    assert_eq!(kubectl.field("task/a", ".metadata.resourceVersion"), before);
}

#[test]
fn json_patch_carries_out_its_operations_in_order() {
    let kubectl = with_task();
    let operations = r#"[{"op":"test","path":"/spec/priority","value":1},
        {"op":"add","path":"/metadata/labels","value":{"x":"y"}},
        {"op":"replace","path":"/spec/priority","value":2},
        {"op":"copy","from":"/spec/kind","path":"/spec/locator"}]"#;
    kubectl.ok(&format!("patch task a --type=json -p '{operations}'"));
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k","locator":"k","priority":2}"#);
    assert_eq!(kubectl.field("task/a", ".metadata.labels.x"), "y");
}

#[test]
fn json_patch_whose_test_fails_changes_nothing() {
    let kubectl = with_task();
    let operations = r#"[{"op":"replace","path":"/spec/priority","value":2},
        {"op":"test","path":"/spec/kind","value":"other"}]"#;
    let said = kubectl.fails(&format!("patch task a --type=json -p '{operations}'"));
    assert!(said.contains("/spec/kind"), "{said}");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn json_patch_of_a_missing_path_is_refused() {
    let said = with_task().fails(r#"patch task a --type=json -p '[{"op":"remove","path":"/spec/locator"}]'"#);
    assert!(said.contains("/spec/locator"), "{said}");
}

#[test]
fn strategic_patch_merges_lists_by_their_key() {
    let kubectl = Kubectl::current();
    kubectl.create_task(
        "a",
        "{suspend: true, containers: [{name: x, image: i, args: [a]}, {name: z, image: j}]}",
    );
    let patch = r#"{"spec":{"containers":[{"name":"z","image":"new"}]}}"#;
    kubectl.ok(&format!("patch task a --type=strategic -p '{patch}'"));
    assert_eq!(kubectl.field("task/a", ".spec.containers[*].image"), "i new");
}

#[test]
fn strategic_patch_removes_an_item_by_its_key() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{suspend: true, containers: [{name: x, image: i}, {name: z, image: j}]}");
    kubectl.ok(r#"patch task a -p '{"spec":{"containers":[{"$patch":"delete","name":"x"}]}}'"#);
    assert_eq!(kubectl.field("task/a", ".spec.containers[*].name"), "z");
}

#[test]
fn patch_to_something_invalid_is_refused() {
    let kubectl = with_task();
    let said = kubectl.fails(r#"patch task a --type=merge -p '{"spec":{"priority":-1}}'"#);
    assert!(said.contains("spec.priority") && said.contains("is invalid"), "{said}");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn patch_of_a_missing_object_is_not_found() {
    let said = Kubectl::current().fails(r#"patch task a --type=merge -p '{"spec":{}}'"#);
    assert!(said.contains("(NotFound)"), "{said}");
}

#[test]
fn patch_with_server_dry_run_changes_nothing() {
    let kubectl = with_task();
    let said = kubectl.ok(r#"patch task a --type=merge --dry-run=server -p '{"spec":{"priority":2}}' -o jsonpath={.spec.priority}"#);
    assert_eq!(said, "2");
    assert_eq!(kubectl.field("task/a", ".spec.priority"), "1");
}

#[test]
fn patch_of_the_name_is_refused() {
    let said = with_task().fails(r#"patch task a --type=merge -p '{"metadata":{"name":"b"}}'"#);
    assert!(said.contains("name"), "{said}");
}

#[test]
fn patch_with_a_stale_resource_version_conflicts() {
    let kubectl = with_task();
    let said = kubectl.fails(
        r#"patch task a --type=merge -p '{"metadata":{"resourceVersion":"1"},"spec":{"priority":2}}'"#,
    );
    assert!(said.contains("(Conflict)") && said.contains("the object has been modified"), "{said}");
}
