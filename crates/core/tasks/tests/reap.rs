//! When the time of a task is over, and that the brief reading of a stored task sees the same as the whole.

use muster_tasks::brief::Brief;
use muster_tasks::reap::{Life, Reap, ReapSettings, retention};
use muster_types::task::{Policy, Retention, Subject, TaskSpec, Ttl};
use muster_types::task_status::{Attempt, Stopping};
use muster_types::{Duration, Object, State, Task, Timestamp};
use proptest::prelude::*;

const HOUR: i64 = 3600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second)
}

/// A task made at 1000 s that is in a state.
fn task(state: State, ttl: Ttl) -> Task {
    let mut task = Object::new("d", "t", TaskSpec { ttl, ..TaskSpec::default() });
    "00000000-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.metadata.creation_timestamp = Some(at(1000));
    task.status.state = Some(state);
    if state.is_terminal() {
        task.status.terminated = Some(at(5000).into());
    }
    task
}

fn due(task: &Task) -> Option<(i64, Reap)> {
    Life::of(task).due(&ReapSettings::default())
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn without_a_limit_of_their_own_tasks_follow_the_rules_of_the_server() {
    let none = Ttl::default();
    assert_eq!(due(&task(State::Created, none)), Some((1001 + 72 * HOUR, Reap::Delete)));
    assert_eq!(due(&task(State::Succeeded, none)), Some((5000 + 72 * HOUR, Reap::Delete)));
    assert_eq!(due(&task(State::Canceled, none)), Some((5000 + 72 * HOUR, Reap::Delete)));
    assert_eq!(due(&task(State::Failed, none)), Some((5000 + 720 * HOUR, Reap::Release)));
    for state in [State::Ready, State::Postponed, State::QuotaBlocked, State::Pending, State::Running] {
        assert_eq!(due(&task(state, none)), None, "{state}");
    }
}

#[test]
fn while_its_group_goes_on_a_member_leaves_it_instead_and_one_that_waits_for_its_turn_stays() {
    for state in [State::Succeeded, State::Failed, State::Canceled] {
        assert_eq!(Reap::Delete.in_open_group(state), Some(Reap::Leave));
    }
    assert_eq!(Reap::Delete.in_open_group(State::Created), None);
    assert_eq!(Reap::Expire.in_open_group(State::Running), Some(Reap::Expire));
}

#[test]
fn a_limit_of_its_own_deletes_a_task_in_whatever_state() {
    let ttl = Ttl {
        created: Some(seconds(1)),
        pending: Some(seconds(2)),
        running: Some(seconds(3)),
        succeeded: Some(seconds(4)),
        failed: Some(seconds(5)),
        canceled: Some(seconds(6)),
    };
    assert_eq!(due(&task(State::Created, ttl)), Some((1002, Reap::Delete)));
    for state in [State::Ready, State::Postponed, State::QuotaBlocked, State::Pending] {
        assert_eq!(due(&task(state, ttl)), Some((1003, Reap::Expire)), "{state}");
    }
    let mut running = task(State::Running, ttl);
    running.status.started = Some(at(2000).into());
    assert_eq!(due(&running), Some((2003, Reap::Expire)));
    assert_eq!(due(&task(State::Succeeded, ttl)), Some((5004, Reap::Delete)));
    assert_eq!(due(&task(State::Failed, ttl)), Some((5005, Reap::Delete)));
    assert_eq!(due(&task(State::Canceled, ttl)), Some((5006, Reap::Delete)));
}

#[test]
fn zero_is_no_limit() {
    let zero = Some(Duration::from_secs(0));
    let ttl =
        Ttl { created: zero, pending: zero, running: zero, succeeded: zero, failed: zero, canceled: zero };
    for state in State::ALL.iter().copied() {
        assert_eq!(due(&task(state, ttl)), None, "{state}");
    }
}

#[test]
fn the_time_of_waiting_begins_anew_when_a_task_is_submitted_or_comes_back() {
    let ttl = Ttl { pending: Some(seconds(10)), ..Ttl::default() };
    let mut submitted = task(State::Ready, ttl);
    submitted.status.submitted = Some(at(7000));
    assert_eq!(due(&submitted), Some((7011, Reap::Expire)));
    submitted.status.attempts.push(Attempt { finished_at: Some(at(8000).into()), ..Attempt::default() });
    assert_eq!(due(&submitted), Some((8010, Reap::Expire)));
}

#[test]
fn files_are_let_go_once() {
    let mut failed = task(State::Failed, Ttl::default());
    failed.status.released = Some(at(9000));
    assert_eq!(due(&failed), None);
}

#[test]
fn a_task_that_expired_is_deleted_as_soon_as_it_has_ended() {
    let mut expired = task(State::Canceled, Ttl::default());
    expired.status.expired = true;
    assert_eq!(due(&expired), Some((5000, Reap::Delete)));
}

#[test]
fn what_an_attempt_left_is_kept_a_second_if_it_succeeded_and_three_days_if_not() {
    let settings = ReapSettings::default();
    let mut task = task(State::Succeeded, Ttl::default());
    assert_eq!(retention(&task, true, &settings), 1);
    assert_eq!(retention(&task, false, &settings), 72 * HOUR);
    task.spec.retention =
        Retention { succeeded: Some(seconds(0)), failed: Some(Duration::from_millis(1500)) };
    assert_eq!(retention(&task, true, &settings), 0);
    assert_eq!(retention(&task, false, &settings), 2, "nothing is over early");
}

fn any_time() -> impl Strategy<Value = Option<Timestamp>> {
    proptest::option::of((0_i64..4_000_000_000).prop_map(Timestamp::from_second))
}

fn any_duration() -> impl Strategy<Value = Option<Duration>> {
    proptest::option::of((0_u64..1_000_000).prop_map(Duration::from_millis))
}

prop_compose! {
    fn any_spec()(
        kind in "[a-z]{0,6}", addon in "[a-z]{0,6}", locator in ".{0,12}",
        subject in proptest::option::of(("[A-Z][a-z]{0,5}", ".{1,6}")),
        priority in proptest::option::of(0_i32..100),
        flags in any::<(bool, bool, bool, bool, bool)>(),
        times in (any_duration(), any_duration(), any_duration(), any_duration()),
        memory in proptest::option::of(0_u64..1_000_000_000),
    ) -> TaskSpec {
        TaskSpec {
            kind, addon, locator, priority,
            subject: subject.map(|(kind, name)| Subject { kind, name }),
            policy: Policy { isolated: flags.0, preempt_enabled: flags.1, preempt_exempt: flags.2 },
            suspend: flags.3,
            cancel: flags.4,
            ttl: Ttl { pending: times.0, running: times.1, failed: times.2, ..Ttl::default() },
            kill_timeout: times.3,
            resources: muster_types::container::Resources {
                cpu: None,
                memory: memory.and_then(|memory| memory.to_string().parse().ok()),
            },
            ..TaskSpec::default()
        }
    }
}

proptest! {
    #[test]
    fn a_brief_reading_sees_what_the_whole_task_says(
        spec in any_spec(),
        state in proptest::option::of(proptest::sample::select(State::ALL)),
        times in (any_time(), any_time(), any_time(), any_time(), any_time(), any_time()),
        stopping in any::<bool>(),
        attempt in 0_u32..5,
        expired in any::<bool>(),
    ) {
        let mut task = Object::new("d", "t", spec);
        "0190a0b0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
        task.metadata.creation_timestamp = times.0;
        task.metadata.deletion_timestamp = times.1;
        task.status.state = state;
        task.status.state_since = times.2;
        task.status.rest_until = times.3;
        task.status.terminated = times.4.map(Into::into);
        task.status.released = times.5;
        task.status.stopping = stopping.then_some(Stopping::Canceled);
        task.status.attempt = attempt;
        task.status.expired = expired;
        task.status.attempts.push(Attempt { finished_at: times.3.map(Into::into), ..Attempt::default() });
        let json = serde_json::to_vec(&task).unwrap();
        prop_assert_eq!(Brief::read(&json, "d/t".into()), Brief::of(&task, "d/t".into()));
    }

    #[test]
    fn no_stored_bytes_make_a_brief_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        Brief::read(&bytes, "d/t".into());
    }
}
