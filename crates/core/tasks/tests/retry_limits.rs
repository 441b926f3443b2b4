//! How often a task is tried again: one limit over all failures that `retry.on` names, or one of its own for lost executors.

use muster_tasks::progress::{begin_attempt, observe_lost};
use muster_tasks::settings::Settings;
use muster_tasks::view::state_of;
use muster_types::task::{Retry, RetryOn};
use muster_types::{Millis, State, Task, TaskSpec};

/// Attempts until the task fails, when every attempt loses its executor.
fn attempts_when_lost(retry: Retry) -> u32 {
    let mut task = Task::new("n", "t", TaskSpec { retry, ..TaskSpec::default() });
    "0190b0a0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.status.state = Some(State::Ready);
    while state_of(&task) == State::Ready {
        let handle = begin_attempt(&mut task, None, None, &[], Millis(0)).expect("a ready task begins");
        observe_lost(&mut task, &handle, "ExecutorLost", "gone", &Settings::default(), Millis(0))
            .expect("news of the attempt that runs");
    }
    task.status.attempt
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
