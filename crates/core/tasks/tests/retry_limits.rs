//! How often a task is tried again: one limit over all failures that `retry.on` names, or one of its own for lost executors.

use muster_tasks::progress::{
    Ignored, begin_attempt, observe_ended, observe_lost, observe_start_failed, observe_started, request_stop,
};
use muster_tasks::settings::Settings;
use muster_tasks::view::state_of;
use muster_types::attempt::{Cause, Ending, Handle, SERVER_STOPPED};
use muster_types::task::{Retry, RetryOn};
use muster_types::task_status::Stopping;
use muster_types::{Millis, State, Task, TaskSpec, Timestamp};
use serde_json::json;

fn ready(spec: &serde_json::Value) -> Task {
    let spec: TaskSpec = serde_json::from_value(spec.clone()).expect("a spec");
    let mut task = Task::new("n", "t", spec);
    "0190b0a0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.status.state = Some(State::Ready);
    task
}

/// When each attempt began, in milliseconds, if each takes 2 ms to fail and the next begins as soon as it may; no more than so many.
fn begun(task: &mut Task, most: usize, fail: impl Fn(&mut Task, &Handle, Millis)) -> Vec<i64> {
    let (mut now, mut begun) = (Millis(0), Vec::new());
    while state_of(task) == State::Ready && begun.len() < most {
        now = now.max(Millis(task.status.rest_until.map_or(0, Timestamp::as_second) * 1000));
        let handle = begin_attempt(task, None, None, &[], now).expect("a ready task begins");
        begun.push(now.0);
        now = Millis(now.0 + 2);
        fail(task, &handle, now);
    }
    begun
}

fn exit(task: &mut Task, handle: &Handle, code: i32, now: Millis) -> Result<(), Ignored> {
    observe_ended(task, handle, &Ending::of_leader(code, Cause::Itself, now), &Settings::default(), now)
}

fn exits(task: &mut Task, handle: &Handle, now: Millis) {
    exit(task, handle, 1, now).expect("news of the attempt that runs");
}

fn cannot_start(task: &mut Task, handle: &Handle, now: Millis) {
    let rules = Settings::default();
    observe_start_failed(task, handle, "CommandNotFound", "no such command", false, &rules, now)
        .expect("news of the attempt that runs");
}

/// Attempts until the task fails, when every attempt loses its executor.
fn attempts_when_lost(retry: Retry) -> u32 {
    lost_for_good(retry).status.attempt
}

/// A task of which every attempt lost its executor.
fn lost_for_good(retry: Retry) -> Task {
    let mut task = Task::new("n", "t", TaskSpec { retry, ..TaskSpec::default() });
    "0190b0a0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.status.state = Some(State::Ready);
    while state_of(&task) == State::Ready {
        let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).expect("a ready task begins");
        observe_lost(&mut task, &handle, "ExecutorLost", "gone", &Settings::default(), Millis(0))
            .expect("news of the attempt that runs");
    }
    task
}

#[test]
fn a_lost_executor_has_a_limit_of_its_own_unless_it_is_named() {
    assert_eq!(attempts_when_lost(Retry::default()), 4);
    assert_eq!(attempts_when_lost(Retry { limit: Some(0), lost_limit: Some(1), ..Retry::default() }), 2);
}

#[test]
fn named_losses_count_towards_the_one_limit() {
    let on = Some(vec![RetryOn::NonZeroExit, RetryOn::ExecutorLost]);
    assert_eq!(attempts_when_lost(Retry { limit: Some(2), on: on.clone(), ..Retry::default() }), 3);
    assert_eq!(attempts_when_lost(Retry { limit: Some(0), on, ..Retry::default() }), 1);
}

/// What a clean stop of the server makes of a task that runs.
fn stop_with_server(task: &mut Task) {
    let handle = begin_attempt(task, None, None, &[], Millis(0)).expect("a ready task begins");
    let ending = Ending {
        reason: Some(SERVER_STOPPED.to_owned()),
        ..Ending::of_leader(143, Cause::Stopped, Millis(0))
    };
    observe_ended(task, &handle, &ending, &Settings::default(), Millis(0))
        .expect("news of the attempt that runs");
}

#[test]
fn clean_stops_of_the_server_use_up_no_limit() {
    let policies = [
        json!({}),
        json!({"retry": {"limit": 0, "lostLimit": 1}}),
        json!({"retry": {"limit": 1, "on": ["ExecutorLost"]}}),
        json!({"restart": {"attempts": 1}}),
        json!({"reschedule": {"attempts": 1, "delay": "1h"}}),
    ];
    for policy in policies {
        let mut task = ready(&policy);
        for number in 1..=20 {
            stop_with_server(&mut task);
            let status = &task.status;
            assert_eq!(
                (state_of(&task), status.attempt, status.rest_until),
                (State::Ready, number, None),
                "{policy}"
            );
            assert_eq!((status.lost, status.retries, &status.recovery), (0, 0, &None), "{policy}");
            let last = status.attempts.last().expect("it has ended");
            assert_eq!((last.reason.as_str(), last.exit_code), (SERVER_STOPPED, Some(143)));
        }
        assert_eq!(task.status.message, "To be tried again: the server was stopped");
    }
}

#[test]
fn an_attempt_that_could_not_be_ended_in_time_by_a_clean_stop_uses_up_no_limit_either() {
    let mut task = ready(&json!({"retry": {"lostLimit": 1}}));
    for _ in 0..3 {
        let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).expect("a ready task begins");
        observe_lost(&mut task, &handle, SERVER_STOPPED, "the server ended", &Settings::default(), Millis(0))
            .expect("news of the attempt that runs");
    }
    assert_eq!((state_of(&task), task.status.lost), (State::Ready, 0));
}

#[test]
fn a_task_that_may_not_run_twice_goes_back_to_the_queue_if_the_server_is_stopped_before_it_ran() {
    let mut task = ready(&json!({"retry": {"lostLimit": 0}}));
    let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).expect("a ready task begins");
    let ending = Ending { reason: Some(SERVER_STOPPED.to_owned()), ..Ending::before_start(Millis(0)) };
    observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(0))
        .expect("news of the attempt that was asked for");
    assert_eq!((state_of(&task), task.status.lost, task.status.retries), (State::Ready, 0, 0));
}

#[test]
fn a_task_that_may_not_run_twice_fails_when_the_server_is_stopped() {
    let policies = [
        json!({"retry": {"lostLimit": 0}}),
        json!({"retry": {"limit": 0, "on": ["ExecutorLost"]}}),
        json!({"reschedule": {"attempts": 0}}),
    ];
    for policy in policies {
        let mut task = ready(&policy);
        stop_with_server(&mut task);
        assert_eq!(state_of(&task), State::Failed, "{policy}");
    }
}

#[test]
fn the_error_of_a_task_that_was_lost_too_often_names_the_limit() {
    let errors = |retry: Retry| lost_for_good(retry).status.errors[0].description.clone();
    assert_eq!(errors(Retry::default()), "(muster) gone (lost 4 times, retry.lostLimit is 3)");
    assert_eq!(
        errors(Retry { lost_limit: Some(0), ..Retry::default() }),
        "(muster) gone (retry.lostLimit is 0)"
    );
    let task = lost_for_good(Retry::default());
    assert_eq!(task.status.message, "gone (lost 4 times, retry.lostLimit is 3)");
}

#[test]
fn restarts_and_reschedules_are_counted_beyond_the_attempts_that_are_kept() {
    let policies = json!({
        "restart": {"attempts": 3}, "reschedule": {"attempts": 3, "delay": "0s"},
    });
    let mut task = ready(&policies);
    assert_eq!(begun(&mut task, 100, exits).len(), 16, "four rounds of four");
    assert_eq!(state_of(&task), State::Failed);
    assert_eq!(task.status.attempt, 16);
}

#[test]
fn the_most_that_policies_allow_is_a_hundred_attempts() {
    let policies = json!({
        "restart": {"attempts": 9, "interval": "24h"},
        "reschedule": {"attempts": 9, "interval": "24h", "delay": "0s"},
    });
    assert_eq!(begun(&mut ready(&policies), 1000, exits).len(), 100);
}

#[test]
fn an_attempt_that_cannot_be_started_uses_up_a_restart() {
    let mut task = ready(&json!({ "restart": {"attempts": 2} }));
    assert_eq!(begun(&mut task, 100, cannot_start).len(), 3);
    assert_eq!(state_of(&task), State::Failed);
}

#[test]
fn a_preempted_attempt_uses_up_no_restart() {
    let mut task = ready(&json!({ "restart": {"attempts": 1} }));
    let preempted = begun(&mut task, 30, |task, handle, now| {
        request_stop(task, Stopping::Preempted, None, now).expect("it has an attempt");
        exit(task, handle, 143, now).expect("news of the attempt that runs");
    });
    assert_eq!((preempted.len(), state_of(&task)), (30, State::Ready));
    assert_eq!(begun(&mut task, 30, exits).len(), 2);
}

#[test]
fn attempts_that_fail_at_once_begin_at_least_a_second_apart_whatever_the_policy_says() {
    let policies = [
        json!({ "retry": {"limit": 1000, "on": ["NonZeroExit"]} }),
        json!({ "retry": {"limit": 1000, "on": ["NonZeroExit"], "backoff": {"initial": "0s"}} }),
        json!({ "reschedule": {"unlimited": true, "delay": "0s"} }),
        json!({ "restart": {"attempts": 9, "interval": "1s", "mode": "delay"} }),
    ];
    for policy in policies {
        let begun = begun(&mut ready(&policy), 20, exits);
        let gaps: Vec<i64> = begun.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(gaps.len() == 19 && gaps.iter().all(|gap| (1000..=2000).contains(gap)), "{policy} {gaps:?}");
    }
}

#[test]
fn an_attempt_that_ran_for_a_while_is_followed_by_the_next_at_once() {
    let mut task = ready(&json!({ "retry": {"limit": 5, "on": ["NonZeroExit"]} }));
    let handle = begin_attempt(&mut task, None, None, &[], Millis(10_000)).unwrap();
    observe_started(&mut task, &handle, Millis(10_100)).unwrap();
    exits(&mut task, &handle, Millis(12_000));
    assert_eq!((state_of(&task), task.status.rest_until), (State::Ready, None));
}

#[test]
fn an_end_that_is_told_twice_does_not_use_up_another_retry() {
    let mut task = ready(&json!({ "retry": {"limit": 1, "on": ["NonZeroExit"]} }));
    let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).unwrap();
    exits(&mut task, &handle, Millis(2000));
    let before = task.clone();
    assert_eq!(exit(&mut task, &handle, 1, Millis(3000)), Err(Ignored::OldAttempt));
    assert_eq!(task, before);
}
