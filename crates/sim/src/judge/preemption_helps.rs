//! A task is preempted only where that helps: there is a task of higher effective priority that waits, that may preempt or
//! that one waits for which may, and that needs what the preempted one gives back. Exempt tasks are never preempted.
//!
//! What was committed a moment before may not have been seen: a task that began to wait for the victim, or the deletion of the one
//! that waited.

use super::present::Present;
use super::task::Task;
use super::{Moment, PATIENCE, Statement};

#[derive(Default)]
pub struct PreemptionHelps {
    /// Preempted tasks for which no task of higher rank was seen to wait yet: when, their uid, and the finding. One pass of the engine
    /// commits its decisions one after the other, so the task that is helped may be committed after its victim.
    open: Vec<(i64, String, String)>,
    /// Tasks that were deleted while they waited, and when.
    deleted: Vec<(i64, Task)>,
}

impl Statement for PreemptionHelps {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let present = moment.present;
        self.open.retain(|(at, uid, words)| {
            let victim = present.tasks.get(uid);
            if victim.is_some_and(|victim| present.open().any(|other| is_helped(present, other, victim))) {
                return false;
            }
            let is_late = present.at > *at;
            if is_late {
                broken.push(words.clone());
            }
            !is_late
        });
        self.deleted.retain(|(at, _)| present.at - at <= PATIENCE);
        if let (Some(task), Some(before)) = (moment.task, moment.before)
            && task.gone
            && waits(before)
        {
            self.deleted.push((present.at, before.clone()));
        }
        let is_preempted = |task: &Task| task.status.stopping.as_deref() == Some("Preempted");
        let Some(task) = moment.task.filter(|task| is_preempted(task)) else { return };
        if moment.before.is_some_and(is_preempted) {
            return;
        }
        present.compared();
        let name = &task.metadata.name;
        if task.spec.policy.preempt_exempt {
            broken.push(format!("{name} is exempt and was preempted"));
        }
        let mut waiting = present.open().chain(self.deleted.iter().map(|(_, deleted)| deleted));
        if !waiting.any(|other| is_helped(present, other, task)) {
            let rank = present.effective_priority(task);
            let words = format!(
                "{name} (effective priority {rank}) was preempted, and that helps no task of higher priority"
            );
            self.open.push((present.at, task.metadata.uid.clone(), words));
        }
    }

    fn close(&mut self, _present: &Present, broken: &mut Vec<String>) {
        broken.extend(self.open.drain(..).map(|(_, _, words)| words));
    }
}

fn is_helped(present: &Present, waiting: &Task, victim: &Task) -> bool {
    let may_preempt = waiting.spec.policy.preempt_enabled
        || present.open().any(|other| other.spec.policy.preempt_enabled && present.depends(other, waiting));
    let ranks_higher = present.effective_priority(waiting) > present.known_priority(victim);
    waits(waiting)
        && may_preempt
        && ranks_higher
        && waiting.metadata.uid != victim.metadata.uid
        && waiting.runtime() == victim.runtime()
        && gives_back(present, waiting, victim)
}

/// A task that could not be placed yet may have been Pending for long.
fn waits(task: &Task) -> bool {
    task.is_queued() || task.state() == "Pending" && !task.gone
}

/// The victim holds something of which there is too little for the one that waits.
fn gives_back(present: &Present, waiting: &Task, victim: &Task) -> bool {
    if waiting.runtime() == "robot" {
        return robot_suits(present, waiting, victim);
    }
    // A quota that others use too may lack anything that a pod gives back.
    let Some(room) = present.room.filter(|_| waiting.runtime() != "pod") else { return true };
    // A program holds its slot before it is committed that it runs, and after its task was deleted.
    let runs = |task: &Task| present.programs.keys().any(|program| program.task == task.metadata.uid);
    let holds_slot =
        |task: &&Task| task.runtime() == waiting.runtime() && (task.is_active() && !task.gone || runs(task));
    let active = || present.tasks.values().filter(holds_slot);
    let slots = active().count() as u64;
    let memory: u64 = active().map(Task::memory).sum();
    let lacks_memory = room.memory.is_some_and(|most| memory + waiting.memory() > most);
    slots >= room.slots || lacks_memory && victim.memory() > 0 || waiting.spec.policy.isolated
}

fn robot_suits(present: &Present, waiting: &Task, victim: &Task) -> bool {
    let Some(robot) = victim.attempt(victim.status.attempt).map(|attempt| &attempt.robot) else {
        return false;
    };
    let path = format!("{}/{robot}", victim.metadata.namespace);
    let Some(found) = present.object("robots.muster.dev", &path) else { return true };
    let has = |(label, value): (&String, &String)| found["spec"]["labels"][label].as_str() == Some(value);
    (waiting.spec.target_robot.is_empty() || waiting.spec.target_robot == *robot)
        && waiting.spec.robot_selector.iter().all(has)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    fn preempted_for(slots: u64, victim: Value, waiting: Value) -> Vec<String> {
        let mut story = Story::new();
        story.room(slots, Some(10)).spec("victim", victim).spec("waiting", waiting);
        story.task("victim", "Running", 1);
        story.status("victim", json!({"state": "Running", "attempt": 1, "stopping": "Preempted"}));
        story.broken("preemption_helps")
    }

    #[test]
    fn a_victim_of_lower_priority_whose_slot_is_needed_is_as_promised() {
        let waiting = json!({"priority": 5, "policy": {"preemptEnabled": true}});
        assert!(preempted_for(1, json!({"priority": 1}), waiting).is_empty());
    }

    #[test]
    fn a_victim_of_equal_priority_is_found() {
        let waiting = json!({"priority": 1, "policy": {"preemptEnabled": true}});
        assert_eq!(preempted_for(1, json!({"priority": 1}), waiting).len(), 1);
    }

    #[test]
    fn a_victim_that_frees_nothing_that_is_needed_is_found() {
        let waiting =
            json!({"priority": 5, "policy": {"preemptEnabled": true}, "resources": {"memory": "99"}});
        assert_eq!(preempted_for(5, json!({"priority": 1}), waiting).len(), 1);
    }

    #[test]
    fn what_was_committed_a_moment_before_may_not_have_been_seen() {
        let of = |kind: &str, priority: i64| json!({"kind": kind, "subject": {"kind": "Application", "name": "a"}, "priority": priority});
        let found = |millis: i64| {
            let mut story = Story::new();
            story.kind("first", &[]).kind("second", &["first"]).room(1, None);
            story.spec("victim", of("first", 1)).task("victim", "Running", 1);
            story.spec("waiting", json!({"priority": 5, "policy": {"preemptEnabled": true}}));
            story.spec("lender", of("second", 9)).wait(millis);
            story.status("victim", json!({"state": "Running", "attempt": 1, "stopping": "Preempted"}));
            story.broken("preemption_helps").len()
        };
        assert_eq!((found(50), found(200)), (0, 1));
        let found = |millis: i64| {
            let mut story = Story::new();
            story.room(1, None).spec("victim", json!({"priority": 1})).task("victim", "Running", 1);
            story.spec("waiting", json!({"priority": 5, "policy": {"preemptEnabled": true}}));
            story.delete("waiting").wait(millis);
            story.status("victim", json!({"state": "Running", "attempt": 1, "stopping": "Preempted"}));
            story.broken("preemption_helps").len()
        };
        assert_eq!((found(50), found(200)), (0, 1));
    }

    #[test]
    fn a_program_holds_its_slot_before_that_is_committed() {
        let waiting = json!({"priority": 5, "policy": {"preemptEnabled": true}});
        let found = |starts: bool| {
            let mut story = Story::new();
            story.room(2, None).spec("victim", json!({"priority": 1})).spec("waiting", waiting.clone());
            story.task("victim", "Running", 1);
            story.status("third", json!({"state": "Ready", "prefetched": true}));
            if starts {
                story.started("third", 1);
            }
            story.status("victim", json!({"state": "Running", "attempt": 1, "stopping": "Preempted"}));
            story.broken("preemption_helps").len()
        };
        assert_eq!((found(true), found(false)), (0, 1));
    }

    #[test]
    fn the_program_of_a_deleted_task_holds_its_slot() {
        let waiting = json!({"priority": 5, "policy": {"preemptEnabled": true}});
        let found = |ends: bool| {
            let mut story = Story::new();
            story.room(2, None).spec("victim", json!({"priority": 1})).spec("waiting", waiting.clone());
            story.task("victim", "Running", 1).task("third", "Running", 1);
            story.started("third", 1).delete("third");
            if ends {
                story.ended("third", 1, 143);
            }
            story.status("victim", json!({"state": "Running", "attempt": 1, "stopping": "Preempted"}));
            story.broken("preemption_helps").len()
        };
        assert_eq!((found(false), found(true)), (0, 1));
    }

    #[test]
    fn an_exempt_victim_is_found() {
        let victim = json!({"priority": 1, "policy": {"preemptExempt": true}});
        let waiting = json!({"priority": 5, "policy": {"preemptEnabled": true}});
        assert_eq!(preempted_for(1, victim, waiting).len(), 1);
    }
}
