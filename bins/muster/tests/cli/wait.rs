//! `muster wait`.

use crate::world::{Running, Served, World};

fn submit(served: &Served, script: &str) -> String {
    let said = served.muster(&["submit", "--", "sh", "-c", script]);
    assert_eq!(said.code, 0, "{}", said.err);
    said.out.trim_end().to_owned()
}

#[test]
fn waiting_ends_with_the_task_and_tells_how() {
    let served = Served::running("2");
    let good = submit(&served, "exit 0");
    served.muster(&["wait", &good]).is(&format!("{good} Succeeded\n"));
    let bad = submit(&served, "exit 3");
    let said = served.muster(&["wait", &good, &format!("task/{bad}")]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains(&format!("{bad} Failed: ")), "{}", said.out);
}

#[test]
fn a_state_is_waited_for_until_it_comes_or_cannot_come_any_more() {
    let served = Served::running("2");
    let name = submit(&served, "until test -e ~/go; do sleep 0.01; done");
    served.muster(&["wait", &name, "--for", "state=Running"]).is(&format!("{name} Running\n"));
    let mut waiting = Running::start(&mut served.world.command(&["wait", &name, "--for", "state=Failed"]));
    served.world.file("go", "");
    assert_eq!(waiting.code(), 1);
    assert!(waiting.note().starts_with(&format!("error: {name} is Succeeded")));
}

#[test]
fn tasks_can_be_waited_for_by_label_and_all_at_once() {
    let served = Served::running("2");
    let array = served.muster(&["submit", "--array", "1-5", "--", "true"]);
    let said = served.muster(&["wait", "-l", array.out.trim_end()]);
    assert_eq!((said.code, said.out.lines().count()), (0, 5));
    assert_eq!(served.muster(&["wait", "--all"]).out.lines().count(), 5);
    served.muster(&["wait", "-l", "a=b"]).fails("no task is selected, so there is nothing to wait for");
}

#[test]
fn the_time_to_wait_has_an_end_if_that_is_wanted() {
    let served = Served::new();
    let name = submit(&served, "true");
    let said = served.muster(&["wait", &name, "--timeout", "20ms"]);
    said.fails(&format!("waited 20ms in vain for {name}; `muster explain NAME` says why"));
}

#[test]
fn a_task_that_is_deleted_is_a_failure_unless_that_was_waited_for() {
    let served = Served::new();
    let name = submit(&served, "true");
    let mut ended = Running::start(&mut served.world.command(&["wait", &name]));
    let mut gone = Running::start(&mut served.world.command(&["wait", &name, "--for", "deleted"]));
    assert_eq!(served.muster(&["delete", "task", &name]).code, 0);
    assert_eq!(ended.code(), 1);
    assert_eq!(gone.code(), 0);
}

#[test]
fn a_name_that_is_not_there_gets_a_hint() {
    let served = Served::new();
    let name = submit(&served, "true");
    let (start, last) = name.split_at(name.len() - 1);
    let wrong = format!("{start}{}", if last == "x" { "y" } else { "x" });
    let said = served.muster(&["wait", &wrong]);
    said.fails(&format!("there is no task \"{wrong}\" in namespace default; did you mean {name}?"));
    World::new().muster(&["wait", "a", "--for", "done"]).is_misuse("state=Succeeded");
    World::new().muster(&["wait"]).is_misuse("required");
}
