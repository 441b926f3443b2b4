//! A task is tried no more often than its policy says: attempts that failed by themselves are at most `retry.limit` and one, or
//! what `restart` and `reschedule` allow together.

use std::collections::{BTreeMap, BTreeSet};

use super::task::Task;
use super::{Moment, Statement};

/// Reasons of attempts that did not end by themselves.
const NOT_ITS_OWN: [&str; 11] = [
    "Preempted",
    "Unschedulable",
    "Canceled",
    "Deleted",
    "Expired",
    "Stopped",
    "ServerStopped",
    "ExecutorLost",
    "RobotLost",
    "LogFailed",
    "Evicted",
];

#[derive(Default)]
pub struct AttemptsWithinPolicy {
    /// Attempts that failed, by task.
    failed: BTreeMap<String, BTreeSet<u32>>,
}

impl Statement for AttemptsWithinPolicy {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some(task) = moment.task else { return };
        let failed = self.failed.entry(task.metadata.uid.clone()).or_default();
        let before = failed.len();
        let own = task.status.attempts.iter().filter(|attempt| {
            attempt.exit_code.is_some_and(|code| code != 0) && !NOT_ITS_OWN.contains(&attempt.reason.as_str())
        });
        failed.extend(own.map(|attempt| attempt.number));
        let Some(most) = most_failures(task) else { return };
        if failed.len() > before {
            moment.present.compared();
        }
        if failed.len() > before && failed.len() as u64 > most {
            broken.push(format!(
                "{} failed {} times by itself, its policy allows {most}",
                task.metadata.name,
                failed.len()
            ));
        }
    }
}

/// How often it may fail by itself; `None` is any number of times.
fn most_failures(task: &Task) -> Option<u64> {
    let spec = &task.spec;
    let again = |tries: &Option<super::task::Tries>| match tries {
        Some(tries) if tries.unlimited || tries.interval.is_some() || tries.mode == "delay" => None,
        Some(tries) => Some(tries.attempts),
        None => Some(0),
    };
    match (&spec.restart, &spec.reschedule) {
        (None, None) => Some(spec.retry.limit.unwrap_or(1) + 1),
        (restart, reschedule) => {
            let restarts = again(restart)?;
            let reschedules = again(reschedule)?;
            Some((restarts + 1) * (reschedules + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn fails(story: &mut Story, number: u32) {
        let attempts = json!([{"number": number, "exitCode": 137, "finishedAt": "2027-01-01T00:00:00Z"}]);
        story.status("a", json!({"state": "Ready", "attempt": number, "attempts": attempts}));
    }

    #[test]
    fn as_many_failures_as_the_policy_allows_are_as_promised() {
        let mut story = Story::new();
        story.spec("a", json!({"retry": {"limit": 2}}));
        (1..=3).for_each(|number| fails(&mut story, number));
        assert!(story.broken("attempts_within_policy").is_empty());
    }

    #[test]
    fn one_failure_too_many_is_found() {
        let mut story = Story::new();
        story.spec("a", json!({"retry": {"limit": 2}}));
        (1..=4).for_each(|number| fails(&mut story, number));
        assert_eq!(story.broken("attempts_within_policy").len(), 1);
    }

    #[test]
    fn restarts_times_reschedules_are_the_limit_though_only_ten_attempts_are_listed() {
        let mut story = Story::new();
        story.spec("a", json!({"restart": {"attempts": 3}, "reschedule": {"attempts": 3}}));
        (1..=16).for_each(|number| fails(&mut story, number));
        assert!(story.broken("attempts_within_policy").is_empty());
        fails(&mut story, 17);
        assert_eq!(story.broken("attempts_within_policy").len(), 1);
    }
}
