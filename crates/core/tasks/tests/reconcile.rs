//! Robots that come back with what counted as lost: which attempt goes on, which is ended, and what is said of it.
//!
//! A story is a line of words: `start` begins an attempt, `run N`, `lost N`, `ok N`, `bad N` and `gone N` are news of attempts,
//! `cancel` is the user. What follows `=>` is the task afterwards: its state and attempt, the one that is awaited, and the
//! attempts that somebody is to end.

use muster_tasks::progress::{
    ROBOT_LOST, begin_attempt, observe_ended, observe_lost, observe_started, request_stop,
};
use muster_tasks::reconcile::{
    Return, give_up_original, leaving_of, observe_left, observe_original, original_of,
};
use muster_tasks::settings::Settings;
use muster_tasks::view::state_of;
use muster_types::attempt::{Cause, EXECUTOR_LOST, Ending, Handle, Observation};
use muster_types::recovery::{Disconnect, Reconcile};
use muster_types::task_status::Stopping;
use muster_types::{Millis, State, Task, TaskSpec};

struct Story {
    task: Task,
    ended: Vec<u32>,
    /// News that counts when the copy that is leaving has ended.
    waiting: Vec<(u32, Observation)>,
}

impl Story {
    fn new(reconcile: Reconcile) -> Self {
        let disconnect = Some(Disconnect { reconcile, ..Disconnect::default() });
        let mut task = Task::new("n", "t", TaskSpec { disconnect, ..TaskSpec::default() });
        "0190b0a0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
        task.status.state = Some(State::Ready);
        Self { task, ended: Vec::new(), waiting: Vec::new() }
    }

    fn handle(&self, attempt: u32) -> Handle {
        Handle { task: self.task.metadata.uid.clone(), attempt }
    }

    /// What the engine does with news, without its effects.
    fn hear(&mut self, attempt: u32, what: &Observation) {
        let (handle, now, settings) = (self.handle(attempt), Millis(1000), Settings::default());
        let task = &mut self.task;
        let is_end = !matches!(what, Observation::Started);
        if let Some(leaving) = leaving_of(task).filter(|_| is_end) {
            if leaving == handle {
                observe_left(task);
                for (attempt, what) in std::mem::take(&mut self.waiting) {
                    self.hear(attempt, &what);
                }
            } else {
                self.waiting.push((attempt, what.clone()));
            }
            return;
        }
        if original_of(task).as_ref() == Some(&handle) {
            if let Ok(Return::Kept { replacement: Some(other) }) =
                observe_original(task, &handle, what, &settings, now)
            {
                self.ended.push(other.attempt);
                if is_end {
                    self.waiting.push((attempt, what.clone()));
                }
            }
            return;
        }
        let taken = match what {
            Observation::Started => observe_started(task, &handle, now),
            Observation::Ended(ending) => observe_ended(task, &handle, ending, &settings, now),
            Observation::Lost { reason, message } => {
                observe_lost(task, &handle, reason, message, &settings, now)
            }
            other => unreachable!("{other:?} is not told"),
        };
        let is_end = state_of(task).is_terminal() || matches!(what, Observation::Ended(_));
        if taken.is_ok()
            && is_end
            && let Some(original) = give_up_original(task, "the attempt that replaced it ended first", now)
        {
            self.ended.push(original.attempt);
        }
    }

    fn tell(&mut self, word: &str) {
        let (what, number) = word.split_once(' ').unwrap_or((word, "0"));
        let number = number.parse().expect("a number");
        let lost = |reason: &str| Observation::Lost { reason: reason.to_owned(), message: String::new() };
        let ended = |code| Observation::Ended(Ending::of_leader(code, Cause::Itself, Millis(1000)));
        match what {
            "start" => drop(begin_attempt(&mut self.task, None, None, &[], Millis(0)).expect("it may start")),
            "run" => self.hear(number, &Observation::Started),
            "lost" => self.hear(number, &lost(ROBOT_LOST)),
            "gone" => self.hear(number, &lost(EXECUTOR_LOST)),
            "ok" => self.hear(number, &ended(0)),
            "bad" => self.hear(number, &ended(1)),
            "cancel" => {
                request_stop(&mut self.task, Stopping::Canceled, None, Millis(0)).expect("it has not ended");
                let given_up = give_up_original(&mut self.task, "its task is to end", Millis(0));
                self.ended.extend(given_up.map(|original| original.attempt));
            }
            other => unreachable!("{other} is no word of a story"),
        }
    }
}

fn told(reconcile: Reconcile, story: &str) -> String {
    let mut told = Story::new(reconcile);
    for word in story.split(", ") {
        told.tell(word);
    }
    let awaited =
        told.task.status.original.map_or_else(String::new, |original| format!(", awaits {original}"));
    let leaving = told.task.status.leaving.map_or_else(String::new, |it| format!(", without {it}"));
    let ended = told.ended.iter().fold(String::new(), |ended, next| format!("{ended}, ends {next}"));
    format!("{} {}{awaited}{leaving}{ended}", state_of(&told.task), told.task.status.attempt)
}

#[test]
fn an_original_that_comes_back_in_time_is_the_tasks_attempt_again() {
    for (story, then) in [
        ("start, run 1, lost 1", "Ready 1, awaits 1"),
        ("start, run 1, lost 1, run 1", "Running 1"),
        ("start, run 1, lost 1, start, run 1", "Running 1, without 2, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1", "Running 1, without 2, ends 2"),
        ("start, run 1, lost 1, ok 1", "Succeeded 1"),
        // Whatever the other one says when it ends: it has ended.
        ("start, run 1, lost 1, start, run 2, run 1, bad 2", "Running 1, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1, gone 2", "Running 1, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1, bad 2, ok 1", "Succeeded 1, ends 2"),
    ] {
        assert_eq!(told(Reconcile::KeepOriginal, story), then, "{story}");
    }
}

#[test]
fn a_task_does_not_end_before_the_copy_that_is_leaving_has() {
    for (story, then) in [
        ("start, run 1, lost 1, start, run 2, ok 1", "Running 1, without 2, ends 2"),
        ("start, run 1, lost 1, start, run 2, ok 1, bad 2", "Succeeded 1, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1, bad 1", "Running 1, without 2, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1, bad 1, lost 2", "Failed 1, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1, lost 1", "Running 1, without 2, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1, cancel, bad 1", "Running 1, without 2, ends 2"),
        ("start, run 1, lost 1, start, run 2, run 1, cancel, bad 1, bad 2", "Canceled 1, ends 2"),
    ] {
        assert_eq!(told(Reconcile::KeepOriginal, story), then, "{story}");
    }
}

#[test]
fn an_original_that_comes_back_in_vain_leaves_the_task_to_its_replacement() {
    for (story, then) in [
        ("start, run 1, lost 1, start, run 2, bad 1", "Running 2"),
        ("start, run 1, lost 1, start, run 2, gone 1", "Running 2"),
        ("start, run 1, lost 1, start, run 2, gone 1, run 1", "Running 2"),
        ("start, run 1, lost 1, start, run 2, ok 2", "Succeeded 2, ends 1"),
        ("start, run 1, lost 1, start, run 2, ok 2, ok 1", "Succeeded 2, ends 1"),
        ("start, run 1, lost 1, start, run 2, bad 2", "Failed 2, ends 1"),
        ("start, run 1, lost 1, start, run 2, cancel", "Running 2, ends 1"),
        ("start, run 1, lost 1, cancel", "Canceled 1, ends 1"),
    ] {
        assert_eq!(told(Reconcile::KeepOriginal, story), then, "{story}");
    }
}

#[test]
fn no_more_than_two_attempts_are_ever_wanted_and_no_number_is_used_again() {
    for (story, then) in [
        ("start, run 1, lost 1, start, run 2, lost 2", "Ready 2, awaits 1"),
        ("start, run 1, lost 1, start, run 2, lost 2, run 2", "Ready 2, awaits 1"),
        ("start, run 1, lost 1, start, run 2, lost 2, start, run 3, run 1", "Running 1, without 3, ends 3"),
        ("start, run 1, lost 1, start, run 2, run 1, bad 2, lost 1, start", "Pending 3, awaits 1, ends 2"),
    ] {
        assert_eq!(told(Reconcile::KeepOriginal, story), then, "{story}");
    }
}

#[test]
fn what_was_not_seen_to_run_or_is_gone_for_good_is_not_awaited() {
    for (story, then) in [
        ("start, lost 1", "Ready 1"),
        ("start, run 1, gone 1", "Ready 1"),
        ("start, run 1, gone 1, run 1", "Ready 1"),
    ] {
        assert_eq!(told(Reconcile::KeepOriginal, story), then, "{story}");
    }
}

#[test]
fn without_the_policy_the_replacement_stays_whatever_comes_back() {
    for (story, then) in [
        ("start, run 1, lost 1, run 1", "Ready 1"),
        ("start, run 1, lost 1, start, run 2, run 1, ok 1", "Running 2"),
    ] {
        assert_eq!(told(Reconcile::KeepReplacement, story), then, "{story}");
    }
}

#[test]
fn the_records_say_which_attempt_was_kept_and_why_the_other_was_not() {
    let said = |story: &str| {
        let mut told = Story::new(Reconcile::KeepOriginal);
        for word in story.split(", ") {
            told.tell(word);
        }
        let uid = format!("{}-", told.task.metadata.uid);
        let records = told.task.status.events.iter().rev().take(2);
        records.map(|it| format!("{} {}", it.kind, it.reason.replace(&uid, ""))).collect::<Vec<_>>()
    };
    let kept = said("start, run 1, lost 1, start, run 2, run 1");
    assert_eq!(kept, ["PodRunning 1", "PodDeleted 2: the attempt that it replaced is back"]);
    let given_up = said("start, run 1, lost 1, start, run 2, bad 1");
    assert_eq!(given_up[0], "PodDeleted 1: it came back and had failed");
    let late = said("start, run 1, lost 1, start, run 2, ok 2");
    assert_eq!(late[0], "PodDeleted 1: the attempt that replaced it ended first");
}
