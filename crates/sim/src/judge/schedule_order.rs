//! The runs of a schedule are made in the order of their times, unless the clock was set back to before the last one; and where the
//! policy keeps all times, none is left out in between. Backfills are made beside them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::What;
use super::schedule_times::{BACKFILL, SCHEDULED_AT, Times};
use super::task::millis;
use super::{Moment, Statement};

#[derive(Default)]
pub struct ScheduleOrder {
    /// The time of the last run, by uid of the schedule.
    last: BTreeMap<String, i64>,
    /// Schedules whose clock was set back to before their last run, since then.
    set_back: BTreeSet<String>,
    /// Schedules that somebody suspended or changed: what they left out meanwhile is not missed.
    changed: BTreeSet<String>,
}

impl Statement for ScheduleOrder {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if let What::ClockJumped(_) = &moment.entry.what {
            let ahead = self.last.iter().filter(|(_, last)| moment.present.wall < **last);
            self.set_back.extend(ahead.map(|(uid, _)| uid.clone()));
        }
        let What::Change(commit) = &moment.entry.what else { return };
        if commit.resource == "schedules.muster.dev"
            && let Some(schedule) = moment.present.object(&commit.resource, &commit.path)
        {
            let is_first = schedule["metadata"]["generation"].as_i64().unwrap_or(1) == 1;
            if !is_first || schedule["spec"]["suspend"] == true {
                self.changed.extend(schedule["metadata"]["uid"].as_str().map(str::to_owned));
            }
        }
        let Some(task) = moment.task.filter(|_| moment.before.is_none()) else { return };
        let run = &task.metadata;
        let Some(owner) = run.owner_references.iter().find(|owner| owner.kind == "Schedule") else { return };
        let time = run.annotations.get(SCHEDULED_AT).filter(|_| !run.annotations.contains_key(BACKFILL));
        let Some(time) = time.and_then(|time| millis(time)) else { return };
        moment.present.compared();
        let last = self.last.insert(owner.uid.clone(), time);
        // What a clock leapt over is made when its time comes, after what the clock made ahead.
        let was_set_back = self.set_back.remove(&owner.uid);
        let was_set_back = |last: i64| time < last && was_set_back;
        if let Some(last) = last.filter(|last| *last >= time && !was_set_back(*last)) {
            broken.push(format!("{} was made for {time} after a run for {last}", run.name));
            return;
        }
        let path = format!("{}/{}", run.namespace, owner.name);
        let schedule = moment.present.object("schedules.muster.dev", &path);
        let Some(schedule) = schedule.filter(|it| keeps_all(it) && !self.changed.contains(&owner.uid)) else {
            return;
        };
        let Some(times) = Times::of(schedule) else { return };
        let from = last.map_or(times.created, |last| last + 1);
        let left_out = times.between(from, time - 1);
        if !left_out.is_empty() {
            broken.push(format!("{} was made, and {} times before it were not", run.name, left_out.len()));
        }
    }
}

/// True if no time of a schedule is left out on purpose.
fn keeps_all(schedule: &Value) -> bool {
    let policy = &schedule["spec"]["schedulePolicy"];
    let limits = ["catchUpWindow", "jitter", "startingDeadline"];
    let skips = policy["skipOutdated"].as_bool().unwrap_or(policy["concurrency"] != "Queue");
    let waits = policy["concurrency"] == "Queue" || policy["allowConcurrent"] == true;
    !skips && waits && limits.iter().all(|limit| policy[limit].is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::{START, Story};

    fn runs(concurrency: &str, minutes: &[i64]) -> Vec<String> {
        runs_of(concurrency, minutes, 0)
    }

    /// What is found of runs for these minutes, each made when it has come, if the clock is set back by so many minutes before the last.
    fn runs_of(concurrency: &str, minutes: &[i64], set_back: i64) -> Vec<String> {
        let mut story = Story::new();
        let stamp = |minute: i64| jiff::Timestamp::from_millisecond(START + minute * 60_000).unwrap();
        story.object("schedules.muster.dev", "d/s", json!({
            "metadata": {"name": "s", "uid": "s", "generation": 1, "creationTimestamp": stamp(0).to_string()},
            "spec": {"schedulePolicy": {"timeSpec": "* * * * *", "concurrency": concurrency}},
        }));
        let mut passed = 0;
        for (place, minute) in minutes.iter().enumerate() {
            if place + 1 == minutes.len() {
                story.set_back(set_back * 60_000);
            }
            story.wait((minute - passed).max(0) * 60_000);
            passed = passed.max(*minute);
            story.write(&json!({"metadata": {
                "name": format!("m{place}"), "uid": format!("m{place}"), "namespace": "d",
                "annotations": {"muster.dev/scheduled-at": stamp(*minute).to_string()},
                "ownerReferences": [{"kind": "Schedule", "name": "s", "uid": "s"}],
            }}));
        }
        story.broken("schedule_order")
    }

    #[test]
    fn one_run_after_the_other_is_as_promised() {
        assert!(runs("Queue", &[0, 1, 2]).is_empty());
        assert!(runs("Forbid", &[0, 4, 5]).is_empty(), "it may skip");
    }

    #[test]
    fn a_run_for_an_earlier_time_is_found() {
        assert_eq!(runs("Forbid", &[4, 3]).len(), 1);
        assert!(runs_of("Forbid", &[4, 3], 1).is_empty(), "the clock was set back");
        assert_eq!(runs_of("Forbid", &[4, 4], 1).len(), 1, "it was made already");
    }

    #[test]
    fn a_time_that_is_left_out_is_found_where_all_are_kept() {
        assert_eq!(runs("Queue", &[0, 2]).len(), 1);
    }
}
