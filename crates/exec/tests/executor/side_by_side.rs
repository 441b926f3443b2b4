//! Attempts that are started while others run: another thread starts them, and nothing about them is different.

use std::time::Duration;

use muster_types::attempt::{Cause, Observation};

use crate::yard::{LONG, Yard, codes, command, handle, launch};

/// A yard in which something runs, so that what comes next is started beside it.
fn busy_yard() -> Yard {
    let mut yard = Yard::new();
    yard.executor.start(launch("other", &[("main", "echo ready; exec sleep 3600")]));
    yard.line_of("other", "main", "ready");
    yard
}

#[test]
fn each_starts_and_ends_once_and_writes_its_own_log() {
    let mut yard = Yard::with(|settings| settings.max_running = Some(4));
    let names: Vec<String> = (0..200).map(|number| format!("t{number}")).collect();
    for name in &names {
        yard.executor.start(launch(name, &[("main", &format!("echo {name}; exit 3"))]));
    }
    yard.until("the end of all", |yard| {
        assert!(yard.executor.running() <= 4);
        yard.executor.is_idle().then_some(())
    });
    yard.until_idle();
    for name in &names {
        let seen = yard.observations(name);
        let [Observation::Started, Observation::Ended(ending)] = &seen[..] else {
            panic!("{name}: {seen:?}");
        };
        assert_eq!((codes(ending), yard.log(name)), (vec![3], format!("{name}\n")));
    }
}

#[test]
fn one_that_is_stopped_before_it_has_started_ends_like_any_other() {
    let mut yard = busy_yard();
    yard.executor.start(command("asked", &["sleep", "3600"]));
    yard.executor.stop(&handle("asked"), LONG);
    yard.executor.start(command("killed", &["sleep", "3600"]));
    yard.executor.stop(&handle("killed"), Duration::ZERO);
    for (task, code) in [("asked", 143), ("killed", 137)] {
        let ending = yard.ending(task);
        assert_eq!(ending.cause, Cause::Stopped, "{task}");
        // It depends on how soon the other thread takes it.
        if ending.containers.is_empty() {
            assert_eq!(yard.observations(task), [Observation::Ended(ending)]);
        } else {
            assert_eq!(codes(&ending), [code], "{task}");
            assert_eq!(yard.observations(task), [Observation::Started, Observation::Ended(ending)]);
        }
    }
}

#[test]
fn one_that_cannot_be_started_leaves_nothing_and_can_be_started_again() {
    let mut yard = busy_yard();
    yard.executor.start(command("t", &["/no/such/program"]));
    assert_eq!(yard.start_failure("t").0, "CommandNotFound");
    assert_eq!(yard.dirs.stored().expect("a test needs it"), [handle("other")]);
    yard.facts.clear();
    assert_eq!(codes(&yard.run("t", "exit 6")), [6]);
}

#[test]
fn asking_for_one_twice_starts_it_once() {
    let mut yard = busy_yard();
    let launch = launch("t", &[("main", "echo run")]);
    yard.executor.start(launch.clone());
    yard.executor.start(launch.clone());
    yard.executor.take_up(&handle("t"));
    let ending = yard.ending("t");
    assert_eq!(yard.observations("t"), [Observation::Started, Observation::Ended(ending)]);
    assert_eq!(yard.log("t"), "run\n");
}

#[test]
fn one_that_said_nothing_and_ended_is_not_started_twice() {
    let mut yard = Yard::with(|settings| settings.max_running = Some(2));
    for round in 0..2 {
        for number in 0..50 {
            yard.executor.start(command(&format!("t{number}"), &["true"]));
        }
        yard.until_idle();
        for number in 0..50 {
            let seen = yard.observations(&format!("t{number}"));
            let ended = seen.iter().filter(|what| matches!(what, Observation::Ended(_))).count();
            let lost = seen.iter().filter(|what| matches!(what, Observation::Lost { .. })).count();
            assert_eq!((ended, lost), (1, round), "t{number}: {seen:?}");
        }
    }
    assert!(yard.dirs.stored().expect("a test needs it").len() < 50, "directories are used again");
}

#[test]
fn killing_everything_reaches_what_is_being_started() {
    let mut yard = busy_yard();
    for number in 0..8 {
        yard.executor.start(command(&format!("t{number}"), &["sleep", "3600"]));
    }
    yard.executor.kill_all();
    assert_eq!(yard.executor.running(), 0);
}

#[test]
fn what_a_short_one_leaves_behind_may_still_write_for_a_moment() {
    let mut yard = Yard::with(|settings| {
        settings.max_running = Some(2);
        settings.drain_timeout = LONG;
    });
    for number in 0..20 {
        // Before it has left its group, it would be ended with it.
        let script =
            "mkfifo left; setsid sh -c 'echo > left; sleep 0.05; echo late' & read line < left; echo early";
        yard.executor.start(launch(&format!("t{number}"), &[("main", script)]));
    }
    yard.until_idle();
    for number in 0..20 {
        assert_eq!(yard.log(&format!("t{number}")), "early\nlate\n", "t{number}");
    }
}
