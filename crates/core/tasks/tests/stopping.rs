//! An attempt that was told to end: what becomes of its task, however the attempt ends, and which reason counts when there are
//! several.

use muster_tasks::lifecycle::Refused;
use muster_tasks::progress::{
    begin_attempt, expire, observe_blocked, observe_ended, observe_lost, observe_start_failed,
    observe_started, request_stop,
};
use muster_tasks::settings::Settings;
use muster_tasks::view::state_of;
use muster_types::attempt::{Cause, Ending, Handle};
use muster_types::task::Retry;
use muster_types::task_status::{RecordKind, Stopping};
use muster_types::{Millis, State, Task, TaskSpec, Timestamp};

fn running() -> (Task, Handle) {
    let mut task = Task::new("n", "t", TaskSpec::default());
    "0190b0a0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.status.state = Some(State::Ready);
    let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).expect("a ready task begins");
    observe_started(&mut task, &handle, Millis(0)).expect("it runs");
    (task, handle)
}

/// The pod of an isolated task found no node and was told to end, before or after a node took it after all.
fn taken_back(ran: bool, retry: Retry) -> Task {
    let (mut task, handle) = running();
    task.spec.retry = retry;
    if !ran {
        task.status.state = Some(State::Pending);
        task.status.attempts[0].started_at = None;
    }
    request_stop(&mut task, Stopping::Unschedulable, None, Millis(0)).expect("it has an attempt");
    let settings = Settings::default();
    observe_lost(&mut task, &handle, "PodDeleted", "gone", &settings, Millis(5000)).expect("news");
    task
}

#[test]
fn a_task_whose_pod_found_no_node_goes_back_to_the_queue_rests_and_has_used_up_nothing() {
    let task = taken_back(false, Retry { lost_limit: Some(0), ..Retry::default() });
    let status = &task.status;
    assert_eq!((state_of(&task), status.retries, status.lost), (State::Ready, 0, 0));
    let rest = Settings::default().unschedulable_hold;
    assert_eq!(status.rest_until.map(Timestamp::as_second), Some(5 + rest));
    assert_eq!(status.attempts.last().map(|attempt| attempt.reason.as_str()), Some("Unschedulable"));
    let waiting = status.waiting_for.as_ref().expect("it waits");
    assert_eq!(waiting.reason, "Unschedulable");
    assert!(waiting.message.contains("when no other task is active"), "{}", waiting.message);
}

#[test]
fn a_task_that_ran_when_its_pod_was_taken_back_runs_again_only_if_it_may() {
    let again = taken_back(true, Retry::default());
    assert_eq!((state_of(&again), again.status.rest_until), (State::Ready, None));
    let never = taken_back(true, Retry { lost_limit: Some(0), ..Retry::default() });
    assert_eq!(state_of(&never), State::Failed);
}

fn preempted() -> (Task, Handle) {
    let (mut task, handle) = running();
    request_stop(&mut task, Stopping::Preempted, None, Millis(0)).expect("it may be preempted");
    (task, handle)
}

/// It waits for its turn, rests, and has used up nothing.
fn assert_is_back(task: &Task, now: i64) {
    let status = &task.status;
    assert_eq!((state_of(task), status.stopping), (State::Ready, None));
    assert_eq!((status.retries, status.lost), (0, 0), "preemption uses up nothing");
    assert_eq!(status.rest_until.map(Timestamp::as_second), Some(now + Settings::default().preempt_rest));
    assert!(status.events.iter().any(|record| record.kind == RecordKind::Preempted), "{:?}", status.events);
    assert_eq!(status.attempts.last().map(|attempt| attempt.reason.as_str()), Some("Preempted"));
}

#[test]
fn a_preempted_task_whose_executor_is_lost_goes_back_to_the_queue_and_rests() {
    let (mut task, handle) = preempted();
    let settings = Settings::default();
    observe_lost(&mut task, &handle, "ExecutorLost", "the server was restarted", &settings, Millis(5000))
        .expect("news of its attempt");
    assert_is_back(&task, 5);
}

#[test]
fn a_preempted_task_whose_attempt_ended_goes_back_to_the_queue_and_rests() {
    let (mut task, handle) = preempted();
    let ending = Ending::of_leader(143, Cause::Stopped, Millis(5000));
    observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(5000)).expect("news");
    assert_is_back(&task, 5);
}

#[test]
fn a_preempted_task_whose_attempt_could_not_be_started_goes_back_to_the_queue_and_rests() {
    let (mut task, handle) = preempted();
    let settings = Settings::default();
    observe_start_failed(&mut task, &handle, "NoSuchCommand", "gone", false, &settings, Millis(5000))
        .expect("news");
    assert_is_back(&task, 5);
}

#[test]
fn a_preempted_task_whose_attempt_a_quota_refused_waits_for_the_quota() {
    let (mut task, handle) = preempted();
    task.status.state = Some(State::Pending);
    observe_blocked(&mut task, &handle, 1, "exceeded quota: q", Millis(0)).expect("news");
    assert_eq!((state_of(&task), task.status.stopping), (State::QuotaBlocked, None));
}

#[test]
fn cancel_delete_and_expiry_win_over_preemption_however_the_attempt_ends() {
    for why in [Stopping::Canceled, Stopping::Deleted, Stopping::Expired] {
        let settings = Settings::default();
        let asked = || {
            let (mut task, handle) = preempted();
            request_stop(&mut task, why, None, Millis(0)).expect("it counts for more");
            (task, handle)
        };
        let (mut task, handle) = asked();
        observe_lost(&mut task, &handle, "ExecutorLost", "gone", &settings, Millis(0)).expect("news");
        assert_eq!(state_of(&task), State::Canceled, "{why}");
        let (mut task, handle) = asked();
        let ending = Ending::of_leader(143, Cause::Stopped, Millis(0));
        observe_ended(&mut task, &handle, &ending, &settings, Millis(0)).expect("news");
        assert_eq!(state_of(&task), State::Canceled, "{why}");
        let reason = task.status.events.iter().find(|record| record.kind == RecordKind::Canceled);
        assert_eq!(reason.map(|record| record.reason.as_str()), Some(why.as_str()));
    }
}

#[test]
fn preemption_changes_nothing_for_an_attempt_that_was_told_to_end() {
    for why in [Stopping::Canceled, Stopping::Deleted, Stopping::Expired, Stopping::Preempted] {
        let (mut task, _) = running();
        request_stop(&mut task, why, None, Millis(0)).expect("it runs");
        let refused = request_stop(&mut task, Stopping::Preempted, None, Millis(0));
        assert_eq!((refused, task.status.stopping), (Err(Refused::Stopping(why)), Some(why)));
    }
}

#[test]
fn a_task_that_was_canceled_first_does_not_expire() {
    let (mut task, _) = running();
    request_stop(&mut task, Stopping::Canceled, None, Millis(0)).expect("it runs");
    assert_eq!(expire(&mut task, Millis(0)), Err(Refused::Stopping(Stopping::Canceled)));
    assert!(!task.status.expired);
}

#[test]
fn a_task_without_an_attempt_is_not_preempted() {
    let (mut task, handle) = preempted();
    observe_lost(&mut task, &handle, "ExecutorLost", "gone", &Settings::default(), Millis(0)).expect("news");
    let refused = request_stop(&mut task, Stopping::Preempted, None, Millis(0));
    assert!(matches!(refused, Err(Refused::NotNow { state: State::Ready, .. })), "{refused:?}");
    assert_eq!((state_of(&task), task.status.stopping), (State::Ready, None));
}
