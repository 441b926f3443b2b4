//! Whether another attempt follows, and when, by the restart and reschedule policies of a task (seed 003, R6, R17).
//!
//! Decides from what it has counted itself in [`TaskStatus::recovery`], never from the attempts of the status: only the latest of
//! those are kept. A task that has neither policy is none of this module's business: [`crate::progress`] goes by its `retry`.
//!
//! - An attempt that failed is restarted as often as an interval allows. When that is used up, the task waits for the
//!   interval to end (`delay`), or is rescheduled, or fails.
//! - An attempt that was lost with its robot is rescheduled, whatever was restarted before.
//! - Restarts are counted anew after the task was rescheduled.
//!
//! [`TaskStatus::recovery`]: muster_types::TaskStatus::recovery

use muster_types::recovery::{DelayFunction, Reschedule, Restart, RestartMode};
use muster_types::task_status::RecoveryCount;
use muster_types::{Duration, Task, Timestamp};

/// The first wait before something is rescheduled, and the longest, in seconds.
const USUAL_DELAY: i64 = 30;
const USUAL_MAX_DELAY: i64 = 3600;
/// Times that are remembered, where an interval is counted over. A policy allows one less.
const MOST_TIMES: usize = 10;

/// Seconds that may lie between two restarts whatever the policy says: the usual shortest time, and the rest of a second in which a
/// pause ends.
const BETWEEN_RESTARTS: i64 = 2;

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

/// What follows the attempt that just failed or was lost. It is counted.
pub fn recover(task: &mut Task, lost: bool, now: i64) -> Recovery {
    // Losing a robot is nothing that a restart there could mend.
    let (restart, reschedule) = (task.spec.restart.filter(|_| !lost), task.spec.reschedule);
    if restart.is_none() && reschedule.is_none() {
        return Recovery::NoPolicy;
    }
    let count = task.status.recovery.get_or_insert_default();
    if let Some(pause) = restart.and_then(|policy| restarted(&policy, count, now)) {
        return Recovery::After(pause);
    }
    reschedule.map_or(Recovery::GiveUp, |policy| rescheduled(&policy, restart.as_ref(), count, now))
}

/// Seconds until the restart, if there may be one.
fn restarted(policy: &Restart, count: &mut RecoveryCount, now: i64) -> Option<i64> {
    let delay = policy.delay.map_or(0, Duration::seconds_rounded_up);
    count.failures = count.failures.saturating_add(1);
    remember(&mut count.failed_at, policy.interval, now);
    let allowed = allowed(policy.attempts, policy.interval);
    // An interval that is over before as many restarts can have been would allow them for ever.
    let quickest = quickest_restarts(policy);
    let interval = policy.interval.map(|interval| interval.seconds_rounded_up().max(quickest));
    if within(count.failures, &count.failed_at, interval, now) <= allowed {
        return Some(delay);
    }
    let interval = interval.filter(|_| policy.mode == RestartMode::Delay && allowed > 0)?;
    // So many must have left the interval that this one is allowed again.
    let first = count.failed_at.len().checked_sub(1 + allowed as usize)?;
    let leaves = count.failed_at.get(first)?.as_second().saturating_add(interval);
    Some(leaves.saturating_sub(now).max(delay))
}

/// The least time in which a task can be restarted as often as is allowed.
fn quickest_restarts(policy: &Restart) -> i64 {
    let delay = policy.delay.map_or(0, Duration::seconds_rounded_up);
    i64::from(allowed(policy.attempts, policy.interval))
        .saturating_mul(delay.saturating_add(BETWEEN_RESTARTS))
}

fn rescheduled(
    policy: &Reschedule,
    restart: Option<&Restart>,
    count: &mut RecoveryCount,
    now: i64,
) -> Recovery {
    let allowed = allowed(policy.attempts, policy.interval);
    // As with restarts: the interval is not over before as many reschedules can have been, with the restarts between them.
    let restarts = restart.map_or(0, quickest_restarts).saturating_add(BETWEEN_RESTARTS);
    let waits = (0..allowed).map(|before| wait(policy, before).saturating_add(restarts));
    let quickest = waits.fold(0_i64, i64::saturating_add);
    let interval = policy.interval.map(|interval| interval.seconds_rounded_up().max(quickest));
    let before = within(count.reschedules, &count.rescheduled_at, interval, now);
    if !policy.unlimited && before >= allowed {
        return Recovery::GiveUp;
    }
    count.reschedules = count.reschedules.saturating_add(1);
    remember(&mut count.rescheduled_at, policy.interval, now);
    count.failures = 0;
    count.failed_at.clear();
    Recovery::After(wait(policy, before))
}

/// How long to wait, after so many waits.
pub fn wait(policy: &Reschedule, before: u32) -> i64 {
    let first = policy.delay.map_or(USUAL_DELAY, Duration::seconds_rounded_up);
    let most = policy.max_delay.map_or(USUAL_MAX_DELAY, Duration::seconds_rounded_up);
    let factor = match policy.delay_function {
        DelayFunction::Constant => 1,
        DelayFunction::Exponential => 1_i64 << before.min(40),
        DelayFunction::Fibonacci => (0..before.min(60)).fold((1_i64, 1_i64), |(a, b), _| (b, a + b)).0,
    };
    first.saturating_mul(factor).min(most)
}

/// How often something may happen: no more often than is remembered, where an interval is counted over.
fn allowed(asked: u32, interval: Option<Duration>) -> u32 {
    let most = u32::try_from(MOST_TIMES - 1).unwrap_or(u32::MAX);
    if interval.is_some() { asked.min(most) } else { asked }
}

/// How often something happened within an interval before now.
fn within(total: u32, times: &[Timestamp], interval: Option<i64>, now: i64) -> u32 {
    let Some(interval) = interval else { return total };
    let since = now.saturating_sub(interval);
    u32::try_from(times.iter().filter(|time| time.as_second() > since).count()).unwrap_or(u32::MAX)
}

/// Remembers when something happened, where that is of interest.
fn remember(times: &mut Vec<Timestamp>, interval: Option<Duration>, now: i64) {
    if interval.is_some() {
        times.push(Timestamp::from_second(now));
        let excess = times.len().saturating_sub(MOST_TIMES);
        times.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use muster_types::TaskSpec;

    use super::*;

    /// What is said of each of the attempts of a task that ended at these times; a minus sign marks those that were lost.
    fn says(spec: &serde_json::Value, ends: &[i64]) -> Vec<Recovery> {
        let spec: TaskSpec = serde_json::from_value(spec.clone()).unwrap();
        let mut task = Task::new("default", "a", spec);
        ends.iter().map(|end| recover(&mut task, *end < 0, end.abs())).collect()
    }

    #[test]
    fn without_a_policy_nothing_is_said() {
        assert_eq!(says(&serde_json::json!({}), &[10]), [Recovery::NoPolicy]);
        let restarts = serde_json::json!({"restart": {"attempts": 1}});
        assert_eq!(says(&restarts, &[-10]), [Recovery::NoPolicy]);
    }

    #[test]
    fn an_attempt_is_restarted_as_often_as_the_interval_allows() {
        let spec = serde_json::json!({"restart": {"attempts": 2, "interval": "100s", "delay": "5s"}});
        let (again, over) = (Recovery::After(5), Recovery::GiveUp);
        assert_eq!(says(&spec, &[10, 20, 30]), [again, again, over]);
        assert_eq!(says(&spec, &[10, 20, 111]), [again, again, again], "the first has left the interval");
    }

    #[test]
    fn an_interval_that_is_shorter_than_the_restarts_it_allows_is_reached_all_the_same() {
        let short = |attempts: u32, interval: &str| {
            let restart = serde_json::json!({"attempts": attempts, "interval": interval, "delay": "500ms"});
            serde_json::json!({"restart": restart})
        };
        let (again, over) = (Recovery::After(1), Recovery::GiveUp);
        assert_eq!(says(&short(2, "1.9s"), &[54, 56, 58]), [again, again, over]);
        assert_eq!(says(&short(3, "3500ms"), &[54, 56, 58, 60]), [again, again, again, over]);
        assert_eq!(says(&short(2, "1.9s"), &[54, 60, 66]), [again; 3], "they are far enough apart");
    }

    #[test]
    fn without_an_interval_restarts_are_counted_for_ever() {
        let spec = serde_json::json!({"restart": {"attempts": 2}});
        let again = Recovery::After(0);
        assert_eq!(says(&spec, &[10, 1_000_000, 2_000_000]), [again, again, Recovery::GiveUp]);
    }

    #[test]
    fn in_delay_mode_the_task_waits_for_the_interval_to_end() {
        let spec = serde_json::json!({"restart": {"attempts": 1, "interval": "100s", "mode": "delay"}});
        assert_eq!(says(&spec, &[10, 30]), [Recovery::After(0), Recovery::After(80)]);
    }

    #[test]
    fn a_lost_attempt_is_rescheduled_with_growing_waits_up_to_the_limit() {
        let spec = serde_json::json!({"reschedule": {"attempts": 2, "delay": "10s"}});
        let expected = [Recovery::After(10), Recovery::After(20), Recovery::GiveUp];
        assert_eq!(says(&spec, &[-10, -20, -30]), expected);
    }

    #[test]
    fn reschedules_that_left_the_interval_do_not_count() {
        let spec = serde_json::json!({"reschedule": {"attempts": 1, "delay": "10s", "interval": "100s"}});
        let again = Recovery::After(10);
        assert_eq!(says(&spec, &[-10, -111, -120]), [again, again, Recovery::GiveUp]);
    }

    #[test]
    fn an_interval_that_is_shorter_than_the_waits_it_allows_is_reached_all_the_same() {
        let policy = serde_json::json!({"attempts": 2, "interval": "20s", "delay": "30s", "delayFunction": "constant"});
        let spec = serde_json::json!({"reschedule": policy});
        let again = Recovery::After(30);
        assert_eq!(says(&spec, &[10, 41, 72]), [again, again, Recovery::GiveUp]);
        assert_eq!(says(&spec, &[10, 41, 572]), [again; 3], "they are far enough apart");
        let spec = serde_json::json!({"restart": {"attempts": 1, "delay": "15s"}, "reschedule": policy});
        let restart = Recovery::After(15);
        assert_eq!(
            says(&spec, &[10, 26, 57, 73, 104, 120]),
            [restart, again, restart, again, restart, Recovery::GiveUp]
        );
    }

    #[test]
    fn when_restarts_are_used_up_the_task_is_rescheduled_and_restarts_are_counted_anew() {
        let spec = serde_json::json!({
            "restart": {"attempts": 1}, "reschedule": {"attempts": 1, "delay": "60s", "delayFunction": "constant"},
        });
        let (restart, reschedule) = (Recovery::After(0), Recovery::After(60));
        assert_eq!(says(&spec, &[10, 20, 30, 40]), [restart, reschedule, restart, Recovery::GiveUp]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let spec: TaskSpec = serde_json::from_value(serde_json::json!({
            "restart": {"attempts": 9, "interval": "1h", "mode": "delay"},
            "reschedule": {"unlimited": true, "interval": "1h"},
        }))
        .unwrap();
        let mut task = Task::new("default", "a", spec);
        for second in 0..1000 {
            recover(&mut task, second % 2 == 0, second);
        }
        let count = task.status.recovery.unwrap();
        assert!(count.failed_at.len() <= MOST_TIMES && count.rescheduled_at.len() <= MOST_TIMES, "{count:?}");
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
