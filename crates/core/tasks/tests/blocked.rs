//! A quota of the executor refuses an attempt: the task waits, and nothing of the attempt is left.

use muster_tasks::plan::Hold;
use muster_tasks::progress::{begin_attempt, observe_blocked, observe_started, observe_waiting, write_hold};
use muster_tasks::view::state_of;
use muster_types::task_status::{RecordKind, Stopping};
use muster_types::{Millis, State, Task, TaskSpec, Timestamp};

fn ready() -> Task {
    let mut task = Task::new("n", "t", TaskSpec::default());
    "0190b0a0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.status.state = Some(State::Ready);
    task
}

fn blocked(task: &mut Task, at: Millis) {
    let handle = begin_attempt(task, None, None, &[], at).expect("a waiting task begins");
    observe_blocked(task, &handle, "exceeded quota: q", at).expect("news of the attempt");
}

#[test]
fn a_refused_task_waits_counted_and_uses_up_nothing() {
    let mut task = ready();
    for second in 1..=3 {
        blocked(&mut task, Millis(second * 1000));
    }
    let status = &task.status;
    assert_eq!(state_of(&task), State::QuotaBlocked);
    assert_eq!((status.retries, status.lost, status.attempts.len()), (0, 0, 0));
    let waits = status.waiting_for.as_ref().unwrap();
    assert_eq!((waits.reason.as_str(), waits.message.as_str()), ("Quota", "exceeded quota: q"));
    let [record] = &status.events[..] else { panic!("{:?}", status.events) };
    assert_eq!((record.kind, record.count), (RecordKind::QuotaBlocked, 3));
}

#[test]
fn it_waits_since_it_was_refused_first() {
    let mut task = ready();
    blocked(&mut task, Millis(1000));
    blocked(&mut task, Millis(90_000));
    assert_eq!(task.status.state_since.map(Timestamp::as_second), Some(1));
    let handle = begin_attempt(&mut task, None, None, &[], Millis(91_000)).unwrap();
    observe_started(&mut task, &handle, Millis(92_000)).unwrap();
    assert_eq!(task.status.blocked_since, None);
}

#[test]
fn a_task_nobody_wants_any_more_does_not_wait() {
    let mut task = ready();
    let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).unwrap();
    task.status.stopping = Some(Stopping::Canceled);
    observe_blocked(&mut task, &handle, "exceeded quota: q", Millis(0)).unwrap();
    assert_eq!(state_of(&task), State::Canceled);
}

#[test]
fn what_a_pending_attempt_waits_for_is_said_until_it_runs() {
    let mut task = ready();
    let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).unwrap();
    observe_waiting(&mut task, &handle, "Unschedulable", "0/1 nodes", Millis(0)).unwrap();
    observe_waiting(&mut task, &handle, "ImagePullBackOff", "throttled", Millis(0)).unwrap();
    let kinds: Vec<RecordKind> = task.status.events.iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [RecordKind::PodCreated, RecordKind::PodPending, RecordKind::ImageError]);
    assert_eq!(task.status.waiting_for.as_ref().unwrap().reason, "ImagePullBackOff");
    observe_started(&mut task, &handle, Millis(0)).unwrap();
    assert_eq!(task.status.waiting_for, None);
    assert!(observe_waiting(&mut task, &handle, "Unschedulable", "late", Millis(0)).is_err());
}

#[test]
fn a_task_whose_rest_is_over_is_held_once_and_does_not_rest_again() {
    let mut task = ready();
    task.status.rest_until = Some(Timestamp::from_second(1));
    write_hold(&mut task, &Hold::Isolation, Millis(2000)).unwrap();
    assert_eq!((state_of(&task), task.status.rest_until), (State::Postponed, None));
}
