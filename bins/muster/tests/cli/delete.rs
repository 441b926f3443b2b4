//! `muster delete`.

use crate::world::{Running, Served, World, task, task_kind};

#[test]
fn objects_are_deleted_by_name() {
    let served = Served::new();
    served.apply(&(task("a", "") + &task("b", "") + &task_kind("k", 1)));
    served.muster(&["delete", "task", "a"]).is("task.muster.dev/a deleted\n");
    let said = served.muster(&["delete", "task/b", "taskkind/k"]);
    said.is("task.muster.dev/b deleted\ntaskkind.muster.dev/k deleted\n");
    served.muster(&["delete", "task", "a"]).fails("tasks.muster.dev \"a\" not found");
    served.muster(&["delete", "task", "a", "--ignore-not-found"]).is("");
}

#[test]
fn the_objects_of_a_file_are_deleted() {
    let served = Served::new();
    let file = served.world.file("a.yaml", &(task("a", "") + &task_kind("k", 1)));
    served.muster(&["apply", "-f", file]);
    served.muster(&["delete", "-f", file]).is("task.muster.dev/a deleted\ntaskkind.muster.dev/k deleted\n");
    let file = served.world.file("b.yaml", "kind: Task\n---\na: [\n");
    let said = served.muster(&["delete", "-f", file]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with("error: b.yaml, document 1: apiVersion is missing\n"), "{}", said.err);
}

#[test]
fn objects_are_deleted_by_selector_or_all_of_them() {
    let served = Served::new();
    served.apply(&(task("a", "labels: {app: shop}") + &task("b", "") + &task("c", "namespace: other")));
    served.muster(&["delete", "tasks", "-l", "app=shop"]).is("task.muster.dev/a deleted\n");
    let said = served.muster(&["delete", "tasks", "-l", "app=shop"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", "No resources found.\n"));
    served.muster(&["delete", "tasks", "--all"]).is("task.muster.dev/b deleted\n");
    served.muster(&["delete", "tasks", "--all", "-A"]).is("task.muster.dev/c deleted\n");
}

#[test]
fn a_dry_run_deletes_nothing() {
    let served = Served::new();
    served.apply(&task("a", ""));
    served.muster(&["delete", "task", "a", "--dry-run"]).is("task.muster.dev/a deleted (dry run)\n");
    served.muster(&["get", "task", "a", "-o", "name"]).is("task.muster.dev/a\n");
}

#[test]
fn a_deletion_waits_for_finalizers_and_says_so() {
    let served = Served::new();
    served.apply(&task("a", "finalizers: [example.com/hold]"));
    served.muster(&["delete", "task", "a", "--wait=false"]).is("task.muster.dev/a deleting\n");
    let said = served.muster(&["delete", "task", "a", "--timeout", "10ms"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert_eq!(
        said.err,
        "error: task.muster.dev/a is marked for deletion but still there; it waits for finalizers: example.com/hold\n"
    );
    let described = served.muster(&["describe", "task", "a"]).out;
    assert!(described.contains("ago), waits for example.com/hold\n"), "{described}");
    let waiting = Running::start(&mut served.world.command(&["delete", "task", "a"]));
    assert_eq!(waiting.note(), "task.muster.dev/a waits for finalizers: example.com/hold");
    served.apply(&task("a", ""));
    assert_eq!(waiting.line(), "task.muster.dev/a deleted");
    served.muster(&["get", "task", "a"]).fails("tasks.muster.dev \"a\" not found");
}

#[test]
fn dependents_go_first_or_stay() {
    let served = Served::new();
    let uid = |name: &str| {
        let object = served.muster(&["get", "task", name, "-o", "json"]).json();
        object["metadata"]["uid"].as_str().expect("objects have a uid").to_owned()
    };
    let owned = |name: &str, owner: &str| {
        let uid = uid(owner);
        task(
            name,
            &format!(
                "ownerReferences: [{{apiVersion: muster.dev/v1alpha1, kind: Task, name: {owner}, uid: {uid}, \
                 blockOwnerDeletion: true}}]"
            ),
        )
    };
    served.apply(&(task("a", "") + &task("b", "")));
    served.apply(&(owned("of-a", "a") + &owned("of-b", "b")));
    let said = served.muster(&["delete", "task", "a", "--cascade", "foreground"]);
    assert_eq!((said.code, said.out.as_str()), (0, "task.muster.dev/a deleted\n"), "{}", said.err);
    served.muster(&["get", "task", "of-a"]).fails("tasks.muster.dev \"of-a\" not found");
    let said = served.muster(&["delete", "task", "b", "--cascade", "orphan"]);
    assert_eq!((said.code, said.out.as_str()), (0, "task.muster.dev/b deleted\n"), "{}", said.err);
    let left = served.muster(&["get", "task", "of-b", "-o", "json"]).json();
    assert!(left["metadata"]["ownerReferences"].is_null(), "{left}");
}

#[test]
fn what_to_delete_must_be_said() {
    let world = World::new();
    for (arguments, part) in [
        (&["delete"][..], "<RESOURCE[/NAME]|--filename <FILE>>"),
        (&["delete", "tasks"], "Name objects, or choose them with --selector or --all"),
        (&["delete", "task", "a", "--all"], "either by name or by selector"),
        (&["delete", "task", "a", "-A"], "give --namespace instead of --all-namespaces"),
        (&["delete", "tasks", "--all", "-l", "a=b"], "cannot be used with"),
        (&["delete", "-f", "x", "--all"], "cannot be used with"),
        (&["delete", "task", "a", "--cascade", "up"], "[possible values: background, foreground, orphan]"),
    ] {
        world.muster(arguments).is_misuse(part);
    }
}
