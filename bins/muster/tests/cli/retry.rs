//! `muster retry`.

use crate::world::Served;

#[test]
fn a_task_that_failed_is_made_anew_and_names_the_old_one() {
    let served = Served::running("1");
    let old = served
        .muster(&["submit", "--wait", "--label", "a=b", "--", "test", "-e", "go"])
        .out
        .trim_end()
        .to_owned();
    let said = served.muster(&["retry", &old]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let new = said.out.trim_end();
    let task = served.muster(&["get", "task", new, "-o", "json"]).json();
    assert_eq!(task["metadata"]["annotations"]["muster.dev/retry-of"], old.as_str());
    assert_eq!(task["metadata"]["labels"]["a"], "b");
    assert_eq!(task["spec"]["container"]["command"][0], "test");
}

#[test]
fn those_of_an_array_that_failed_are_made_anew() {
    let served = Served::running("2");
    let script = "test $MUSTER_INDEX -gt 2";
    let selector = served.muster(&["submit", "--array", "1-5", "--wait", "--", "sh", "-c", script]).out;
    let said = served.muster(&["retry", "-l", selector.trim_end()]);
    assert_eq!((said.code, said.out.lines().count()), (0, 2), "{}", said.err);
    let said = served.muster(&["retry", "-l", "no=such"]);
    assert_eq!((said.code, said.err.as_str()), (0, "No task failed or was canceled.\n"));
}

#[test]
fn a_task_that_has_not_ended_is_not_made_anew() {
    let served = Served::running("1");
    let name = served.muster(&["submit", "--suspend", "--", "true"]).out.trim_end().to_owned();
    let said = served.muster(&["retry", &name]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("ended"), "{}", said.err);
}
