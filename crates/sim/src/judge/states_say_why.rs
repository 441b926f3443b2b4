//! The recorded state of a task that waits says why: QuotaBlocked is for room alone, and a task that waits for others whatever
//! the room is Postponed. While a server leads, the state is updated within a bound.

use std::collections::BTreeMap;

use super::present::Present;
use super::task::Task;
use super::{Moment, Statement};

/// How long a state may say something else, in milliseconds.
const LONG: i64 = 20_000;

#[derive(Default)]
pub struct StatesSayWhy {
    looked_at: i64,
    /// Tasks in the queue: their state and since when, by uid.
    queued: BTreeMap<String, (String, i64)>,
    /// When an isolated task was last at work or next.
    isolated_until: i64,
}

impl Statement for StatesSayWhy {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let present = moment.present;
        if let Some(task) = moment.task {
            let uid = &task.metadata.uid;
            if task.spec.policy.isolated && moment.before.is_some_and(Task::is_submitted) {
                self.isolated_until = present.at;
            }
            if !task.is_queued() || task.gone {
                self.queued.remove(uid);
            } else if self.queued.get(uid).is_none_or(|(state, _)| state != task.state()) {
                self.queued.insert(uid.clone(), (task.state().to_owned(), present.at));
            }
        }
        let is_new = present.at > self.looked_at;
        self.looked_at = present.at;
        if is_new && present.calm_for(LONG) {
            self.look(present, broken);
        }
    }
}

impl StatesSayWhy {
    fn look(&mut self, present: &Present, broken: &mut Vec<String>) {
        let long_ago = present.at - LONG;
        let mut said = Vec::new();
        for (uid, (state, _)) in self.queued.iter().filter(|(_, (_, since))| *since < long_ago) {
            let Some(task) = present.tasks.get(uid) else { continue };
            let awaited = |other: &&Task| other.is_submitted() && present.depends(task, other);
            if state == "QuotaBlocked"
                && let Some(other) = present.open().find(|it| awaited(it) && it.submitted_at < long_ago)
            {
                said.push((
                    uid.clone(),
                    format!("{}, which it depends on, has not ended", other.metadata.name),
                ));
            }
            let waits = state == "Postponed" && task.status.waiting_for.reason == "Dependency";
            let rests = present.subject_rests_since(task).max(self.isolated_until) < long_ago;
            // Whatever else makes it Postponed.
            let keeps_back = |it: &Task| {
                let is_alike = it.metadata.uid != *uid && it.unique_key() == task.unique_key();
                it.spec.policy.isolated || is_alike || present.depends(task, it)
            };
            let left = || present.reachable_programs().map(|(_, _, of)| of);
            let is_there = present.names_exist_since(task).is_some();
            if waits && rests && is_there && !present.open().chain(left()).any(keeps_back) {
                said.push((uid.clone(), "nothing that it depends on is there any more".to_owned()));
            }
            present.compared();
        }
        for (uid, why) in said {
            let (name, (state, _)) = (&present.tasks[&uid].metadata.name, &self.queued[&uid]);
            broken.push(format!("{name} is {state} for more than {LONG} ms, and {why}"));
            self.queued.remove(&uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    /// A task that depends on another one and is in a state for a while.
    fn waits(status: serde_json::Value, other: &str) -> Vec<String> {
        let mut story = Story::new();
        story.kind("discover", &[]).kind("analyze", &["discover"]);
        let of = |kind: &str| json!({"kind": kind, "subject": {"kind": "Application", "name": "s"}});
        story.spec("a", of("analyze")).spec("b", of("discover"));
        story.task("b", other, 1).status("a", status).wait(60_000).spec("c", json!({}));
        story.broken("states_say_why")
    }

    #[test]
    fn a_task_that_waits_for_another_and_says_so_is_as_promised() {
        let postponed = json!({"state": "Postponed", "waitingFor": {"reason": "Dependency"}});
        assert!(waits(postponed, "Running").is_empty());
        assert!(waits(json!({"state": "QuotaBlocked"}), "Succeeded").is_empty());
    }

    #[test]
    fn a_task_that_waits_for_another_and_speaks_of_room_is_found() {
        assert_eq!(waits(json!({"state": "QuotaBlocked"}), "Running").len(), 1);
    }

    #[test]
    fn a_task_that_waits_for_another_that_has_ended_is_found() {
        let postponed = json!({"state": "Postponed", "waitingFor": {"reason": "Dependency"}});
        assert_eq!(waits(postponed, "Succeeded").len(), 1);
    }
}
