//! `muster describe`.

use crate::world::{Served, task, task_kind};

#[test]
fn an_object_is_described_from_name_to_spec() {
    let served = Served::new();
    served.apply(&task("a", "labels: {app: shop, tier: web}, annotations: {note: some text}"));
    let said = served.muster(&["describe", "task", "a"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for part in [
        "Name:         a\nNamespace:    default\nKind:         Task (muster.dev/v1alpha1)\n",
        "Labels:       app=shop\n              tier=web\nAnnotations:  note: some text\n",
        "Owner:        <none>\nCreated:      ",
        "Spec:\n  container:\n    command:\n    - echo\n    - hi\n",
    ] {
        assert!(said.out.contains(part), "{part}\nis not in\n{}", said.out);
    }
}

#[test]
fn several_objects_are_set_apart_and_missing_ones_named() {
    let served = Served::new();
    served.apply(&(task("a", "") + &task_kind("k", 1)));
    let said = served.muster(&["describe", "task/a", "task/gone", "taskkind/k"]);
    assert_eq!((said.code, said.err.as_str()), (1, "error: tasks.muster.dev \"gone\" not found\n"));
    assert_eq!(said.out.matches("\n\n\nName:").count(), 1, "{}", said.out);
    let said = served.muster(&["describe", "taskkinds"]);
    assert!(
        said.out.starts_with("Name:         k\n") && said.out.ends_with("Spec:\n  priority: 1\n"),
        "{}",
        said.out
    );
    assert_eq!(served.muster(&["describe", "addons"]).err, "No resources found in default namespace.\n");
    served.muster(&["describe", "task", "a", "-l", "x=y"]).is_misuse("either by name");
}
