//! Whoever asks for the end of a task gets it: after a cancel, a deletion or the end of its time there is no further attempt,
//! and its program ends within a bound. And a task that nobody asked to end does not end Canceled.

use std::collections::BTreeSet;

use super::history::{Program, What};
use super::present::Present;
use super::{Moment, Statement};

/// A program has this long to end, its grace included, while somebody leads.
const BOUND: i64 = 180_000;
/// Finalizers that last as long as an attempt.
const OWN_FINALIZERS: [&str; 3] = ["muster.dev/process", "muster.dev/pod", "muster.dev/robot"];

#[derive(Default)]
pub struct CancelAndDeleteWin {
    late: BTreeSet<Program>,
}

impl Statement for CancelAndDeleteWin {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if let What::Change(_) = &moment.entry.what {
            Self::read_task(moment, broken);
        }
        self.read_programs(moment.present, broken);
    }

    /// A deleted task is gone when the outside is quiet, unless a finalizer of its user keeps it.
    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        if present.quiet_since.is_none() {
            return;
        }
        for task in present.tasks.values().filter(|task| !task.gone && task.is_over()) {
            present.compared();
            let is_own = |finalizer: &String| OWN_FINALIZERS.contains(&finalizer.as_str());
            if task.metadata.deletion_timestamp.is_some() && task.metadata.finalizers.iter().all(is_own) {
                broken.push(format!(
                    "{} was deleted and has ended, and is there still with {:?}",
                    task.metadata.name, task.metadata.finalizers
                ));
            }
        }
    }
}

impl CancelAndDeleteWin {
    fn read_task(moment: &Moment<'_>, broken: &mut Vec<String>) {
        let (Some(task), Some(before)) = (moment.task, moment.before) else { return };
        moment.present.compared();
        let name = &task.metadata.name;
        // One that waited at its executor may have begun before it could be taken back.
        let is_new = task.status.attempt > before.status.attempt && !before.status.prefetched;
        if is_new && before.is_unwanted() && !before.gone {
            broken.push(format!("{name} got attempt {} after its end was asked for", task.status.attempt));
        }
        let is_canceled = task.state() == "Canceled" && before.state() != "Canceled";
        if is_canceled && !task.is_unwanted() && !before.is_unwanted() {
            let why = before.status.stopping.as_deref().unwrap_or("no reason");
            broken.push(format!("{name} ended Canceled for {why}, and nobody asked for that"));
        }
        let goes_back = ["Preempted", "Unschedulable"];
        let was_told = before.status.stopping.as_deref().is_some_and(|why| !goes_back.contains(&why));
        if was_told && before.is_active() && task.is_queued() {
            broken.push(format!("{name} was told to end and went back to the queue"));
        }
    }

    fn read_programs(&mut self, present: &Present, broken: &mut Vec<String>) {
        if !present.calm_for(BOUND) {
            return;
        }
        for (program, running, task) in present.reachable_programs() {
            let since = task.unwanted_at.map(|since| since.max(running.since));
            let is_late = since.is_some_and(|since| present.at - since > BOUND);
            if is_late && self.late.insert(program.clone()) {
                let name = &task.metadata.name;
                broken.push(format!(
                    "attempt {} of {name} runs on {} {} ms after its end was asked for",
                    program.attempt, program.place, BOUND
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    #[test]
    fn a_canceled_task_that_ends_is_as_promised() {
        let mut story = Story::new();
        story.task("a", "Running", 1).started("a", 1).spec("a", json!({"cancel": true})).wait(1000);
        story.ended("a", 1, 143).task("a", "Canceled", 1);
        assert!(story.broken("cancel_and_delete_win").is_empty());
    }

    #[test]
    fn another_attempt_after_a_cancel_is_found() {
        let mut story = Story::new();
        story.task("a", "Running", 1).spec("a", json!({"cancel": true})).task("a", "Pending", 2);
        assert_eq!(story.broken("cancel_and_delete_win").len(), 1);
    }

    #[test]
    fn a_preempted_task_that_ends_canceled_is_found() {
        let mut story = Story::new();
        story.status("a", json!({"state": "Running", "attempt": 1, "stopping": "Preempted"}));
        assert_eq!(story.task("a", "Canceled", 1).broken("cancel_and_delete_win").len(), 1);
    }

    #[test]
    fn a_canceled_task_that_goes_back_to_the_queue_is_found() {
        let mut story = Story::new();
        story.status("a", json!({"state": "Running", "attempt": 1, "stopping": "Canceled"}));
        assert_eq!(story.task("a", "Ready", 1).broken("cancel_and_delete_win").len(), 1);
    }

    #[test]
    fn a_program_that_outlives_its_deleted_task_is_found() {
        let mut story = Story::new();
        story.task("a", "Running", 1).started("a", 1).delete("a").wait(400_000).task("b", "Ready", 0);
        assert_eq!(story.broken("cancel_and_delete_win").len(), 1);
    }

    #[test]
    fn a_deleted_task_that_has_ended_and_never_goes_is_found() {
        let stays = |finalizers: &[&str]| {
            let mut story = Story::new();
            let metadata = json!({"name": "a", "namespace": "d", "uid": "a", "finalizers": finalizers,
                "deletionTimestamp": "2026-01-01T00:00:00Z"});
            story.write(&json!({"metadata": metadata, "spec": {}, "status": {"state": "Canceled"}}));
            story.quiet().broken("cancel_and_delete_win").len()
        };
        assert_eq!(stays(&["muster.dev/process"]), 1);
        assert_eq!(stays(&["muster.dev/process", "example.com/mine"]), 0, "its user keeps it");
    }
}
