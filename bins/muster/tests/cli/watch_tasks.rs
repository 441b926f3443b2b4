//! `muster watch`.

use crate::world::{Running, Served};

#[test]
fn one_task_is_shown_until_it_has_ended() {
    let served = Served::running("1");
    let submit = ["submit", "--", "sh", "-c", "until test -e ~/go; do sleep 0.01; done"];
    let name = served.muster(&submit).out.trim_end().to_owned();
    let mut watch = Running::start(&mut served.world.command(&["watch", &name]));
    watch.wait_for_start(&format!("{name} Running"));
    served.world.file("go", "");
    watch.wait_for_start(&format!("{name} Succeeded"));
    assert_eq!(watch.code(), 0);
}

#[test]
fn all_tasks_are_shown_as_they_come_and_go() {
    let served = Served::new();
    let watch = Running::start(&mut served.world.command(&["watch"]));
    let name = served.muster(&["submit", "--suspend", "--", "true"]).out.trim_end().to_owned();
    watch.wait_for(&format!("{name} Created"));
    assert_eq!(served.muster(&["delete", "task", &name]).code, 0);
    watch.wait_for(&format!("{name} deleted"));
}
