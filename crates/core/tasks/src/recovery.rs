//! Whether another attempt follows, and when, by the restart and reschedule policies of a task (seed 003, R6, R17).
//!
//! Decides from the attempts that the status still tells of, which are ten. A task that has neither policy is none of this
//! module's business: [`crate::progress`] goes by its `retry`.
//!
//! - An attempt that failed is restarted as often as an interval allows. When that is used up, the task waits for the
//!   interval to end (`delay`), or is rescheduled, or fails.
//! - An attempt that was lost with its robot is rescheduled, whatever was restarted before.

use muster_types::recovery::{DelayFunction, Reschedule, Restart, RestartMode};
use muster_types::task_status::Attempt;
use muster_types::{Duration, Task};

/// The first wait before something is rescheduled, and the longest, in seconds.
const USUAL_DELAY: i64 = 30;
const USUAL_MAX_DELAY: i64 = 3600;

/// What the policies say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: there are none.
    NoPolicy,
    /// Another attempt, after so many seconds.
    After(i64),
    /// No further attempt.
    GiveUp,
}

/// What follows the attempt that just ended, which is the last one of the status.
pub fn recover(task: &Task, lost: bool, now: i64) -> Recovery {
    let (restart, reschedule) = (task.spec.restart.as_ref(), task.spec.reschedule.as_ref());
    let attempts = &task.status.attempts;
    // Losing a robot is nothing that a restart there could mend.
    let restart_here = restart.filter(|_| !lost);
    if let Some(pause) = restart_here.and_then(|policy| restarted(policy, attempts, now)) {
        return Recovery::After(pause);
    }
    let round = restart.map_or(1, |policy| policy.attempts.saturating_add(1));
    match (restart_here, reschedule) {
        (_, Some(policy)) => rescheduled(policy, attempts, round, now),
        (Some(_), None) => Recovery::GiveUp,
        (None, None) => Recovery::NoPolicy,
    }
}

/// Seconds until the restart, if there may be one.
fn restarted(policy: &Restart, attempts: &[Attempt], now: i64) -> Option<i64> {
    let delay = policy.delay.map_or(0, seconds);
    let ended: Vec<i64> =
        within(attempts, policy.interval, now).filter(|attempt| failed(attempt)).map(ended).collect();
    let allowed = policy.attempts as usize;
    if ended.len() <= allowed {
        return Some(delay);
    }
    let interval =
        policy.interval.filter(|_| policy.mode == RestartMode::Delay && allowed > 0).map(seconds)?;
    // So many must have left the interval that this one is allowed again.
    let leaves = ended.get(ended.len() - 1 - allowed).copied()?.saturating_add(interval);
    Some(leaves.saturating_sub(now).max(delay))
}

fn rescheduled(policy: &Reschedule, attempts: &[Attempt], round: u32, now: i64) -> Recovery {
    let counted: Vec<&Attempt> = within(attempts, policy.interval, now).collect();
    let lost = counted.iter().filter(|attempt| !failed(attempt)).count();
    let rounds = counted.iter().filter(|attempt| failed(attempt)).count() / round.max(1) as usize;
    // The one that just ended is among them.
    let before = (lost + rounds).saturating_sub(1);
    if !policy.unlimited && before >= policy.attempts as usize {
        return Recovery::GiveUp;
    }
    Recovery::After(wait(policy, u32::try_from(before).unwrap_or(u32::MAX)))
}

/// How long to wait, after so many waits.
pub fn wait(policy: &Reschedule, before: u32) -> i64 {
    let first = policy.delay.map_or(USUAL_DELAY, seconds);
    let most = policy.max_delay.map_or(USUAL_MAX_DELAY, seconds);
    let factor = match policy.delay_function {
        DelayFunction::Constant => 1,
        DelayFunction::Exponential => 1_i64 << before.min(40),
        DelayFunction::Fibonacci => (0..before.min(60)).fold((1_i64, 1_i64), |(a, b), _| (b, a + b)).0,
    };
    first.saturating_mul(factor).min(most)
}

/// Attempts that ended within an interval before now.
fn within(attempts: &[Attempt], interval: Option<Duration>, now: i64) -> impl Iterator<Item = &Attempt> {
    let since = interval.map_or(i64::MIN, |interval| now.saturating_sub(seconds(interval)));
    attempts.iter().filter(move |attempt| attempt.finished_at.is_some() && ended(attempt) > since)
}

fn ended(attempt: &Attempt) -> i64 {
    attempt.finished_at.map_or(0, muster_types::MilliTimestamp::as_second)
}

/// It ran and failed; others were lost, or never ran.
fn failed(attempt: &Attempt) -> bool {
    attempt.exit_code.is_some()
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use muster_types::{TaskSpec, Timestamp};

    use super::*;

    /// A task whose attempts ended at these times; a minus sign marks those that were lost.
    fn task(spec: serde_json::Value, ends: &[i64]) -> Task {
        let spec: TaskSpec = serde_json::from_value(spec).unwrap();
        let mut task = Task::new("default", "a", spec);
        task.status.attempts = ends
            .iter()
            .map(|end| Attempt {
                finished_at: Some(Timestamp::from_second(end.abs()).into()),
                exit_code: (*end > 0).then_some(1),
                ..Attempt::default()
            })
            .collect();
        task
    }

    #[test]
    fn without_a_policy_nothing_is_said() {
        assert_eq!(recover(&task(serde_json::json!({}), &[10]), false, 10), Recovery::NoPolicy);
        let restarts = serde_json::json!({"restart": {"attempts": 1}});
        assert_eq!(recover(&task(restarts, &[-10]), true, 10), Recovery::NoPolicy);
    }

    #[test]
    fn an_attempt_is_restarted_as_often_as_the_interval_allows() {
        let spec = serde_json::json!({"restart": {"attempts": 2, "interval": "100s", "delay": "5s"}});
        let says = |ends: &[i64]| recover(&task(spec.clone(), ends), false, *ends.last().unwrap());
        assert_eq!(says(&[10]), Recovery::After(5));
        assert_eq!(says(&[10, 20]), Recovery::After(5));
        assert_eq!(says(&[10, 20, 30]), Recovery::GiveUp);
        assert_eq!(says(&[10, 20, 111]), Recovery::After(5), "the first has left the interval");
    }

    #[test]
    fn in_delay_mode_the_task_waits_for_the_interval_to_end() {
        let spec = serde_json::json!({"restart": {"attempts": 1, "interval": "100s", "mode": "delay"}});
        assert_eq!(recover(&task(spec, &[10, 30]), false, 30), Recovery::After(80));
    }

    #[test]
    fn a_lost_attempt_is_rescheduled_with_growing_waits_up_to_the_limit() {
        let spec = serde_json::json!({"reschedule": {"attempts": 2, "delay": "10s"}});
        let says = |ends: &[i64]| recover(&task(spec.clone(), ends), true, 100);
        assert_eq!(says(&[-10]), Recovery::After(10));
        assert_eq!(says(&[-10, -20]), Recovery::After(20));
        assert_eq!(says(&[-10, -20, -30]), Recovery::GiveUp);
    }

    #[test]
    fn when_restarts_are_used_up_the_task_is_rescheduled() {
        let spec = serde_json::json!({
            "restart": {"attempts": 1}, "reschedule": {"attempts": 1, "delay": "60s", "delayFunction": "constant"},
        });
        let says = |ends: &[i64]| recover(&task(spec.clone(), ends), false, 100);
        assert_eq!(says(&[10]), Recovery::After(0));
        assert_eq!(says(&[10, 20]), Recovery::After(60));
    }

    #[test]
    fn waits_grow_as_their_function_says_and_not_beyond_the_longest() {
        let waits = |function: DelayFunction| {
            let second = |n| Some(Duration::from_secs(n));
            let policy = Reschedule {
                delay: second(10),
                max_delay: second(100),
                delay_function: function,
                ..Reschedule::default()
            };
            (0..6).map(|before| wait(&policy, before)).collect::<Vec<_>>()
        };
        assert_eq!(waits(DelayFunction::Constant), [10; 6]);
        assert_eq!(waits(DelayFunction::Exponential), [10, 20, 40, 80, 100, 100]);
        assert_eq!(waits(DelayFunction::Fibonacci), [10, 10, 20, 30, 50, 80]);
    }
}
