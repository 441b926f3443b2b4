//! A task that is to rest, because it was preempted or is tried again later, is not started before that.

use super::{Moment, Statement};

/// Times of rests are whole seconds.
const SECOND: i64 = 1_000;

pub struct RestsAreKept;

impl Statement for RestsAreKept {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let (Some(task), Some(before)) = (moment.task, moment.before) else { return };
        let present = moment.present;
        let begins = task.status.attempt > before.status.attempt && !task.status.prefetched;
        // A server that was started after the clock jumped has another idea of when a rest is over.
        if !begins || before.rest() <= 0 || present.has_jumped {
            return;
        }
        present.compared();
        let early = before.rest_over_at - SECOND - present.at;
        if early > 0 {
            broken.push(format!(
                "attempt {} of {} began {early} ms before its rest was over",
                task.status.attempt, task.metadata.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn begins_after(pause: i64) -> Vec<String> {
        let mut story = Story::new();
        story.task("a", "Running", 1).status(
            "a",
            json!({
                "state": "Ready", "attempt": 1,
                "stateSince": "2027-01-15T08:00:00Z", "restUntil": "2027-01-15T08:00:04Z",
            }),
        );
        story.wait(pause).task("a", "Pending", 2).broken("rests_are_kept")
    }

    #[test]
    fn an_attempt_after_the_rest_is_as_promised() {
        assert!(begins_after(4_000).is_empty());
    }

    #[test]
    fn an_attempt_before_the_rest_is_over_is_found() {
        assert_eq!(begins_after(1_000).len(), 1);
    }
}
