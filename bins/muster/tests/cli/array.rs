//! `muster submit` of many tasks.

use std::fs;

use crate::world::{Running, Served, World};

#[test]
fn every_number_becomes_a_task_that_finds_its_own() {
    let served = Served::running("2");
    let said = served.muster(&[
        "submit",
        "--array",
        "1,3,10-12:2",
        "--wait",
        "--",
        "sh",
        "-c",
        "touch ~/$MUSTER_INDEX",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let selector = said.out.trim_end();
    assert!(selector.starts_with("muster.dev/array="), "{selector}");
    assert!(said.err.starts_with("4 of 4 tasks succeeded, 0 failed in "), "{}", said.err);
    for number in ["1", "3", "10", "12"] {
        assert!(served.world.home.path().join(number).exists(), "{number}");
    }
    let one =
        served.muster(&["get", "tasks", "-l", &format!("{selector},muster.dev/index=10"), "-o", "name"]);
    assert_eq!(one.out.lines().count(), 1, "{}", one.out);
    assert!(one.out.trim_end().ends_with("-10"), "{}", one.out);
}

#[test]
fn one_failure_among_many_is_the_exit_code() {
    let served = Served::running("2");
    let said =
        served.muster(&["submit", "--array", "1-20", "--wait", "--", "sh", "-c", "test $MUSTER_INDEX != 7"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("19 of 20 tasks succeeded, 1 failed"), "{}", said.err);
    assert!(said.err.contains("--field-selector status.state=Failed"), "{}", said.err);
}

#[test]
fn every_line_becomes_a_task_that_finds_its_own() {
    let served = Served::running("2");
    let input = "plain\n  spaces  and \"quotes\"\n\n$HOME `x` \\ é\nlast without end";
    let script = "printf %s \"$MUSTER_LINE\" > ~/line-$MUSTER_INDEX";
    let said =
        served.world.muster_with(input, &["submit", "--each-line", "-", "--wait", "--", "sh", "-c", script]);
    assert_eq!(said.code, 0, "{}", said.err);
    for (at, line) in input.lines().enumerate() {
        let path = served.world.home.path().join(format!("line-{}", at + 1));
        assert_eq!(fs::read_to_string(path).expect("the task ran"), line);
    }
}

#[test]
fn lines_come_from_a_file_too_and_none_is_nothing_to_do() {
    let served = Served::new();
    let file = served.world.file("lines", "a\nb\n");
    let said = served.muster(&["submit", "--each-line", file, "-o", "name", "--", "true"]);
    assert_eq!((said.code, said.out.lines().count()), (0, 2));
    let said = served.muster(&["submit", "--each-line", "-", "--", "true"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert_eq!(said.err, "standard input has no lines, so there is nothing to do\n");
    let said = served.muster(&["submit", "--each-line", "gone", "--", "true"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("cannot read gone, named by --each-line"), "{}", said.err);
}

#[test]
fn a_thousand_tasks_are_made_each_once() {
    let served = Served::new();
    let said = served.muster(&["submit", "--array", "0-999", "--", "true"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let found = served.muster(&["get", "tasks", "-l", said.out.trim_end(), "-o", "name"]);
    assert_eq!(found.out.lines().count(), 1000);
}

#[test]
fn an_array_as_json_is_a_list_of_what_was_made() {
    let served = Served::new();
    let list = served.muster(&["submit", "--array", "1-3", "-o", "json", "--", "true"]).json();
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
}

#[test]
fn what_the_server_refuses_ends_the_array_at_once() {
    let served = Served::new();
    let said =
        served.muster(&["submit", "--array", "1-3", "--label", "a=not a label", "--wait", "--", "true"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("not a label") && !said.err.contains("cancel them"), "{}", said.err);
    World::new().muster(&["submit", "--array", "3-1", "--", "true"]).is_misuse("ends before it begins");
    World::new().muster(&["submit", "--array", "x", "--", "true"]).is_misuse("such as 1-1000");
}

#[test]
fn tasks_that_are_deleted_meanwhile_do_not_hold_up_the_end() {
    let served = Served::new();
    let mut waiting =
        Running::start(&mut served.world.command(&["submit", "--array", "1-3", "--wait", "--", "true"]));
    let selector = waiting.line();
    assert_eq!(served.muster(&["delete", "tasks", "-l", &selector]).code, 0);
    assert_eq!(waiting.code(), 1);
    assert!(waiting.note().starts_with("0 of 3 tasks succeeded, 0 failed, 3 canceled"));
}
