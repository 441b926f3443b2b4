use std::io::Write;
use std::time::Duration;

use muster_ports::runtime::{Cause, Observation, SERVER_STOPPED};
use muster_runtime_process::Settings;
use tempfile::tempdir;

use crate::yard::{LONG, Yard, codes, eventually, handle, launch, settings};

#[tokio::test]
async fn an_attempt_starts_ends_and_leaves_its_log() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "echo hello; exit 7");
    let ending = yard.ending("t").await;
    assert_eq!((codes(&ending), ending.cause), (vec![7], Cause::Itself));
    assert_eq!(yard.observations("t"), [&Observation::Started, &Observation::Ended(ending)]);
    assert_eq!(yard.log("t"), "hello\n");
}

#[tokio::test]
async fn starting_twice_starts_once() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let script = "echo run >> runs; mkfifo fifo; echo ready; read line < fifo";
    yard.start("t", script);
    yard.start("t", script);
    yard.started("t").await;
    yard.start("t", script);
    yard.runtime.stop(&handle("t"), LONG);
    let ending = yard.ending("t").await;
    yard.until_idle().await;
    assert_eq!(yard.observations("t"), [&Observation::Started, &Observation::Ended(ending)]);
    yard.start("t", script);
    yard.until_idle().await;
    assert!(matches!(yard.observations("t")[..], [_, _, Observation::Lost { .. }]));
}

#[tokio::test]
async fn what_is_asked_for_before_the_shepherd_runs_is_carried_out_in_order() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("t", "exec sleep 3600");
    yard.runtime.stop(&handle("t"), LONG);
    let ending = yard.ending("t").await;
    assert_eq!((codes(&ending), ending.cause), (vec![143], Cause::Stopped));
}

#[tokio::test]
async fn stopping_what_does_not_run_does_nothing() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.runtime.stop(&handle("unknown"), Duration::ZERO);
    yard.start("t", "exit 0");
    yard.ending("t").await;
    yard.runtime.stop(&handle("t"), Duration::ZERO);
    yard.start("other", "exit 0");
    yard.ending("other").await;
    assert_eq!(yard.seen.len(), 4);
}

#[tokio::test]
async fn timeouts_are_kept_and_reported() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let mut obeys = launch("obeys", &[("main", "exec sleep 3600")]);
    obeys.timeout = Some(Duration::from_millis(50));
    let mut refuses = launch("refuses", &[("main", "trap '' TERM; while :; do sleep 3600; done")]);
    refuses.timeout = Some(Duration::from_millis(1500));
    refuses.kill_timeout = Duration::from_millis(50);
    yard.runtime.start_all([obeys, refuses]);
    for (task, code) in [("obeys", 143), ("refuses", 137)] {
        let ending = yard.ending(task).await;
        assert_eq!((codes(&ending), ending.cause), (vec![code], Cause::Timeout), "{task}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_at_once_are_each_reported_once() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let gate = temp.path().join("gate");
    rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a test needs it");
    let script = format!("read line < {}; echo out; exit 3", gate.display());
    yard.runtime.start_all((0..500).map(|index| launch(&format!("t{index}"), &[("main", &script)])));
    for index in 0..500 {
        yard.started(&format!("t{index}")).await;
    }
    assert_eq!(yard.runtime.open().len(), 500);
    // One line lets one pass.
    let mut gate = std::fs::File::options().read(true).write(true).open(gate).expect("a test needs it");
    gate.write_all(&[b'\n'; 500]).expect("a test needs it");
    yard.until_idle().await;
    assert_eq!(yard.seen.len(), 1000);
    for index in 0..500 {
        let observations = yard.observations(&format!("t{index}"));
        assert!(matches!(observations[..], [Observation::Started, Observation::Ended(ending)]
            if codes(ending) == [3] && ending.containers[0].log_bytes == 4));
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_said_with_its_reason() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let mut missing = launch("missing", &[("main", "")]);
    missing.containers[0].command = vec!["no-such-program".into()];
    let mut huge = launch("huge", &[("main", "")]);
    huge.containers[0].command.push("x".repeat(17 << 20));
    yard.runtime.start_all([missing, huge]);
    yard.until_idle().await;
    let reason = |task| match yard.observations(task)[..] {
        [Observation::StartFailed { reason, transient: false, .. }] => reason.clone(),
        ref other => panic!("{other:?}"),
    };
    assert_eq!((reason("missing"), reason("huge")), ("CommandNotFound".into(), "TooLarge".into()));
}

#[tokio::test]
async fn without_a_shepherd_attempts_fail_to_start_and_may_be_tried_again() {
    let cases = [
        ("/no/such/program", "cannot start the shepherd /no/such/program: "),
        ("/bin/false", "the shepherd /bin/false ended before it could take orders, with exit status: 1"),
    ];
    for (program, said) in cases {
        let temp = tempdir().expect("a test needs it");
        let mut yard = Yard::with(Settings { program: program.into(), ..settings(temp.path()) });
        yard.start("t", "exit 0");
        yard.until_idle().await;
        let [Observation::StartFailed { reason, message, transient: true }] = yard.observations("t")[..]
        else {
            panic!("{:?}", yard.seen)
        };
        assert_eq!(reason, "NoShepherd");
        assert!(message.contains(said), "{message}");
    }
}

#[tokio::test]
async fn a_work_root_has_one_runtime_at_a_time() {
    let temp = tempdir().expect("a test needs it");
    let mut first = Yard::new(temp.path());
    first.start("first", "exec sleep 3600");
    first.started("first").await;
    let impatient = Settings { patience: Duration::ZERO, ..settings(temp.path()) };
    let mut second = Yard::with(impatient);
    second.start("second", "exit 0");
    second.until_idle().await;
    let [Observation::StartFailed { message, transient: true, .. }] = second.observations("second")[..]
    else {
        panic!("{:?}", second.seen)
    };
    assert!(message.contains("is in use"), "{message}");
    first.runtime.stop(&handle("first"), LONG);
    assert_eq!(codes(&first.ending("first").await), [143], "the first goes on as if nothing had been");
}

#[tokio::test]
async fn shutting_down_stops_everything_and_reports_it() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("obeys", "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 3600 & wait $!; done");
    yard.start("refuses", "trap '' TERM; echo ready; while :; do sleep 3600; done");
    for task in ["obeys", "refuses"] {
        yard.started(task).await;
        // The trap is set when the line is there.
        eventually("the trap", || (yard.log(task) == "ready\n").then_some(())).await;
    }
    let shepherd = yard.shepherd();
    let Yard { runtime, mut facts, .. } = yard;
    runtime.shutdown(Duration::from_millis(500)).await;
    shepherd.assert_has_ended();
    let mut endings = Vec::new();
    while let Some(fact) = facts.recv().await {
        if let Observation::Ended(ending) = fact.what {
            endings.push((fact.handle.task, codes(&ending), ending.cause));
        }
    }
    endings.sort_by(|one, other| one.0.cmp(&other.0));
    let expected =
        [("obeys", 4), ("refuses", 137)].map(|(task, code)| (task.to_string(), vec![code], Cause::Stopped));
    assert_eq!(endings, expected);
}

#[tokio::test]
async fn a_server_that_stops_gives_programs_their_grace_and_says_why_they_ended() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("obeys", "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 3600 & wait $!; done");
    yard.start("refuses", "trap '' TERM; echo ready; while :; do sleep 3600; done");
    for task in ["obeys", "refuses"] {
        yard.started(task).await;
        // The trap is set when the line is there.
        eventually("the trap", || (yard.log(task) == "ready\n").then_some(())).await;
    }
    let shepherd = yard.shepherd();
    let Yard { runtime, mut facts, .. } = yard;
    // Their own grace is an hour.
    runtime.stop_with_server(Duration::from_millis(500)).await;
    shepherd.assert_has_ended();
    let mut endings = Vec::new();
    while let Some(fact) = facts.recv().await {
        if let Observation::Ended(ending) = fact.what {
            endings.push((fact.handle.task.clone(), codes(&ending), ending.reason));
        }
    }
    endings.sort();
    let reason = Some(SERVER_STOPPED.to_owned());
    let expected =
        [("obeys", 4), ("refuses", 137)].map(|(task, code)| (task.to_owned(), vec![code], reason.clone()));
    assert_eq!(endings, expected);
}

#[tokio::test]
async fn what_is_started_beyond_the_limit_waits_in_the_shepherd_and_can_be_stopped_there() {
    let temp = tempdir().expect("a test needs it");
    let mut limited = settings(temp.path());
    limited.executor.max_running = Some(1);
    let mut yard = Yard::with(limited);
    for (task, script) in [("runs", "exec sleep 3600"), ("waits", "exit 1"), ("next", "exit 2")] {
        yard.start(task, script);
    }
    yard.runtime.stop(&handle("waits"), LONG);
    let ending = yard.ending("waits").await;
    assert_eq!((ending.cause, ending.containers.len()), (Cause::Stopped, 0));
    yard.runtime.stop(&handle("runs"), LONG);
    assert_eq!(codes(&yard.ending("next").await), [2]);
    assert_eq!(yard.observations("waits").len(), 1);
}
