//! A quota of the executor refuses an attempt: the task waits, and nothing of the attempt is left.

use muster_tasks::plan::Hold;
use muster_tasks::progress::{
    Ignored, begin_attempt, observe_blocked, observe_ended, observe_lost, observe_removed,
    observe_start_failed, observe_started, observe_waiting, refusals_of, write_hold,
};
use muster_tasks::settings::Settings;
use muster_tasks::view::state_of;
use muster_types::attempt::{Cause, ContainerEnding, Ending};
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
    let refusal = refusals_of(&task.status, handle.attempt) + 1;
    observe_blocked(task, &handle, refusal, "exceeded quota: q", at).expect("news of the attempt");
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
    observe_blocked(&mut task, &handle, 1, "exceeded quota: q", Millis(0)).unwrap();
    assert_eq!(state_of(&task), State::Canceled);
}

#[test]
fn an_image_that_cannot_be_had_is_recorded_with_its_reason() {
    let mut task = ready();
    let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).unwrap();
    let why = "Container (addon): InvalidImageName: couldn't parse image name";
    observe_start_failed(&mut task, &handle, "ImageError", why, false, &Settings::default(), Millis(0))
        .unwrap();
    assert_eq!(state_of(&task), State::Failed);
    let record = task.status.events.iter().find(|record| record.kind == RecordKind::ImageError);
    assert_eq!(record.map(|record| record.reason.as_str()), Some(why));
}

#[test]
fn a_pod_that_is_removed_is_recorded_once_also_after_its_task_ended() {
    let mut task = ready();
    let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).unwrap();
    let ending = Ending::of_leader(0, Cause::Itself, Millis(0));
    observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(1000)).unwrap();
    assert_eq!(observe_removed(&mut task, &handle, Millis(2000)), Ok(()));
    assert_eq!(observe_removed(&mut task, &handle, Millis(3000)), Err(Ignored::OldAttempt));
    let deleted: Vec<_> =
        task.status.events.iter().filter(|record| record.kind == RecordKind::PodDeleted).collect();
    assert_eq!(
        (deleted.len(), deleted[0].count, deleted[0].reason.as_str()),
        (1, 1, handle.to_string().as_str())
    );
    assert_eq!(state_of(&task), State::Succeeded);
}

#[test]
fn only_a_container_that_outlived_the_leading_one_was_killed() {
    let killed = |cause: Cause, leftovers: [bool; 2]| {
        let mut task = ready();
        let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).unwrap();
        let container = |name: &str, killed_as_leftover| ContainerEnding {
            name: name.into(),
            exit_code: 143,
            signal: Some(15),
            killed_as_leftover,
            log_bytes: 0,
        };
        let containers = vec![container("addon", leftovers[0]), container("java", leftovers[1])];
        let ending = Ending { containers, ..Ending::without_containers(cause, Millis(0)) };
        observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(0)).unwrap();
        let killed = task.status.events.iter().filter(|record| record.kind == RecordKind::ContainerKilled);
        killed.map(|record| record.reason.clone()).collect::<Vec<_>>()
    };
    assert_eq!(killed(Cause::Itself, [false, true]), ["java"]);
    assert_eq!(killed(Cause::Itself, [false, false]), [""; 0]);
    assert_eq!(killed(Cause::Stopped, [true, true]), [""; 0], "all were told to end");
    assert_eq!(killed(Cause::Itself, [true, false]), [""; 0], "the leading one ended because another failed");
}

#[test]
fn a_refused_attempt_gives_its_number_back() {
    let mut task = ready();
    for second in 1..=3 {
        blocked(&mut task, Millis(second * 1000));
        assert_eq!(task.status.attempt, 0);
    }
    let first = begin_attempt(&mut task, None, None, &[], Millis(4000)).unwrap();
    assert_eq!(first.attempt, 1, "three refusals used up no number");
    observe_lost(&mut task, &first, "ExecutorLost", "gone", &Settings::default(), Millis(5000)).unwrap();
    blocked(&mut task, Millis(6000));
    let second = begin_attempt(&mut task, None, None, &[], Millis(7000)).unwrap();
    let numbers: Vec<u32> = task.status.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!((second.attempt, numbers), (2, vec![1, 2]));
}

#[test]
fn a_refusal_that_comes_twice_does_not_refuse_the_attempt_that_followed() {
    let mut task = ready();
    blocked(&mut task, Millis(1000));
    let handle = begin_attempt(&mut task, None, None, &[], Millis(2000)).unwrap();
    let late = observe_blocked(&mut task, &handle, 1, "exceeded quota: q", Millis(3000));
    assert_eq!((late, state_of(&task)), (Err(Ignored::OldRefusal), State::Pending));
    observe_blocked(&mut task, &handle, 2, "exceeded quota: q", Millis(4000)).unwrap();
    assert_eq!(state_of(&task), State::QuotaBlocked);
}

#[test]
fn news_of_the_attempt_before_a_refused_one_changes_nothing() {
    let mut task = ready();
    let first = begin_attempt(&mut task, None, None, &[], Millis(0)).unwrap();
    let lost = |task: &mut Task, at| {
        observe_lost(task, &first, "ExecutorLost", "gone", &Settings::default(), Millis(at))
    };
    lost(&mut task, 1000).unwrap();
    blocked(&mut task, Millis(2000));
    let before = task.clone();
    assert_eq!(lost(&mut task, 3000), Err(Ignored::OldAttempt));
    assert_eq!(task, before);
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
