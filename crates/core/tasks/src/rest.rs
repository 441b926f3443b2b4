//! Why a task that went back to the queue is not started before some time, in words: a restart is no preemption.

use muster_types::task::RetryOn;
use muster_types::task_status::{Stopping, WaitingFor};
use muster_types::{Task, Timestamp};

/// What a task that is back in the queue waits for, whose attempt ended with these words.
pub(crate) fn describe_rest(task: &Task, words: &str, until: Timestamp) -> WaitingFor {
    let (reason, message) = match task.status.attempts.last() {
        Some(last) if last.reason == Stopping::Preempted.as_str() => {
            ("Preempted", format!("preempted; it starts again at {until} at the earliest"))
        }
        Some(last) if last.reason == Stopping::Unschedulable.as_str() => {
            let message = format!(
                "no node took its pod, and it is isolated; it is tried again at {until} at the earliest, when no other task is active"
            );
            (Stopping::Unschedulable.as_str(), message)
        }
        last => {
            let is_lost = last.is_some_and(|last| last.exit_code.is_none());
            let (reason, number, limit) = next_try(task, is_lost);
            let number = limit.map_or_else(|| number.to_string(), |limit| format!("{number} of {limit}"));
            (reason, format!("{} {number} at {until}, after: {words}", reason.to_lowercase()))
        }
    };
    WaitingFor { reason: reason.to_owned(), message, task: String::new() }
}

/// What the next attempt is called, which one it is, and how many there may be.
fn next_try(task: &Task, lost: bool) -> (&'static str, u32, Option<u32>) {
    let (spec, status) = (&task.spec, &task.status);
    let retries = status.retries.max(1);
    let count = status.recovery.clone().unwrap_or_default();
    match (spec.restart.filter(|_| !lost), spec.reschedule) {
        // Restarts are counted anew after the task was rescheduled; over an interval there is no last one.
        (Some(restart), _) if count.failures > 0 => {
            ("Restart", count.failures, restart.interval.is_none().then_some(restart.attempts))
        }
        (_, Some(policy)) => {
            let limit = (!policy.unlimited && policy.interval.is_none()).then_some(policy.attempts);
            ("Reschedule", count.reschedules.max(1), limit)
        }
        (_, None) => {
            let counts_lost = spec.retry.on.as_deref().is_some_and(|on| on.contains(&RetryOn::ExecutorLost));
            if lost && !counts_lost {
                return ("Retry", status.lost.max(1), Some(spec.retry.lost_limit()));
            }
            let retries = if counts_lost { retries.max(status.retries + status.lost) } else { retries };
            // What could not be started for a reason of the machine is tried again beyond the limit.
            ("Retry", retries, Some(spec.retry.limit()).filter(|limit| retries <= *limit))
        }
    }
}
