//! No program is started while a placeable task of higher effective priority has been Ready for more than 100 ms.
//!
//! A task is placeable instead of the one that was started if it needs no more than that one, and nothing but room and order
//! keeps it back. Where somebody did not lead all that time, there is no promise.

use super::history::Program;
use super::present::Present;
use super::task::Task;
use super::{Moment, PATIENCE, Statement};

/// Times of rests are whole seconds.
const SECOND: i64 = 1_000;

pub struct RankOrder;

impl Statement for RankOrder {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        // A pod starts long after it was asked for.
        let Some((program, task)) = moment.started().filter(|(_, task)| task.runtime() != "pod") else {
            return;
        };
        let present = moment.present;
        let patience = patience(present, program, task);
        if !present.calm_for(patience) || present.isolated_until + patience >= present.at || task.gone {
            return;
        }
        present.compared();
        let rank = task.attempt_rank.max(present.effective_priority(task));
        for waiting in present.open().filter(|waiting| fits_instead(present, waiting, task)) {
            let waiting_rank = present.effective_priority(waiting);
            if waiting_rank > rank && is_placeable(present, waiting, patience) {
                broken.push(format!(
                    "{} (effective priority {rank}) was started while {} ({waiting_rank}) was {} for {} ms",
                    task.metadata.name,
                    waiting.metadata.name,
                    waiting.state(),
                    present.at - waiting.queued_at
                ));
            }
        }
    }
}

/// Whatever has room for one has room for the other.
fn fits_instead(present: &Present, waiting: &Task, started: &Task) -> bool {
    let room = present.room.and_then(|room| room.memory).unwrap_or(u64::MAX);
    // What is refused to a task is refused to those behind it that need the same.
    let is_behind = || {
        present.open().any(|other| {
            other.is_queued()
                && other.memory() > 0
                && other.metadata.uid != waiting.metadata.uid
                && present.effective_priority(other) >= present.effective_priority(waiting)
        })
    };
    let fits_alone = waiting.memory() == 0 || waiting.memory() <= room && !is_behind();
    let is_small = waiting.memory() <= started.memory() || waiting.spec.policy.isolated && fits_alone;
    let same_robots = waiting.runtime() != "robot"
        || waiting.spec.target_robot.is_empty()
            && (waiting.spec.robot_selector.is_empty()
                || waiting.spec.robot_selector == started.spec.robot_selector)
            && waiting.status.attempt == 0
            && !waiting.spec.policy.isolated;
    waiting.runtime() == started.runtime() && is_small && is_plain(waiting) && same_robots
}

/// It does not ask for a place of its own choice.
pub fn is_plain(task: &Task) -> bool {
    task.spec.affinity.is_none() && task.spec.constraints.is_empty()
}

/// A start that was noted late is judged by when it happened, and a commit that took long by when it was decided. An attempt with a
/// slot of its own was decided on when it was committed, if its program follows soon: a machine with much to do takes its time, and a
/// robot may hear of it whenever it is back. One that was handed over ahead of a free slot is decided on when its program starts.
fn patience(present: &Present, program: &Program, started: &Task) -> i64 {
    let was_committed = started.status.attempt == program.attempt && !started.attempt_ahead;
    let since_decided = if was_committed { present.at - started.attempt_at } else { 0 };
    let most = if program.place.starts_with("robot/") { i64::MAX } else { SECOND };
    PATIENCE + present.late + started.attempt_late + since_decided.min(most)
}

/// Nothing but room and order kept it back, for long enough.
pub fn is_placeable(present: &Present, task: &Task, patience: i64) -> bool {
    let long_ago = present.at - patience;
    let rested = if task.status.rest_until.is_none() {
        task.rest_over_at < long_ago
    } else {
        // A server that was started after the clock jumped has another idea of when a rest is over.
        !present.has_jumped && task.rest_over_at + SECOND < long_ago
    };
    let is_alone = || {
        present.open().all(|other| {
            other.metadata.uid == task.metadata.uid
                || task.unique_key().is_none()
                || other.unique_key() != task.unique_key() && !present.depends(task, other)
        }) && present.programs.keys().filter_map(|program| present.tasks.get(&program.task)).all(|other| {
            // Also one whose task is gone.
            let is_same = task.unique_key().is_some() && other.unique_key() == task.unique_key();
            !is_same && !present.depends(task, other)
        })
    };
    let isolated_fits = !task.spec.policy.isolated || task.runtime() == "process";
    task.is_queued()
        && !task.status.prefetched
        && !task.is_unwanted()
        && task.queued_at < long_ago
        && task.ranked_at < long_ago
        && present.subject_rests_since(task) < long_ago
        && rested
        && isolated_fits
        && present.names_exist_since(task).is_some_and(|since| since < long_ago)
        && is_alone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn low_and_high(more: &serde_json::Value) -> Story {
        let mut story = Story::new();
        let mut high = json!({"priority": 9});
        if let (Some(high), Some(more)) = (high.as_object_mut(), more.as_object()) {
            high.extend(more.clone());
        }
        story.spec("low", json!({"priority": 1})).spec("high", high);
        story
    }

    #[test]
    fn a_start_while_nothing_of_higher_priority_waits_is_as_promised() {
        let mut story = low_and_high(&json!({}));
        story.task("high", "Running", 1).started("high", 1).wait(200).started("low", 1);
        assert!(story.broken("rank_order").is_empty());
    }

    #[test]
    fn a_start_within_the_bound_is_as_promised() {
        assert!(low_and_high(&json!({})).wait(50).started("low", 1).broken("rank_order").is_empty());
    }

    #[test]
    fn a_robot_may_hear_late_of_what_was_decided_in_time() {
        for (place, found) in [("robot/r", 0), ("server/a", 1)] {
            let mut story = Story::new();
            let spec = |priority: i64| json!({"priority": priority, "runtime": if found == 0 { "robot" } else { "process" }});
            story
                .spec("low", spec(1))
                .task("low", "Pending", 1)
                .wait(3_000)
                .spec("high", spec(9))
                .wait(4_000);
            assert_eq!(story.started_at("low", 1, place).broken("rank_order").len(), found, "{place}");
        }
    }

    #[test]
    fn a_start_that_was_noted_late_is_judged_by_when_it_happened() {
        let mut story = low_and_high(&json!({}));
        assert!(story.wait(200).late(150).started("low", 1).broken("rank_order").is_empty());
        let mut story = low_and_high(&json!({}));
        assert_eq!(story.wait(300).late(150).started("low", 1).broken("rank_order").len(), 1);
    }

    #[test]
    fn an_attempt_with_a_slot_of_its_own_is_judged_by_when_it_was_committed() {
        let late_start = |high_waits: i64, prefetched: bool, millis: i64| {
            let mut story = Story::new();
            story.spec("low", json!({"priority": 1})).wait(5_000);
            story.spec("high", json!({"priority": 9})).wait(high_waits);
            let status = if prefetched {
                json!({"state": "Ready", "prefetched": true})
            } else {
                json!({"state": "Pending", "attempt": 1})
            };
            story.status("low", status).wait(millis).started("low", 1).broken("rank_order").len()
        };
        assert_eq!((late_start(50, false, 400), late_start(200, false, 400)), (0, 1));
        // What waits for a slot can be taken back.
        assert_eq!(late_start(50, true, 400), 1);
        // Nothing with a slot of its own waits for so long.
        assert_eq!(late_start(50, false, 2_000), 1);
    }

    #[test]
    fn a_start_while_a_higher_priority_waits_for_too_long_is_found() {
        assert_eq!(low_and_high(&json!({})).wait(200).started("low", 1).broken("rank_order").len(), 1);
    }

    #[test]
    fn a_priority_that_was_raised_just_before_is_no_hindrance_yet() {
        let mut story = low_and_high(&json!({}));
        story.spec("high", json!({"priority": 0})).wait(200).spec("high", json!({"priority": 9}));
        assert!(story.wait(50).started("low", 1).broken("rank_order").is_empty());
        assert_eq!(story.wait(100).started("low", 2).broken("rank_order").len(), 1);
    }

    #[test]
    fn a_rest_that_has_just_ended_is_a_reason_still() {
        let rest = json!({
            "state": "Ready", "attempt": 1,
            "stateSince": "2027-01-15T08:00:00Z", "restUntil": "2027-01-15T08:00:02Z",
        });
        let mut story = low_and_high(&json!({}));
        story.task("high", "Running", 1).status("high", rest).wait(2_000);
        story.status("high", json!({"state": "QuotaBlocked", "attempt": 1})).wait(50);
        assert!(story.started("low", 1).broken("rank_order").is_empty());
        assert_eq!(story.wait(100).started("low", 2).broken("rank_order").len(), 1);
    }

    #[test]
    fn a_task_that_needs_more_room_may_be_passed() {
        let mut story = low_and_high(&json!({"resources": {"memory": "5"}}));
        assert!(story.wait(200).started("low", 1).broken("rank_order").is_empty());
    }

    #[test]
    fn an_isolated_task_that_is_first_may_not_be_passed() {
        let mut story = low_and_high(&json!({"policy": {"isolated": true}}));
        assert_eq!(story.wait(200).started("low", 1).broken("rank_order").len(), 1);
    }

    #[test]
    fn there_is_no_promise_while_nobody_leads() {
        let mut story = low_and_high(&json!({}));
        assert!(story.wait(200).crashed().started("low", 1).broken("rank_order").is_empty());
    }
}
