//! A backfill makes the runs of its own times: none outside of them, each after the one before, no more at once than it may, and where
//! runs may not overlap none beside another. One that is over made all of them, and made those again whose run was replaced by another
//! run of the schedule, up to three times. A schedule does not name runs that have ended for ever.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::What;
use super::present::Present;
use super::schedule_times::{BACKFILL, SCHEDULED_AT, Times};
use super::task::{Owner, Task, millis};
use super::{Moment, Statement};

/// How often a time is made again.
const MADE_AGAIN: usize = 3;
const SCHEDULES: &str = "schedules.muster.dev";

#[derive(Default)]
pub struct ScheduleBackfills {
    /// What was asked for: the range of times and how many may be active, by uid of the schedule and name.
    asked: BTreeMap<(String, String), (i64, i64, usize)>,
    /// Times that were made, by uid of the schedule, whoever made them.
    made: BTreeMap<String, BTreeSet<i64>>,
    /// The last time of each backfill.
    last: BTreeMap<(String, String), i64>,
    /// Times that backfills made and have to make again, since the run was replaced.
    undone: BTreeSet<(String, String, i64)>,
    /// How often the run of a time of a backfill was replaced.
    replaced: BTreeMap<(String, String, i64), usize>,
}

impl Statement for ScheduleBackfills {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::Change(commit) = &moment.entry.what else { return };
        if commit.resource == SCHEDULES
            && let Some(schedule) = moment.present.object(SCHEDULES, &commit.path)
        {
            self.ask(schedule);
        }
        if let Some(task) = moment.task.filter(|_| moment.before.is_none()) {
            self.run(task, moment.present, broken);
        } else if let Some(task) =
            moment.task.filter(|task| task.status.state.as_deref() == Some("Succeeded"))
        {
            // It ended before its cancel was taken in: its time is not made again.
            self.note_made(task);
        }
    }

    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        for schedule in present.all(SCHEDULES) {
            self.check_over(schedule, broken);
            if present.quiet_since.is_some() {
                check_active(schedule, present, broken);
            }
        }
    }
}

impl ScheduleBackfills {
    fn ask(&mut self, schedule: &Value) {
        let Some(uid) = schedule["metadata"]["uid"].as_str() else { return };
        for backfill in schedule["spec"]["backfills"].as_array().into_iter().flatten() {
            let time = |word: &str| backfill[word].as_str().and_then(millis).unwrap_or(0);
            let name = backfill["name"].as_str().unwrap_or_default().to_owned();
            let most = usize::try_from(backfill["maxActive"].as_u64().unwrap_or(1)).unwrap_or(1);
            self.asked.insert((uid.to_owned(), name), (time("from"), time("to"), most));
        }
    }

    fn run(&mut self, task: &Task, present: &Present, broken: &mut Vec<String>) {
        let (run, name) = (&task.metadata, &task.metadata.name);
        let Some(owner) = run.owner_references.iter().find(|owner| owner.kind == "Schedule") else { return };
        let Some(time) = run.annotations.get(SCHEDULED_AT).and_then(|time| millis(time)) else { return };
        self.made.entry(owner.uid.clone()).or_default().insert(time);
        let Some(backfill) = run.annotations.get(BACKFILL) else {
            self.replace(owner, &run.namespace, present);
            return;
        };
        present.compared();
        self.undone.remove(&(owner.uid.clone(), backfill.clone(), time));
        let key = (owner.uid.clone(), backfill.clone());
        let Some((from, to, most)) = self.asked.get(&key).copied() else {
            return broken.push(format!("{name} was made for backfill {backfill}, which nobody asked for"));
        };
        if !(from..to).contains(&time) || time > present.latest_wall {
            broken.push(format!("{name} was made for {time}, which is no time of backfill {backfill}"));
        }
        if self.last.insert(key, time).is_some_and(|last| last >= time) {
            broken.push(format!("{name} was made after a later time of backfill {backfill}"));
        }
        let is_run = |it: &&Task| it.metadata.owner_references.iter().any(|it| it.uid == owner.uid);
        let open = || present.tasks.values().filter(is_run).filter(|it| !it.gone && !it.is_over());
        let own = open().filter(|it| it.metadata.annotations.get(BACKFILL) == Some(backfill)).count();
        let path = format!("{}/{}", run.namespace, owner.name);
        let schedule = present.object(SCHEDULES, &path);
        let may_overlap = schedule.is_some_and(|schedule| {
            let policy = &schedule["spec"]["schedulePolicy"];
            policy["concurrency"] == "Allow"
                || policy["concurrency"].is_null() && policy["allowConcurrent"] == true
        });
        if own > most.max(1) {
            broken.push(format!("{name} is one of {own} active runs of backfill {backfill}, {most} may be"));
        } else if !may_overlap && open().count() > 1 {
            broken.push(format!("{name} was made for backfill {backfill} while another run was active"));
        }
    }

    fn note_made(&mut self, task: &Task) {
        let time = task.metadata.annotations.get(SCHEDULED_AT).and_then(|time| millis(time));
        let owner = task.metadata.owner_references.iter().find(|owner| owner.kind == "Schedule");
        if let (Some(time), Some(owner), Some(backfill)) =
            (time, owner, task.metadata.annotations.get(BACKFILL))
        {
            self.undone.remove(&(owner.uid.clone(), backfill.clone(), time));
        }
    }

    /// A run that no backfill asked for took the place of those that are active: what backfills made of them is still to be made.
    fn replace(&mut self, owner: &Owner, namespace: &str, present: &Present) {
        let schedule = present.object(SCHEDULES, &format!("{namespace}/{}", owner.name));
        if schedule.is_none_or(|it| it["spec"]["schedulePolicy"]["concurrency"] != "Replace") {
            return;
        }
        let is_run = |it: &&Task| it.metadata.owner_references.iter().any(|it| it.uid == owner.uid);
        // Somebody else's cancel or deletion stands.
        let is_open = |it: &&Task| {
            !it.gone && !it.is_over() && !it.spec.cancel && it.metadata.deletion_timestamp.is_none()
        };
        for run in present.tasks.values().filter(is_run).filter(is_open) {
            let annotations = &run.metadata.annotations;
            let time = annotations.get(SCHEDULED_AT).and_then(|time| millis(time));
            let (Some(backfill), Some(time)) = (annotations.get(BACKFILL), time) else { continue };
            let count = self.replaced.entry((owner.uid.clone(), backfill.clone(), time)).or_default();
            *count += 1;
            if *count > MADE_AGAIN {
                continue;
            }
            self.undone.insert((owner.uid.clone(), backfill.clone(), time));
            if let Some(last) = self.last.get_mut(&(owner.uid.clone(), backfill.clone())) {
                *last = (time - 1).min(*last);
            }
        }
    }

    /// One that says that it is over made every time that was its own.
    fn check_over(&self, schedule: &Value, broken: &mut Vec<String>) {
        let (Some(times), Some(uid)) = (Times::of(schedule), schedule["metadata"]["uid"].as_str()) else {
            return;
        };
        let nothing = BTreeSet::new();
        let made = self.made.get(uid).unwrap_or(&nothing);
        for status in schedule["status"]["backfills"].as_array().into_iter().flatten() {
            let name = status["name"].as_str().unwrap_or_default();
            let until = status["until"].as_str().and_then(millis).unwrap_or(0);
            let Some((from, to, _)) = self.asked.get(&(uid.to_owned(), name.to_owned())) else { continue };
            if !status["next"].is_null() {
                continue;
            }
            let expected = times.between(*from, until.min(to - 1));
            let is_undone = |time: i64| self.undone.contains(&(uid.to_owned(), name.to_owned(), time));
            let lost = expected.iter().filter(|time| !made.contains(time) || is_undone(**time)).count();
            if lost > 0 {
                broken
                    .push(format!("backfill {name} is over and left out {lost} of {} times", expected.len()));
            }
        }
    }
}

/// In a quiet world, no run is called active that is not.
fn check_active(schedule: &Value, present: &Present, broken: &mut Vec<String>) {
    for run in schedule["status"]["active"].as_array().into_iter().flatten() {
        let is_it = |task: &&Task| run["kind"] == "Task" && run["name"] == task.metadata.name.as_str();
        let open = present.tasks.values().filter(|task| !task.gone && !task.is_over());
        if run["kind"] == "Task" && open.filter(is_it).count() == 0 {
            let schedule = &schedule["metadata"]["name"];
            broken.push(format!("schedule {schedule} calls {} active, which is not", run["name"]));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::{START, Story};

    fn stamp(minute: i64) -> String {
        jiff::Timestamp::from_millisecond(START + minute * 60_000).unwrap().to_string()
    }

    fn schedule(story: &mut Story, status: &Value) {
        schedule_of(story, &json!({"timeSpec": "* * * * *", "allowConcurrent": true}), status);
    }

    fn schedule_of(story: &mut Story, policy: &Value, status: &Value) {
        let backfill = |name: &str| json!({"name": name, "from": stamp(-9), "to": stamp(-6)});
        story.object(
            "schedules.muster.dev",
            "d/s",
            json!({
                "metadata": {"name": "s", "uid": "s", "creationTimestamp": stamp(0)},
                "spec": {
                    "schedulePolicy": policy,
                    "backfills": [backfill("b"), backfill("other")],
                },
                "status": status,
            }),
        );
    }

    fn run(story: &mut Story, minute: i64, state: &str) {
        let name = format!("m{}", minute.abs());
        story.write(&json!({
            "metadata": {
                "name": name, "uid": name, "namespace": "d",
                "annotations": {"muster.dev/scheduled-at": stamp(minute), "muster.dev/backfill": "b"},
                "ownerReferences": [{"kind": "Schedule", "name": "s", "uid": "s"}],
            },
            "status": {"state": state},
        }));
    }

    fn filled(minutes: &[i64]) -> Story {
        let mut story = Story::new();
        schedule(&mut story, &json!({}));
        for minute in minutes {
            run(&mut story, *minute, "Ready");
            run(&mut story, *minute, "Succeeded");
        }
        story
    }

    #[test]
    fn a_backfill_that_makes_all_its_times_is_as_promised() {
        let mut story = filled(&[-9, -8, -7]);
        schedule(&mut story, &json!({"backfills": [{"name": "b", "until": stamp(-7)}]}));
        assert!(story.quiet().broken("schedule_backfills").is_empty());
    }

    #[test]
    fn a_backfill_that_is_over_and_left_out_a_time_is_found() {
        let mut story = filled(&[-9, -7]);
        schedule(&mut story, &json!({"backfills": [{"name": "b", "until": stamp(-7)}]}));
        assert_eq!(story.broken("schedule_backfills").len(), 1);
    }

    #[test]
    fn a_time_outside_of_the_backfill_and_one_out_of_order_are_found() {
        assert_eq!(filled(&[-6]).broken("schedule_backfills").len(), 1);
        assert_eq!(filled(&[-8, -9]).broken("schedule_backfills").len(), 1);
    }

    /// A run of a backfill is active, and a regular run takes its place.
    fn replaced() -> Story {
        let mut story = Story::new();
        schedule_of(&mut story, &json!({"timeSpec": "* * * * *", "concurrency": "Replace"}), &json!({}));
        run(&mut story, -9, "Succeeded");
        run(&mut story, -8, "Succeeded");
        run(&mut story, -7, "Ready");
        story.write(&json!({"metadata": {
            "name": "m0", "uid": "m0", "namespace": "d",
            "annotations": {"muster.dev/scheduled-at": stamp(0)},
            "ownerReferences": [{"kind": "Schedule", "name": "s", "uid": "s"}],
        }}));
        run(&mut story, -7, "Canceled");
        story
    }

    #[test]
    fn a_time_that_a_replacement_lost_is_found_and_one_that_is_made_again_is_as_promised() {
        let over = json!({"backfills": [{"name": "b", "until": stamp(-7)}]});
        let policy = json!({"timeSpec": "* * * * *", "concurrency": "Replace"});
        let mut story = replaced();
        schedule_of(&mut story, &policy, &over);
        assert_eq!(story.broken("schedule_backfills").len(), 1);
        let mut story = replaced();
        story.write(&json!({"metadata": {
            "name": "again", "uid": "again", "namespace": "d",
            "annotations": {"muster.dev/scheduled-at": stamp(-7), "muster.dev/backfill": "b"},
            "ownerReferences": [{"kind": "Schedule", "name": "s", "uid": "s"}],
        }}));
        schedule_of(&mut story, &policy, &over);
        assert!(
            !story
                .broken("schedule_backfills")
                .iter()
                .any(|it| it.contains("left out") || it.contains("later"))
        );
    }

    #[test]
    fn what_one_backfill_has_to_make_again_is_no_loss_of_another_that_found_it_made() {
        let mut story = replaced();
        let over = json!({"backfills": [{"name": "other", "until": stamp(-7)}]});
        schedule_of(&mut story, &json!({"timeSpec": "* * * * *", "concurrency": "Replace"}), &over);
        assert!(!story.broken("schedule_backfills").iter().any(|it| it.contains("left out")));
    }

    #[test]
    fn more_active_runs_than_may_be_are_found() {
        let mut story = filled(&[]);
        run(&mut story, -9, "Ready");
        run(&mut story, -8, "Ready");
        assert_eq!(story.broken("schedule_backfills").len(), 1);
    }

    #[test]
    fn an_ended_run_that_is_called_active_for_ever_is_found() {
        let mut story = filled(&[-9]);
        schedule(&mut story, &json!({"active": [{"kind": "Task", "name": "m9"}]}));
        assert_eq!(story.quiet().broken("schedule_backfills").len(), 1);
    }
}
