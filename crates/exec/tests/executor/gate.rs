use muster_types::attempt::{Cause, Observation};

use crate::yard::{LONG, Yard, codes, command, handle, launch};

/// Waits for a line in its pipe.
const WAITS: &str = "mkfifo fifo; echo ready; read line < fifo";

fn gated(max_running: usize) -> Yard {
    Yard::with(|settings| settings.max_running = Some(max_running))
}

fn go(yard: &mut Yard, task: &str) {
    yard.line_of(task, "main", "ready");
    std::fs::write(yard.work(task).join("fifo"), "go\n").expect("a test needs it");
}

#[test]
fn never_more_run_than_may_and_all_of_them_run() {
    let mut yard = gated(3);
    // Each writes down that it runs while it does, and how many it saw.
    let script = "d=../../running; mkdir -p $d; touch $d/$$; ls $d | wc -l; sleep 0.01; rm $d/$$";
    for index in 0..60 {
        yard.executor.start(launch(&format!("t{index}"), &[("main", script)]));
        assert!(yard.executor.running() <= 3);
    }
    yard.until("the end of all", |yard| {
        assert!(yard.executor.running() <= 3);
        yard.executor.is_idle().then_some(())
    });
    for index in 0..60 {
        let task = format!("t{index}");
        assert_eq!(codes(&yard.ending(&task)), [0]);
        let seen: usize = yard.log(&task).trim().parse().expect("a count");
        assert!((1..=3).contains(&seen), "{task} saw {seen}");
    }
}

#[test]
fn what_waits_starts_in_order_as_soon_as_another_ends() {
    let mut yard = gated(1);
    for task in ["a", "b", "c"] {
        yard.executor.start(launch(task, &[("main", WAITS)]));
    }
    for task in ["a", "b", "c"] {
        go(&mut yard, task);
        yard.ending(task);
    }
    let order: Vec<_> = yard.facts.iter().map(|fact| fact.handle.task.as_str()).collect();
    assert_eq!(order, ["a", "a", "b", "b", "c", "c"]);
}

#[test]
fn what_is_stopped_while_it_waits_ends_without_having_started() {
    let mut yard = gated(1);
    yard.executor.start(launch("runs", &[("main", WAITS)]));
    for task in ["waits", "next"] {
        yard.executor.start(launch(task, &[("main", "exit 4")]));
    }
    yard.executor.stop(&handle("waits"), LONG);
    let ending = yard.ending("waits");
    assert_eq!((ending.cause, ending.containers.len()), (Cause::Stopped, 0));
    assert_eq!(yard.observations("waits"), [Observation::Ended(ending)]);
    assert!(!yard.work("waits").exists(), "nothing was made for it");
    go(&mut yard, "runs");
    assert_eq!(codes(&yard.ending("next")), [4], "the others are not held up");
    yard.executor.start(launch("waits", &[("main", "exit 5")]));
    yard.until_idle();
    assert_eq!(yard.observations("waits").len(), 3, "it can still be started");
}

#[test]
fn what_is_taken_back_while_it_waits_leaves_no_trace_and_what_runs_cannot_be_taken_back() {
    let mut yard = gated(1);
    yard.executor.start(launch("runs", &[("main", WAITS)]));
    let mut ahead = launch("ahead", &[("main", "exit 4")]);
    ahead.prefetch = 7;
    yard.executor.start(ahead);
    yard.executor.start(launch("next", &[("main", "exit 0")]));
    for task in ["ahead", "runs", "unknown"] {
        yard.executor.recall(&handle(task));
    }
    assert_eq!(yard.executor.waiting(), 1);
    go(&mut yard, "runs");
    assert_eq!(codes(&yard.ending("runs")), [0], "it was not disturbed");
    yard.ending("next");
    assert_eq!(yard.observations("ahead"), [Observation::Returned { prefetch: 7 }]);
    assert!(!yard.work("ahead").exists(), "nothing was made for it");
    yard.executor.start(launch("ahead", &[("main", "exit 5")]));
    assert_eq!(codes(&yard.ending("ahead")), [5], "it can still be started");
}

#[test]
fn starting_twice_what_waits_starts_it_once() {
    let mut yard = gated(1);
    yard.executor.start(launch("runs", &[("main", WAITS)]));
    for _ in 0..3 {
        yard.executor.start(launch("waits", &[("main", "exit 0")]));
    }
    assert_eq!(yard.executor.waiting(), 1);
    go(&mut yard, "runs");
    let ending = yard.ending("waits");
    assert_eq!(yard.observations("waits"), [Observation::Started, Observation::Ended(ending)]);
}

#[test]
fn what_cannot_start_leaves_its_place_to_the_next() {
    let mut yard = gated(1);
    yard.executor.start(launch("runs", &[("main", WAITS)]));
    for task in ["missing1", "missing2"] {
        yard.executor.start(command(task, &["no-such-program"]));
    }
    yard.executor.start(launch("last", &[("main", "exit 6")]));
    go(&mut yard, "runs");
    assert_eq!(codes(&yard.ending("last")), [6]);
    for task in ["missing1", "missing2"] {
        assert_eq!(yard.start_failure(task).0, "CommandNotFound");
    }
}

#[test]
fn what_waits_and_was_started_before_is_lost_when_its_turn_comes() {
    let mut yard = gated(1);
    yard.executor.start(launch("runs", &[("main", WAITS)]));
    std::fs::create_dir_all(yard.work("before")).expect("a test needs it");
    yard.executor.start(launch("before", &[("main", "exit 0")]));
    yard.executor.start(launch("next", &[("main", "exit 0")]));
    go(&mut yard, "runs");
    yard.ending("next");
    assert!(matches!(&yard.observations("before")[..], [Observation::Lost { .. }]));
}

#[test]
fn stopping_all_starts_none_of_those_that_wait() {
    let mut yard = gated(2);
    for index in 0..20 {
        yard.executor.start(launch(&format!("t{index}"), &[("main", "exec sleep 3600")]));
    }
    yard.executor.stop_all(LONG);
    yard.until_idle();
    let mut ran = 0;
    for index in 0..20 {
        let ending = yard.ending(&format!("t{index}"));
        assert_eq!(ending.cause, Cause::Stopped);
        ran += ending.containers.len();
    }
    let started = yard.facts.iter().filter(|fact| fact.what == Observation::Started).count();
    assert!((1..=2).contains(&started) && started == ran, "{started} were started, {ran} ran");
}

#[test]
fn dropping_the_executor_starts_none_of_those_that_wait() {
    let mut yard = gated(1);
    for task in ["runs", "waits"] {
        yard.executor.start(launch(task, &[("main", "exec sleep 3600")]));
    }
    yard.executor.kill_all();
    assert_eq!((yard.executor.running(), yard.executor.waiting()), (0, 0));
    assert!(!yard.work("waits").exists());
}
