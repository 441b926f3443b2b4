//! `kubectl create`.

use muster_e2e::kubectl::{Kubectl, manifest, task};

#[test]
fn create_stores_what_was_given() {
    let kubectl = Kubectl::current();
    let said = kubectl
        .given(task("a", "{kind: analyzer, priority: 7, data: {x: [1, {deep: z}]}}"))
        .ok("create -f -");
    assert_eq!(said, "task.muster.dev/a created\n");
    assert_eq!(
        kubectl.field("task/a", ".spec"),
        r#"{"data":{"x":[1,{"deep":"z"}]},"kind":"analyzer","priority":7}"#
    );
}

#[test]
fn create_makes_several_objects_from_one_stream() {
    let kubectl = Kubectl::current();
    let both =
        format!("{}---\n{}", task("a", "{kind: k}"), manifest("TaskKind", "{name: k}", "{priority: 3}"));
    assert_eq!(
        kubectl.given(both).ok("create -f -"),
        "task.muster.dev/a created\ntaskkind.muster.dev/k created\n"
    );
}

#[test]
fn create_of_a_list_makes_its_items() {
    let kubectl = Kubectl::current();
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "muster.dev/v1alpha1", "kind": "Application", "metadata": {"name": "a"}},
        {"apiVersion": "muster.dev/v1alpha1", "kind": "Application", "metadata": {"name": "b"}}]}"#;
    let said = kubectl.given(list).ok("create -f -");
    assert_eq!(said, "application.muster.dev/a created\napplication.muster.dev/b created\n");
}

#[test]
fn create_generates_a_name_from_a_prefix() {
    let kubectl = Kubectl::current();
    let generated = manifest("Task", "{generateName: analyze-}", "{kind: analyzer}");
    let first = kubectl.given(&*generated).ok("create -f - -o name");
    let second = kubectl.given(&*generated).ok("create -f - -o name");
    assert!(first.starts_with("task.muster.dev/analyze-"), "{first}");
    assert_eq!(first.trim().len(), "task.muster.dev/analyze-12345".len(), "{first}");
    assert_ne!(first, second);
}

#[test]
fn create_of_what_exists_is_refused() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: analyzer}");
    let said = kubectl.given(task("a", "{kind: other}")).fails("create -f -");
    assert!(said.contains("(AlreadyExists)"), "{said}");
    assert!(said.contains(r#"tasks.muster.dev "a" already exists"#), "{said}");
}

#[test]
fn create_with_server_dry_run_stores_nothing() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", "{kind: analyzer}")).ok("create -f - --dry-run=server");
    assert_eq!(said, "task.muster.dev/a created (server dry run)\n");
    let said = kubectl.fails("get task a");
    assert!(said.contains("(NotFound)"), "{said}");
}

#[test]
fn create_with_server_dry_run_shows_what_would_be_stored() {
    let kubectl = Kubectl::current();
    let given = kubectl.given(task("a", "{kind: analyzer}"));
    let shown =
        given.ok("create -f - --dry-run=server -o jsonpath={.metadata.namespace},{.metadata.generation}");
    assert_eq!(shown, format!("{},1", kubectl.namespace()));
}

#[test]
fn create_with_server_dry_run_refuses_what_would_be_refused() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", "{priority: -1, kind: k}")).fails("create -f - --dry-run=server");
    assert!(said.contains("spec.priority"), "{said}");
}

#[test]
fn create_in_another_namespace_than_that_of_the_manifest_is_refused() {
    let kubectl = Kubectl::current();
    let said =
        kubectl.given(manifest("Task", "{name: a, namespace: x}", "{kind: k}")).fails("create -n y -f -");
    assert!(said.contains("namespace"), "{said}");
}

#[test]
fn create_with_save_config_remembers_what_was_applied() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: analyzer}")).ok("create --save-config -f -");
    let kept = kubectl.ok("apply view-last-applied task/a");
    assert!(kept.contains("kind: analyzer"), "{kept}");
}

#[test]
fn create_of_an_invalid_object_names_every_field_that_is_wrong() {
    let kubectl = Kubectl::current();
    let wrong = manifest("Task", "{name: a, labels: {app: 'no blanks'}}", "{kind: K, priority: -1}");
    let said = kubectl.given(wrong).fails("create -f -");
    for field in ["metadata.labels", "spec.kind", "spec.priority"] {
        assert!(said.contains(field), "{field} is missing in:\n{said}");
    }
}

#[test]
fn create_of_a_wrong_type_names_the_field() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", "{kind: analyzer, priority: high}")).fails("create -f -");
    assert!(said.contains("spec.priority"), "{said}");
}

#[test]
fn create_of_an_unknown_kind_says_so() {
    let said = Kubectl::current().given(manifest("Nonsense", "{name: a}", "{}")).fails("create -f -");
    assert!(said.contains(r#"no matches for kind "Nonsense" in version "muster.dev/v1alpha1""#), "{said}");
}
