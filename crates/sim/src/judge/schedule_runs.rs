//! Runs of a schedule that may not overlap do not, whatever became of the task of the other, and the end of other work makes at most one
//! run.

use std::collections::{BTreeMap, BTreeSet};

use super::task::Task;
use super::{Moment, Statement};

const TRIGGERED_BY: &str = "muster.dev/triggered-by";

#[derive(Default)]
pub struct ScheduleRuns {
    /// Uids of runs that have not ended, by uid of the schedule.
    open: BTreeMap<String, BTreeSet<String>>,
    /// How often work of a name made a run, by uid of the schedule.
    triggers: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Statement for ScheduleRuns {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some(task) = moment.task else { return };
        let Some(owner) = task.metadata.owner_references.iter().find(|it| it.kind == "Schedule") else {
            return;
        };
        let (uid, name) = (&task.metadata.uid, &task.metadata.name);
        let open = self.open.entry(owner.uid.clone()).or_default();
        if task.gone || task.is_over() {
            open.remove(uid);
            return;
        }
        if moment.before.is_some() {
            return;
        }
        moment.present.compared();
        let path = format!("{}/{}", task.metadata.namespace, owner.name);
        let schedule = moment.present.object("schedules.muster.dev", &path);
        let policy = schedule.map(|schedule| &schedule["spec"]["schedulePolicy"]);
        let may_overlap = policy.is_none_or(|policy| {
            policy["allowConcurrent"] == true
                || matches!(policy["concurrency"].as_str(), Some("Allow" | "Replace"))
        });
        if let Some(other) = open.iter().next().filter(|_| !may_overlap) {
            let other = &moment.present.tasks[other].metadata.name;
            broken.push(format!("{name} was made while {other} of the same schedule had not ended"));
        }
        let is_of_schedule =
            |other: &Task| other.metadata.owner_references.iter().any(|it| it.uid == owner.uid);
        let mut programs = moment.present.reachable_programs().filter(|(.., other)| is_of_schedule(other));
        if let Some((.., other)) = programs.next().filter(|_| !may_overlap) {
            let other = &other.metadata.name;
            broken.push(format!("{name} was made while a program of {other} of the same schedule ran"));
        }
        open.insert(uid.clone());
        if let Some(work) = task.metadata.annotations.get(TRIGGERED_BY) {
            let runs = self.triggers.entry(owner.uid.clone()).or_default().entry(work.clone()).or_default();
            *runs += 1;
            // A task may have had the name of another that was gone before.
            let named = |it: &&Task| *work == format!("Task {}", it.metadata.name);
            if *runs > moment.present.tasks.values().filter(named).count().max(1) {
                broken.push(format!("{name} was made again for the end of {work}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    fn runs(policy: &Value, states: &[(&str, &str)]) -> Vec<String> {
        let mut story = Story::new();
        story.object("schedules.muster.dev", "d/s", json!({"spec": {"schedulePolicy": policy}}));
        for (name, state) in states {
            story.write(&json!({
                "metadata": {"name": name, "uid": name, "namespace": "d",
                    "ownerReferences": [{"kind": "Schedule", "name": "s", "uid": "s"}]},
                "status": {"state": state},
            }));
        }
        story.broken("schedule_runs")
    }

    #[test]
    fn runs_after_one_another_are_as_promised() {
        assert!(runs(&json!({}), &[("a", "Ready"), ("a", "Failed"), ("b", "Ready")]).is_empty());
    }

    #[test]
    fn a_deleted_run_whose_program_still_runs_has_not_ended() {
        for (policy, found) in [(json!({}), 1), (json!({"concurrency": "Replace"}), 0)] {
            let mut story = Story::new();
            story.object("schedules.muster.dev", "d/s", json!({"spec": {"schedulePolicy": policy}}));
            let run = |name: &str| {
                json!({"metadata": {"name": name, "uid": name, "namespace": "d",
                "ownerReferences": [{"kind": "Schedule", "name": "s", "uid": "s"}]}})
            };
            story.write(&run("a"));
            story.started("a", 1).delete("a");
            story.write(&run("b"));
            assert_eq!(story.broken("schedule_runs").len(), found, "{policy}");
        }
    }

    #[test]
    fn runs_that_overlap_though_they_may_not_are_found() {
        assert_eq!(runs(&json!({}), &[("a", "Ready"), ("b", "Ready")]).len(), 1);
        assert!(runs(&json!({"allowConcurrent": true}), &[("a", "Ready"), ("b", "Ready")]).is_empty());
    }
}
