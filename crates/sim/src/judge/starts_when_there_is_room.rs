//! No task is kept waiting in vain: where somebody leads and there is room, a task that nothing keeps back is started soon.
//!
//! Processes alone are looked at, and tasks that need a slot and nothing else. An isolated task that waits keeps others back, unless it
//! could not be placed at all.

use super::history::Program;
use super::present::Present;
use super::rank_order::{is_placeable, is_plain};
use super::task::Task;
use super::{Moment, Statement};

/// How long there may be room and a task to fill it, in milliseconds.
const SOON: i64 = 10_000;

#[derive(Default)]
pub struct StartsWhenThereIsRoom {
    looked_at: i64,
    /// When there was last no room.
    full_at: i64,
    /// There was none after the last entry.
    was_full: bool,
}

impl Statement for StartsWhenThereIsRoom {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let present = moment.present;
        let is_new = present.at > self.looked_at;
        self.looked_at = present.at;
        let is_full = !present.calm_for(SOON) || !has_room(present);
        if is_full || self.was_full {
            self.full_at = present.at;
        }
        self.was_full = is_full;
        // Of what happens in one moment only the first was so in the time before.
        if !is_new || present.at - self.full_at <= SOON {
            return;
        }
        present.compared();
        let long_ago = present.at - SOON;
        let in_vain = present.open().find(|task| {
            is_simple(task)
                && task.queued_at < long_ago
                && present.subject_rests_since(task) < long_ago
                && is_placeable(present, task, SOON)
                && present.names_exist_since(task).is_some_and(|since| since < long_ago)
        });
        if let Some(task) = in_vain {
            broken.push(format!(
                "{} is {} since {} ms, and for {} ms there is room for it",
                task.metadata.name,
                task.state(),
                present.at - task.queued_at,
                present.at - self.full_at
            ));
            self.full_at = present.at;
        }
    }
}

/// It needs a slot for a process and nothing else.
pub fn is_simple(task: &Task) -> bool {
    task.runtime() == "process"
        && task.memory() == 0
        && !task.spec.policy.isolated
        && task.status.refusals.attempt == 0
        && is_plain(task)
}

/// A process could be started.
fn has_room(present: &Present) -> bool {
    let Some(room) = present.room else { return false };
    // Also one that was deleted keeps others back until its program ended.
    let is_isolated =
        |program: &Program| present.tasks.get(&program.task).is_some_and(|task| task.spec.policy.isolated);
    taken(present) < room.slots
        && !present.open().any(|task| keeps_others_back(present, task))
        && !present.programs.keys().any(is_isolated)
}

/// Slots for processes that are taken or about to be.
pub fn taken(present: &Present) -> u64 {
    let has_slot = |task: &Task| task.is_active() || task.status.prefetched;
    let active = present.open().filter(|task| task.runtime() == "process" && has_slot(task));
    let left = present.programs.keys().filter(|program| {
        program.place.starts_with("server/")
            && !present.tasks.get(&program.task).is_some_and(|task| task.is_submitted() && has_slot(task))
    });
    (active.count() + left.count()) as u64
}

/// An isolated task that is at work, or that could be if nothing else were.
fn keeps_others_back(present: &Present, task: &Task) -> bool {
    if !task.spec.policy.isolated {
        return false;
    }
    let path = format!("{}/{}", task.metadata.namespace, task.spec.target_robot);
    let is_nowhere =
        !task.spec.target_robot.is_empty() && present.object("robots.muster.dev", &path).is_none();
    let is_too_large = present.room.and_then(|room| room.memory).is_some_and(|most| task.memory() > most);
    !(task.is_queued() && (is_nowhere || is_too_large))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn waiting(other: serde_json::Value) -> Vec<String> {
        let mut story = Story::new();
        story.room(2, None).spec("other", other).wait(20_000).spec("a", json!({})).wait(20_000);
        story.spec("b", json!({})).broken("starts_when_there_is_room")
    }

    #[test]
    fn a_task_that_is_started_soon_is_as_promised() {
        let mut story = Story::new();
        story
            .room(2, None)
            .wait(20_000)
            .spec("a", json!({}))
            .wait(5_000)
            .task("a", "Running", 1)
            .wait(60_000);
        assert!(story.spec("b", json!({})).broken("starts_when_there_is_room").is_empty());
    }

    #[test]
    fn a_task_that_waits_although_there_is_room_is_found() {
        assert_eq!(waiting(json!({"suspend": true})).len(), 1);
    }

    #[test]
    fn an_isolated_task_that_waits_keeps_others_back() {
        assert!(waiting(json!({"policy": {"isolated": true}})).is_empty());
    }

    #[test]
    fn an_isolated_task_that_no_robot_could_take_keeps_nobody_back() {
        let nowhere = json!({"policy": {"isolated": true}, "runtime": "robot", "targetRobot": "nowhere"});
        assert_eq!(waiting(nowhere).len(), 1);
    }
}
