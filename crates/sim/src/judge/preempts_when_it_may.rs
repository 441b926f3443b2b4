//! A task that may preempt, or that one waits for which may, gets the place of a lower one when it has waited long enough.
//!
//! Only where it is clear: every slot is taken, nothing leaves, and the task ranks first of those that wait and needs nothing but a slot.

use std::collections::BTreeMap;

use super::present::Present;
use super::rank_order::is_placeable;
use super::starts_when_there_is_room::{is_simple, taken};
use super::task::Task;
use super::{Moment, Statement};

/// How long lower tasks may run on beside one that may preempt them, in milliseconds.
const LONG: i64 = 30_000;

#[derive(Default)]
pub struct PreemptsWhenItMay {
    looked_at: i64,
    /// Since when tasks wait for a slot, by uid.
    blocked: BTreeMap<String, i64>,
    /// When something last left, or there was room.
    left_at: i64,
    /// So it was after the last entry.
    was_left: bool,
}

impl Statement for PreemptsWhenItMay {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let present = moment.present;
        if let Some(task) = moment.task {
            let uid = &task.metadata.uid;
            if task.state() == "QuotaBlocked" && !task.gone {
                self.blocked.entry(uid.clone()).or_insert(present.at);
            } else {
                self.blocked.remove(uid);
            }
        }
        let is_new = present.at > self.looked_at;
        self.looked_at = present.at;
        let leaves = |task: &Task| task.status.stopping.is_some() || task.status.prefetched;
        let is_full = || present.room.is_some_and(|room| taken(present) >= room.slots);
        let is_left = !present.calm_for(LONG) || !is_full() || present.open().any(leaves);
        if is_left || self.was_left {
            self.left_at = present.at;
        }
        self.was_left = is_left;
        if is_new && present.at - self.left_at > LONG {
            present.compared();
            broken.extend(self.look(present));
        }
    }
}

impl PreemptsWhenItMay {
    fn look(&mut self, present: &Present) -> Option<String> {
        let long_ago = present.at - LONG;
        let queued = present.open().filter(|task| task.is_queued() && task.runtime() == "process");
        let first = queued.max_by_key(|task| present.effective_priority(task))?;
        let rank = present.effective_priority(first);
        let is_alone = present.open().all(|other| {
            other.metadata.uid == first.metadata.uid
                || !other.is_queued()
                || present.depends(other, first)
                || !other.spec.policy.isolated && present.effective_priority(other) < rank
        });
        let waits = self.blocked.get(&first.metadata.uid).is_some_and(|since| *since < long_ago)
            && present.subject_rests_since(first) < long_ago;
        if !is_alone || !waits || !is_simple(first) || !is_placeable(present, first, LONG) {
            return None;
        }
        let right = right_to_preempt(present, first, long_ago)?;
        let victim = present.open().find(|task| {
            task.state() == "Running"
                && task.runtime() == "process"
                && !task.spec.policy.preempt_exempt
                && task.attempt_at < long_ago
                && present.effective_priority(task) < right
        })?;
        self.left_at = present.at;
        Some(format!(
            "{} waits for a slot since {} ms with the right to preempt what is below {right}, and {} runs on",
            first.metadata.name,
            present.at - self.blocked[&first.metadata.uid],
            victim.metadata.name
        ))
    }
}

/// What is below this priority makes way.
fn right_to_preempt(present: &Present, task: &Task, long_ago: i64) -> Option<i64> {
    if task.spec.policy.preempt_enabled {
        return Some(present.effective_priority(task));
    }
    let lenders = present.open().filter(|other| {
        other.is_queued()
            && other.spec.policy.preempt_enabled
            && other.queued_at < long_ago
            && present.depends(other, task)
    });
    lenders.map(|lender| present.priority(lender)).max().map(|lent| lent.max(present.priority(task)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn waits(low: serde_json::Value, high: serde_json::Value) -> Vec<String> {
        let mut story = Story::new();
        story.room(1, None).spec("low", low).task("low", "Running", 1).started("low", 1);
        story
            .spec("high", high)
            .task("high", "QuotaBlocked", 0)
            .wait(60_000)
            .spec("other", json!({"suspend": true}));
        story.broken("preempts_when_it_may")
    }

    #[test]
    fn a_task_that_may_not_preempt_waits() {
        assert!(waits(json!({}), json!({"priority": 9})).is_empty());
        let exempt = json!({"policy": {"preemptExempt": true}});
        assert!(waits(exempt, json!({"priority": 9, "policy": {"preemptEnabled": true}})).is_empty());
    }

    #[test]
    fn a_task_that_may_preempt_and_waits_for_long_is_found() {
        assert_eq!(waits(json!({}), json!({"priority": 9, "policy": {"preemptEnabled": true}})).len(), 1);
    }
}
