//! `muster explain`.

use crate::world::Served;

#[test]
fn a_task_that_waits_says_for_what_and_what_is_before_it() {
    let served = Served::running("1");
    let first = served.muster(&["submit", "--", "sleep", "300"]).out.trim_end().to_owned();
    assert_eq!(served.muster(&["wait", &first, "--for", "state=Running"]).code, 0);
    let flags = ["submit", "--isolated", "--", "true"];
    let second = served.muster(&flags).out.trim_end().to_owned();
    crate::world::eventually("the task to be held back", || {
        served.muster(&["explain", &second]).out.contains("Isolated")
    });
    let said = served.muster(&["explain", &second]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.starts_with(&format!("{second} is ")), "{}", said.out);
    let json = served.muster(&["explain", &second, "-o", "json"]).json();
    assert_eq!(json["kind"], "TaskExplanation");
    assert_eq!(json["waitingFor"]["reason"], "Isolated");
}

#[test]
fn a_task_that_failed_says_how_and_what_to_do() {
    let served = Served::running("1");
    let name = served.muster(&["submit", "--wait", "--", "sh", "-c", "exit 3"]).out.trim_end().to_owned();
    let said = served.muster(&["explain", &name]);
    assert!(said.out.starts_with(&format!("{name} is Failed for ")), "{}", said.out);
    assert!(said.out.contains("exit code 3") && said.out.contains("muster retry"), "{}", said.out);
    served
        .muster(&["explain", "gone"])
        .fails("there is no task \"gone\" in namespace default; `muster get tasks` shows those there are");
}
