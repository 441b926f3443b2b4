//! `muster cancel`.

use crate::world::{Served, World};

fn sleeper(served: &Served) -> String {
    served.muster(&["submit", "--", "sleep", "300"]).out.trim_end().to_owned()
}

#[test]
fn a_task_that_waits_or_runs_is_canceled() {
    let served = Served::running("1");
    let (first, second) = (sleeper(&served), sleeper(&served));
    assert_eq!(served.muster(&["wait", &first, "--for", "state=Running"]).code, 0);
    let said = served.muster(&["cancel", &second, &first, "--wait"]);
    said.is(&format!("{second} canceled\n{first} canceled\n"));
}

#[test]
fn a_task_that_has_ended_stays_as_it_is() {
    let served = Served::running("1");
    let name = served.muster(&["submit", "--wait", "--", "true"]).out.trim_end().to_owned();
    served.muster(&["cancel", &name]).is(&format!("{name} had ended as Succeeded\n"));
}

#[test]
fn many_are_canceled_by_label_or_all_at_once() {
    let served = Served::running("1");
    let selector = served.muster(&["submit", "--array", "1-30", "--", "sleep", "300"]).out;
    let other = sleeper(&served);
    let said = served.muster(&["cancel", "-l", selector.trim_end(), "--wait"]);
    assert_eq!((said.code, said.out.matches(" canceled\n").count()), (0, 30), "{}", said.err);
    served.muster(&["cancel", "--all", "--wait"]).is(&format!("{other} canceled\n"));
    let said = served.muster(&["cancel", "--all"]);
    assert_eq!((said.code, said.err.as_str()), (0, "No task is left that could be canceled.\n"));
}

#[test]
fn which_ones_has_to_be_said() {
    let world = World::new();
    world.muster(&["cancel"]).is_misuse("required");
    world.muster(&["cancel", "a", "--all"]).is_misuse("cannot be used with");
    let served = Served::new();
    served
        .muster(&["cancel", "a"])
        .fails("there is no task \"a\" in namespace default; `muster get tasks` shows those there are");
}
