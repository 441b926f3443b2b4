//! `muster get --watch`.

use crate::world::{Running, Served, task};

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn rows_come_as_objects_change() {
    let served = Served::new();
    served.apply(&task("a", "labels: {app: shop}"));
    let watch = Running::start(&mut served.world.command(&["get", "tasks", "-w", "-l", "app=shop"]));
    assert_eq!(words(&watch.line())[..2], ["NAME", "STATE"]);
    assert_eq!(words(&watch.line())[0], "a");
    served.apply(&(task("other", "") + &task("b", "labels: {app: shop}")));
    assert_eq!(words(&watch.line())[0], "b");
    served.muster(&["delete", "task", "a"]).is("task.muster.dev/a deleted\n");
    let line = watch.line();
    assert_eq!((words(&line)[0], words(&line).last().copied()), ("a", Some("(deleted)")));
}

#[test]
fn a_watch_goes_on_after_the_server_was_restarted() {
    let mut served = Served::new();
    served.apply(&task("a", ""));
    let watch = Running::start(&mut served.world.command(&["get", "tasks", "-w", "-o", "name"]));
    assert_eq!(watch.line(), "task.muster.dev/a");
    let address = served.address();
    served.restart(&address);
    served.apply(&task("b", ""));
    assert_eq!(watch.line(), "task.muster.dev/b");
}

#[test]
fn one_object_can_be_watched() {
    let served = Served::new();
    served.apply(&(task("a", "") + &task("b", "")));
    let watch = Running::start(&mut served.world.command(&["get", "task", "a", "-w", "-o", "yaml"]));
    watch.wait_for("  name: a");
    served.apply(&(task("b", "labels: {x: changed}") + &task("a", "labels: {app: changed}")));
    watch.wait_for("---");
    watch.wait_for("    app: changed");
}

#[test]
fn a_watch_is_of_one_resource_and_of_what_is_there() {
    let served = Served::new();
    served.muster(&["get", "tasks,addons", "-w"]).is_misuse("--watch shows one resource, not tasks, addons");
    served.muster(&["get", "task", "a", "b", "-w"]).is_misuse("--watch shows one object");
    served.muster(&["get", "task", "a", "-w"]).fails("tasks.muster.dev \"a\" not found");
}
