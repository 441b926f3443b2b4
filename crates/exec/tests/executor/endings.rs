use std::time::{Duration, Instant};

use muster_types::attempt::{Cause, Observation, SERVER_STOPPED};

use crate::yard::{LONG, Watched, Yard, codes, command, handle, launch};

#[test]
fn exit_codes_are_exact() {
    let mut yard = Yard::new();
    for code in [0, 1, 7, 127, 255] {
        let ending = yard.run(&format!("code{code}"), &format!("exit {code}"));
        assert_eq!((codes(&ending), ending.containers[0].signal), (vec![code], None));
        assert_eq!((ending.cause, ending.message), (Cause::Itself, None));
    }
}

#[test]
fn a_signal_is_told_from_a_code() {
    let mut yard = Yard::new();
    for signal in [9, 11, 15] {
        let ending = yard.run(&format!("signal{signal}"), &format!("kill -{signal} $$"));
        let container = &ending.containers[0];
        assert_eq!((container.exit_code, container.signal), (128 + signal, Some(signal)));
        assert_eq!(ending.cause, Cause::Itself);
    }
    let ending = yard.run("code", "exit 137");
    assert_eq!((ending.containers[0].exit_code, ending.containers[0].signal), (137, None));
}

#[test]
fn a_program_that_obeys_ends_with_143_on_timeout() {
    let mut yard = Yard::new();
    let mut launch = command("t", &["sleep", "3600"]);
    launch.timeout = Some(Duration::from_millis(50));
    let begun = Instant::now();
    yard.executor.start(launch);
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![143], Cause::Timeout));
    assert_eq!(ending.containers[0].signal, Some(15));
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[test]
fn a_program_that_ignores_the_request_ends_with_137_after_the_kill_timeout() {
    let mut yard = Yard::new();
    let mut launch = launch("t", &[("main", "trap '' TERM; echo ready; while :; do sleep 3600; done")]);
    launch.timeout = Some(Duration::from_millis(1500));
    launch.kill_timeout = Duration::from_millis(300);
    let begun = Instant::now();
    yard.executor.start(launch);
    yard.line_of("t", "main", "ready");
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![137], Cause::Timeout));
    assert_eq!(ending.containers[0].signal, Some(9));
    assert!(begun.elapsed() >= Duration::from_millis(1800));
}

#[test]
fn a_program_may_use_its_grace_to_end_as_it_likes() {
    let mut yard = Yard::new();
    // The shell may say that its child was ended too, or not: that is of no interest.
    let script =
        "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 3600 & wait $!; done 2>/dev/null";
    yard.executor.start(launch("t", &[("main", script)]));
    yard.line_of("t", "main", "ready");
    yard.executor.stop(&handle("t"), LONG);
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![5], Cause::Stopped));
    assert_eq!(yard.log("t"), "ready\nbye\n");
}

#[test]
fn a_halted_program_ends_when_asked_to() {
    let mut yard = Yard::new();
    yard.executor.start(launch("t", &[("main", "echo pid $$; kill -STOP $$; sleep 3600")]));
    yard.line_of("t", "main", "pid");
    yard.executor.stop(&handle("t"), LONG);
    assert_eq!(codes(&yard.ending("t")), [143]);
}

#[test]
fn stopping_again_with_less_grace_hastens_the_end() {
    let mut yard = Yard::new();
    yard.executor.start(launch("t", &[("main", "trap '' TERM; echo ready; while :; do sleep 3600; done")]));
    yard.line_of("t", "main", "ready");
    yard.executor.stop(&handle("t"), LONG);
    yard.executor.stop(&handle("t"), Duration::ZERO);
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![137], Cause::Stopped));
}

#[test]
fn stopping_what_does_not_run_does_nothing() {
    let mut yard = Yard::new();
    yard.executor.stop(&handle("unknown"), Duration::ZERO);
    yard.run("t", "exit 0");
    yard.executor.stop(&handle("t"), Duration::ZERO);
    yard.executor.poll(Some(Duration::ZERO), &mut yard.facts).expect("a test needs it");
    assert_eq!(yard.facts.len(), 2, "Started and Ended, nothing else: {:?}", yard.facts);
}

#[test]
fn what_a_program_leaves_in_its_group_is_killed_with_it() {
    let mut yard = Yard::new();
    let script = "sleep 3600 & echo child $!; read line < fifo";
    yard.executor.start(launch("t", &[("main", &format!("mkfifo fifo; {script}"))]));
    let child = Watched::new(&yard.line_of("t", "main", "child"));
    child.assert_runs();
    std::fs::write(yard.work("t").join("fifo"), "go\n").expect("a test needs it");
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![0], Cause::Itself));
    child.assert_ends();
}

#[test]
fn what_left_the_group_does_not_hold_up_the_end() {
    let mut yard = Yard::new();
    let script = "mkfifo fifo; setsid sh -c 'echo escaped $$; exec sleep 3600' & read line < fifo; echo done";
    yard.executor.start(launch("t", &[("main", script)]));
    let escaped = yard.line_of("t", "main", "escaped");
    std::fs::write(yard.work("t").join("fifo"), "go\n").expect("a test needs it");
    let ending = yard.ending("t");
    assert_eq!(codes(&ending), [0]);
    assert!(yard.log("t").ends_with("done\n"), "what was written before the end is kept");
    let pid =
        rustix::process::Pid::from_raw(escaped.parse().expect("a test needs it")).expect("a test needs it");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a test needs it");
}

#[test]
fn an_attempt_is_reported_as_started_and_then_as_ended_with_its_times() {
    let mut yard = Yard::new();
    let ending = yard.run("t", "exit 0");
    assert_eq!(yard.observations("t"), [Observation::Started, Observation::Ended(ending.clone())]);
    assert!(yard.facts[0].at <= ending.at && ending.at <= yard.facts[1].at);
}

#[test]
fn dropping_the_executor_kills_what_runs() {
    let mut yard = Yard::new();
    yard.executor
        .start(launch("t", &[("main", "trap '' TERM; sleep 3600 & echo child $!; echo self $$; wait")]));
    let processes = ["child", "self"].map(|word| Watched::new(&yard.line_of("t", "main", word)));
    drop(yard);
    processes.iter().for_each(Watched::assert_ends);
}

#[test]
fn many_short_programs_are_each_reported_once() {
    let mut yard = Yard::new();
    for index in 0..100 {
        yard.executor.start(command(&format!("t{index}"), &["sh", "-c", "echo out; exit 3"]));
    }
    yard.until_idle();
    assert_eq!(yard.facts.len(), 200);
    for index in 0..100 {
        let observations = yard.observations(&format!("t{index}"));
        assert!(matches!(&observations[..], [Observation::Started, Observation::Ended(ending)]
            if codes(ending) == [3] && ending.containers[0].log_bytes == 4));
    }
}

#[test]
fn programs_end_with_the_server_after_their_own_grace_and_for_that_reason() {
    let mut yard = Yard::with(|settings| settings.max_running = Some(3));
    let says_goodbye =
        "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 3600 & wait $!; done 2>/dev/null";
    let ignores = "trap '' TERM; echo ready; while :; do sleep 3600; done";
    yard.executor.start(launch("obeys", &[("main", says_goodbye)]));
    let mut short = launch("short", &[("main", ignores)]);
    short.kill_timeout = Duration::from_millis(100);
    yard.executor.start(short);
    yard.executor.start(launch("long", &[("main", ignores)]));
    yard.executor.start(launch("waits", &[("main", "echo never")]));
    for task in ["obeys", "short", "long"] {
        yard.line_of(task, "main", "ready");
    }
    let begun = Instant::now();
    yard.executor.stop_with_server(Duration::from_millis(600));
    let ending = yard.ending("short");
    assert_eq!((codes(&ending), ending.cause), (vec![137], Cause::Stopped));
    let ending = yard.ending("long");
    assert_eq!((codes(&ending), ending.cause), (vec![137], Cause::Stopped));
    assert!(begun.elapsed() >= Duration::from_millis(600), "it has the server's grace");
    let ending = yard.ending("obeys");
    assert_eq!((codes(&ending), yard.log("obeys").as_str()), (vec![0], "ready\nbye\n"));
    assert_eq!(yard.ending("waits").containers, []);
    for task in ["obeys", "short", "long", "waits"] {
        let ending = yard.ending(task);
        assert_eq!(
            (ending.cause, ending.reason.as_deref()),
            (Cause::Stopped, Some(SERVER_STOPPED)),
            "{task}"
        );
    }
}

#[test]
fn a_program_that_ended_before_the_server_was_stopped_has_ended_by_itself() {
    let mut yard = Yard::new();
    yard.executor.start(launch("t", &[("main", "echo $$; exit 7")]));
    let pid = yard.line_of("t", "main", "");
    Watched::new(&pid).assert_ends();
    yard.executor.stop_with_server(LONG);
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause, ending.reason), (vec![7], Cause::Itself, None));
}
