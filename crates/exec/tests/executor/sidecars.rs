use std::time::Duration;

use muster_types::attempt::{Cause, Observation};

use crate::yard::{LONG, Watched, Yard, codes, handle, launch};

const WAIT_FOR_GO: &str = "mkfifo fifo; echo ready; read line < fifo";

fn leftovers(ending: &muster_types::attempt::Ending) -> Vec<bool> {
    ending.containers.iter().map(|container| container.killed_as_leftover).collect()
}

fn go(yard: &Yard, task: &str) {
    std::fs::write(yard.work(task).join("fifo"), "go\n").expect("a test needs it");
}

#[test]
fn sidecars_are_killed_when_the_leader_ended() {
    let mut yard = Yard::new();
    yard.executor.start(launch("t", &[("main", WAIT_FOR_GO), ("side", "echo up; exec sleep 3600")]));
    yard.line_of("t", "main", "ready");
    yard.line_of("t", "side", "up");
    go(&yard, "t");
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), leftovers(&ending)), (vec![0, 143], vec![false, true]));
    assert_eq!((ending.cause, ending.message), (Cause::Itself, None));
}

#[test]
fn a_sidecar_that_does_not_obey_is_killed_after_the_leftover_grace() {
    let mut yard = Yard::with(|settings| settings.leftover_grace = Duration::from_millis(100));
    let stubborn = "trap '' TERM; echo up; while :; do sleep 3600; done";
    yard.executor.start(launch("t", &[("main", WAIT_FOR_GO), ("side", stubborn)]));
    yard.line_of("t", "main", "ready");
    yard.line_of("t", "side", "up");
    go(&yard, "t");
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), leftovers(&ending)), (vec![0, 137], vec![false, true]));
}

#[test]
fn a_sidecar_that_fails_first_ends_the_attempt() {
    let mut yard = Yard::new();
    let leader = "trap 'exit 0' TERM; echo ready; while :; do sleep 3600 & wait $!; done";
    let side = "mkfifo fifo; echo up; read line < fifo; exit 3";
    yard.executor.start(launch("t", &[("main", leader), ("side", side)]));
    yard.line_of("t", "main", "ready");
    yard.line_of("t", "side", "up");
    go(&yard, "t");
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), leftovers(&ending)), (vec![0, 3], vec![false, false]));
    assert_eq!(ending.cause, Cause::Itself);
    assert_eq!(
        ending.message.as_deref(),
        Some("container `side` ended with code 3 before the leading container")
    );
}

#[test]
fn a_sidecar_that_succeeds_first_changes_nothing() {
    let mut yard = Yard::new();
    let leader = "mkfifo fifo; echo ready; read line < fifo; exit 4";
    yard.executor.start(launch("t", &[("main", leader), ("side", "echo $$ > pid.new; mv pid.new pid")]));
    let pid = yard.until("the sidecar's number", |yard| {
        yard.line_of("t", "main", "ready");
        std::fs::read_to_string(yard.work("t").join("pid")).ok()
    });
    Watched::new(pid.trim()).assert_ends();
    yard.executor.poll(Some(Duration::ZERO), &mut yard.facts).expect("a test needs it");
    assert_eq!(yard.observations("t"), [Observation::Started]);
    go(&yard, "t");
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), leftovers(&ending)), (vec![4, 0], vec![false, false]));
}

#[test]
fn all_containers_are_stopped_together() {
    let mut yard = Yard::new();
    yard.executor.start(launch("t", &[("main", "exec sleep 3600"), ("side", "exec sleep 3600")]));
    yard.executor.stop(&handle("t"), LONG);
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![143, 143], Cause::Stopped));
}

#[test]
fn if_one_container_cannot_start_none_runs() {
    let mut yard = Yard::new();
    let mut launch = launch("t", &[("main", "echo $$; exec sleep 3600"), ("side", "")]);
    launch.containers[1].command = vec!["no-such-program".into()];
    yard.executor.start(launch);
    let (reason, message, transient) = yard.start_failure("t");
    assert_eq!((reason.as_str(), transient), ("CommandNotFound", false));
    assert!(message.contains("no-such-program"), "{message}");
    assert_eq!(yard.observations("t").len(), 1, "it is never said to have started");
    assert_eq!(yard.executor.running(), 0);
}
