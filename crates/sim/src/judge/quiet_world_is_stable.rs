//! When the outside is quiet, everything comes to rest: every task that was submitted ends, and every group and job, no program
//! runs on, and no object changes for ever.

use std::collections::BTreeMap;

use serde_json::Value;

use super::history::What;
use super::present::Present;
use super::{Moment, Statement};

/// An object changes no more often than this once all is quiet.
const MOST_CHANGES: u32 = 200;
/// Signs of life of a robot are written no more often than this, in milliseconds, as long as it lives.
const SIGN_OF_LIFE: i64 = 10_000;
const ROBOTS: &str = "robots.muster.dev";

#[derive(Default)]
pub struct QuietWorldIsStable {
    /// Changes since all is quiet, by resource and path.
    changes: BTreeMap<(String, String), u32>,
}

impl Statement for QuietWorldIsStable {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::Change(commit) = &moment.entry.what else { return };
        // Leases and notes of how far somebody came are renewed for ever.
        let Some(quiet_since) = moment.present.quiet_since else { return };
        if !commit.resource.ends_with("muster.dev") {
            return;
        }
        let is_robot = commit.resource == ROBOTS;
        let signs = if is_robot { (moment.present.at - quiet_since) / SIGN_OF_LIFE } else { 0 };
        let most = MOST_CHANGES.saturating_add(u32::try_from(signs).unwrap_or(u32::MAX));
        let key = (commit.resource.clone(), commit.path.clone());
        moment.present.compared();
        let changes = self.changes.entry(key).or_default();
        *changes += 1;
        if *changes >= most {
            *changes = 0;
            broken
                .push(format!("{} {} changed {most} times since all is quiet", commit.resource, commit.path));
        }
    }

    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        if present.quiet_since.is_none() {
            return;
        }
        let open: Vec<_> =
            present.open().map(|task| format!("{} ({})", task.metadata.name, task.state())).collect();
        if !open.is_empty() {
            broken.push(format!(
                "{} tasks never ended: {}",
                open.len(),
                open[..open.len().min(5)].join(", ")
            ));
        }
        for resource in ["taskgroups.muster.dev", "jobs.muster.dev"] {
            for work in present.all(resource).filter(|work| !is_over(work)) {
                let (name, state) = (&work["metadata"]["name"], &work["status"]["state"]);
                broken.push(format!("{resource} {name} never ended: {state} {}", work["status"]["counts"]));
            }
        }
        for program in present.programs.keys() {
            broken.push(format!(
                "attempt {} of {} runs on at {}",
                program.attempt, program.task, program.place
            ));
        }
    }
}

fn is_over(work: &Value) -> bool {
    matches!(work["status"]["state"].as_str(), Some("Succeeded" | "Failed" | "Canceled" | "Skipped"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    #[test]
    fn a_world_in_which_all_ended_is_as_promised() {
        let mut story = Story::new();
        story.task("a", "Running", 1).started("a", 1).quiet().ended("a", 1, 0).task("a", "Succeeded", 1);
        assert!(story.broken("quiet_world_is_stable").is_empty());
    }

    #[test]
    fn a_task_that_never_ends_is_found() {
        let mut story = Story::new();
        assert_eq!(story.task("a", "Ready", 0).quiet().broken("quiet_world_is_stable").len(), 1);
    }

    #[test]
    fn a_group_that_never_ends_is_found() {
        let mut story = Story::new();
        story.object("taskgroups.muster.dev", "d/g", json!({"status": {"state": "Running"}})).quiet();
        assert_eq!(story.broken("quiet_world_is_stable").len(), 1);
        story.object("taskgroups.muster.dev", "d/g", json!({"status": {"state": "Failed"}}));
        assert!(story.broken("quiet_world_is_stable").is_empty());
    }

    #[test]
    fn a_program_that_runs_on_is_found() {
        let mut story = Story::new();
        story.task("a", "Failed", 1).started("a", 1).quiet();
        assert_eq!(story.broken("quiet_world_is_stable").len(), 1);
    }

    #[test]
    fn an_object_that_changes_for_ever_is_found() {
        let mut story = Story::new();
        story.quiet();
        for _ in 0..200 {
            story.object("jobs.muster.dev", "d/j", json!({"status": {"state": "Failed"}}));
        }
        assert_eq!(story.broken("quiet_world_is_stable").len(), 1);
    }

    #[test]
    fn a_robot_gives_signs_of_life_for_as_long_as_it_lives_but_not_more_often_than_it_should() {
        let found = |pause: i64| {
            let mut story = Story::new();
            story.quiet();
            for _ in 0..400 {
                story.wait(pause).object("robots.muster.dev", "d/r", json!({"status": {"phase": "Online"}}));
            }
            story.broken("quiet_world_is_stable").len()
        };
        assert_eq!((found(15_000), found(1_000)), (0, 1));
    }
}
