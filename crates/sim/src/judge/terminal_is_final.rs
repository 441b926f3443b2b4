//! What has ended stays as it ended: no state after Succeeded, Failed or Canceled, no further attempt, and no program started.
//! Numbers of attempts and generations never go back, but for an attempt that was awaited and came back.

use std::collections::BTreeMap;

use serde_json::Value;

use super::history::What;
use super::{Moment, Statement};

/// Kinds that end besides tasks.
const WORK: [&str; 2] = ["jobs.muster.dev", "taskgroups.muster.dev"];

#[derive(Default)]
pub struct TerminalIsFinal {
    /// How jobs and groups ended, by uid.
    ended: BTreeMap<String, String>,
    /// Generations, by uid.
    generations: BTreeMap<String, i64>,
}

impl Statement for TerminalIsFinal {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if let Some((program, task)) = moment.started()
            && task.is_over()
        {
            let name = &task.metadata.name;
            broken.push(format!(
                "attempt {} of {name} was started, which is {}",
                program.attempt,
                task.state()
            ));
        }
        if let (Some(before), Some(task)) = (moment.before, moment.task) {
            moment.present.compared();
            let name = &task.metadata.name;
            if before.is_over() && before.state() != task.state() {
                broken.push(format!("task {name} was {} and became {}", before.state(), task.state()));
            }
            let (was, is) = (before.status.attempt, task.status.attempt);
            if before.is_over() && was != is {
                broken.push(format!("task {name} had ended and went from attempt {was} to {is}"));
            }
            // An attempt that a quota refused never was, and gives its number back.
            let was_refused = is + 1 == was && task.status.refusals.attempt == was;
            if is < was && before.status.original != Some(is) && !was_refused {
                broken.push(format!("task {name} went back from attempt {was} to {is}"));
            }
            if task.metadata.generation < before.metadata.generation {
                broken.push(format!("the generation of task {name} went back"));
            }
        }
        if let What::Change(commit) = &moment.entry.what
            && let Some(object) = moment.present.object(&commit.resource, &commit.path)
        {
            self.read_object(&commit.resource, &commit.path, object, broken);
        }
    }
}

impl TerminalIsFinal {
    fn read_object(&mut self, resource: &str, path: &str, object: &Value, broken: &mut Vec<String>) {
        let Some(uid) = object["metadata"]["uid"].as_str() else { return };
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        let last = self.generations.entry(uid.to_owned()).or_insert(generation);
        if generation < *last {
            broken.push(format!("the generation of {resource} {path} went back from {last} to {generation}"));
        }
        *last = generation;
        let state = object["status"]["state"].as_str().unwrap_or_default();
        if !WORK.contains(&resource) {
            return;
        }
        if let Some(end) = self.ended.get(uid).filter(|end| *end != state) {
            broken.push(format!("{resource} {path} was {end} and became {state}"));
        }
        if matches!(state, "Succeeded" | "Failed" | "Canceled" | "Skipped") {
            self.ended.insert(uid.to_owned(), state.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    #[test]
    fn a_task_that_ends_once_is_as_promised() {
        let mut story = Story::new();
        story.task("a", "Running", 1).task("a", "Ready", 1).task("a", "Running", 2).task("a", "Failed", 2);
        assert!(story.broken("terminal_is_final").is_empty());
    }

    #[test]
    fn a_task_that_lives_again_is_found() {
        let mut story = Story::new();
        assert_eq!(
            story.task("a", "Succeeded", 1).task("a", "Ready", 1).broken("terminal_is_final").len(),
            1
        );
    }

    #[test]
    fn a_program_of_a_task_that_has_ended_is_found() {
        let mut story = Story::new();
        assert_eq!(story.task("a", "Canceled", 1).started("a", 1).broken("terminal_is_final").len(), 1);
    }

    #[test]
    fn an_attempt_number_that_goes_back_is_found() {
        let mut story = Story::new();
        assert_eq!(story.task("a", "Ready", 2).task("a", "Running", 1).broken("terminal_is_final").len(), 1);
    }

    #[test]
    fn an_attempt_that_a_quota_refused_gives_its_number_back() {
        let mut story = Story::new();
        story.task("a", "Pending", 2);
        story.status(
            "a",
            json!({"state": "QuotaBlocked", "attempt": 1, "refusals": {"attempt": 2, "count": 1}}),
        );
        assert!(story.broken("terminal_is_final").is_empty());
    }

    #[test]
    fn a_job_that_ends_in_two_ways_is_found() {
        let mut story = Story::new();
        let job = |state: &str| json!({"metadata": {"uid": "j"}, "status": {"state": state}});
        story.object("jobs.muster.dev", "d/j", job("Failed")).object(
            "jobs.muster.dev",
            "d/j",
            job("Succeeded"),
        );
        assert_eq!(story.broken("terminal_is_final").len(), 1);
    }
}
