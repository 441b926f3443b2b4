//! Every time of a schedule is made once and none is lost: no time twice, none before the schedule was made, none before it has
//! come, none that is not a time of the schedule; and all of them where the policy keeps all, until somebody suspends it. A time that
//! comes while nothing disturbs is made wherever runs may overlap, whatever the clock did before.
//!
//! The judge reads the plain forms alone: `R/START/PTnM`, `R/PTnM`, both also as `Rm/`, `*/n * * * *` and `* * * * *`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::What;
use super::present::Present;
use super::task::{Metadata, Task, millis};
use super::{Moment, Statement};

pub const SCHEDULED_AT: &str = "muster.dev/scheduled-at";
pub const BACKFILL: &str = "muster.dev/backfill";
pub const REPLACED_BY: &str = "muster.dev/replaced-by";
const MINUTE: i64 = 60_000;
/// A clock that goes back may come to a time again that was made before it went back.
const SLACK: i64 = 1_000;
/// Whoever begins to lead, or finds that the clock jumped, has this long to make what is due.
const CATCHES_UP: i64 = 10_000;

#[derive(Default)]
pub struct ScheduleTimes {
    /// Times that were made, by uid of the schedule.
    made: BTreeMap<String, BTreeSet<i64>>,
    /// The same of backfills, each by its name: they may make again what is gone.
    filled: BTreeSet<(String, String, i64)>,
    /// Schedules of which some times are left out on purpose.
    lax: BTreeSet<String>,
    schedules: BTreeMap<String, Value>,
    /// The latest time of the wall up to which all times are due, by uid; of those that nobody changed.
    due: BTreeMap<String, i64>,
    /// The same of those that somebody suspended or changed: no time after that is due.
    over: BTreeMap<String, i64>,
    /// Both clocks as they were a while ago.
    clocks: (i64, i64),
}

impl Statement for ScheduleTimes {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let (now, (then, wall)) = (moment.present, self.clocks);
        if now.at - then >= CATCHES_UP {
            if now.calm_for(CATCHES_UP) {
                self.due.values_mut().for_each(|due| *due = wall.max(*due));
            }
            if now.calm_for(now.at - then + 2 * CATCHES_UP) {
                self.compare_calm_times(wall - CATCHES_UP, now.wall - CATCHES_UP, now, broken);
            }
            self.clocks = (now.at, now.wall);
        }
        let What::Change(commit) = &moment.entry.what else { return };
        if commit.resource == "schedules.muster.dev"
            && let Some(schedule) = moment.present.object(&commit.resource, &commit.path)
        {
            self.schedule(schedule);
        }
        if let Some(task) = moment.task.filter(|_| moment.before.is_none()) {
            self.run(&task.metadata, moment.present, broken);
        } else if let Some((task, before)) = moment.task.zip(moment.before) {
            let is_replaced = |task: &Task| task.metadata.annotations.contains_key(REPLACED_BY);
            if is_replaced(task) && !is_replaced(before) {
                self.replace(&task.metadata);
            }
        } else if commit.resource == "jobs.muster.dev" && !commit.deleted {
            #[derive(serde::Deserialize)]
            struct Head {
                metadata: Metadata,
            }
            if let Ok(job) = serde_json::from_str::<Head>(commit.object.get())
                && moment
                    .present
                    .object(&commit.resource, &commit.path)
                    .is_some_and(|it| it["status"].is_null())
            {
                self.run(&job.metadata, moment.present, broken);
            }
        }
    }

    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        if present.quiet_since.is_none() {
            return;
        }
        for (uid, schedule) in self.schedules.iter().filter(|(uid, _)| !self.lax.contains(*uid)) {
            let Some(times) = Times::of(schedule) else { continue };
            let Some(upto) = self.over.get(uid).or_else(|| self.due.get(uid)) else { continue };
            let nothing = BTreeSet::new();
            let made = self.made.get(uid).unwrap_or(&nothing);
            let expected = times.between(times.created, upto - MINUTE);
            for _ in &expected {
                present.compared();
            }
            let lost: Vec<_> = expected.iter().filter(|time| !made.contains(time)).collect();
            if let Some(first) = lost.first() {
                broken.push(format!(
                    "{} lost {} of {} times, the first {first}",
                    schedule["metadata"]["name"],
                    lost.len(),
                    expected.len()
                ));
            }
        }
    }
}

impl ScheduleTimes {
    /// Times that came while nothing disturbed are made where runs need not wait for each other, also where late ones are skipped.
    fn compare_calm_times(&self, from: i64, upto: i64, present: &Present, broken: &mut Vec<String>) {
        for (uid, schedule) in &self.schedules {
            let (metadata, policy) = (&schedule["metadata"], &schedule["spec"]["schedulePolicy"]);
            let (namespace, name) = (
                metadata["namespace"].as_str().unwrap_or_default(),
                metadata["name"].as_str().unwrap_or_default(),
            );
            let is_there = present
                .object("schedules.muster.dev", &format!("{namespace}/{name}"))
                .is_some_and(|it| it["metadata"]["uid"] == metadata["uid"]);
            let may_overlap = policy["allowConcurrent"] == true && !is_limited(policy);
            if !is_there || !may_overlap || !self.lax.contains(uid) || self.over.contains_key(uid) {
                continue;
            }
            let Some(times) = Times::of(schedule) else { continue };
            for time in times.between(times.created.max(from + 1), upto) {
                present.compared();
                if self.made.get(uid).is_none_or(|made| !made.contains(&time)) {
                    broken
                        .push(format!("{name} made nothing for {time}, which came while nothing disturbed"));
                }
            }
        }
    }

    fn schedule(&mut self, schedule: &Value) {
        let Some(uid) = schedule["metadata"]["uid"].as_str() else { return };
        let (spec, policy) = (&schedule["spec"], &schedule["spec"]["schedulePolicy"]);
        let keeps_all = policy["skipOutdated"] == false && policy["allowConcurrent"] == true;
        let changed = schedule["metadata"]["generation"].as_i64().unwrap_or(1) > 1;
        let other_times = self
            .schedules
            .get(uid)
            .is_some_and(|before| before["spec"]["schedulePolicy"]["timeSpec"] != policy["timeSpec"]);
        if !keeps_all || is_limited(policy) || other_times {
            self.lax.insert(uid.to_owned());
        }
        if spec["suspend"] == true || changed {
            let upto = self.due.remove(uid).unwrap_or(0);
            self.over.entry(uid.to_owned()).or_insert(upto);
        } else {
            self.due.entry(uid.to_owned()).or_insert(0);
        }
        self.schedules.insert(uid.to_owned(), schedule.clone());
    }

    /// A run of a backfill was canceled for another one: its time may be made again.
    fn replace(&mut self, run: &Metadata) {
        let time = run.annotations.get(SCHEDULED_AT).and_then(|time| millis(time));
        let owner = run.owner_references.iter().find(|owner| owner.kind == "Schedule");
        if let (Some(time), Some(owner), Some(backfill)) = (time, owner, run.annotations.get(BACKFILL)) {
            self.filled.remove(&(owner.uid.clone(), backfill.clone(), time));
        }
    }

    fn run(&mut self, run: &Metadata, present: &Present, broken: &mut Vec<String>) {
        let Some(time) = run.annotations.get(SCHEDULED_AT).and_then(|time| millis(time)) else { return };
        let Some(owner) = run.owner_references.iter().find(|owner| owner.kind == "Schedule") else { return };
        present.compared();
        let name = &run.name;
        let backfill = run.annotations.get(BACKFILL);
        let is_new = self.made.entry(owner.uid.clone()).or_default().insert(time);
        let is_first = match backfill {
            Some(backfill) => self.filled.insert((owner.uid.clone(), backfill.clone(), time)),
            None => is_new,
        };
        if !is_first {
            broken.push(format!(
                "{name} was made for {time}, for which there was a run of {} before",
                owner.name
            ));
        }
        if time > present.latest_wall + SLACK {
            broken.push(format!("{name} was made {} ms before its time", time - present.latest_wall));
        }
        let Some(times) = self.schedules.get(&owner.uid).and_then(Times::of) else { return };
        if !times.is_one(time) || backfill.is_none() && time < times.created {
            broken.push(format!("{name} was made for {time}, which is no time of {}", owner.name));
        }
    }
}

/// True if a policy moves times or drops those that are late.
fn is_limited(policy: &Value) -> bool {
    ["catchUpWindow", "jitter", "startingDeadline"].iter().any(|limit| !policy[limit].is_null())
}

/// The times of a schedule: one every so often, from a first one.
pub struct Times {
    pub created: i64,
    anchor: i64,
    every: i64,
    /// How many there are, if that is said.
    most: Option<i64>,
}

impl Times {
    pub fn of(schedule: &Value) -> Option<Self> {
        let created = millis(schedule["metadata"]["creationTimestamp"].as_str()?)?;
        if !schedule["spec"]["schedulePolicy"]["timeZone"].is_null() {
            return None;
        }
        let spec = schedule["spec"]["schedulePolicy"]["timeSpec"].as_str()?;
        let (count, anchor, every) = match spec.split('/').collect::<Vec<_>>()[..] {
            [count, every] if count.starts_with('R') => (count, created, minutes(every)?),
            [count, start, every] => (count, millis(start)?, minutes(every)?),
            ["*", minutes] => ("R", 0, minutes.strip_suffix(" * * * *")?.parse::<i64>().ok()? * MINUTE),
            ["* * * * *"] => ("R", 0, MINUTE),
            _ => return None,
        };
        let most = match count.strip_prefix('R')? {
            "" => None,
            most => Some(most.parse().ok()?),
        };
        Some(Self { created, anchor, every, most })
    }

    pub fn is_one(&self, time: i64) -> bool {
        let last = self.most.map_or(i64::MAX, |most| self.anchor + (most - 1) * self.every);
        (self.anchor..=last).contains(&time) && (time - self.anchor) % self.every == 0
    }

    /// The times from one on, up to and with another.
    pub fn between(&self, from: i64, upto: i64) -> Vec<i64> {
        let first =
            self.anchor + (from.max(self.anchor) - self.anchor + self.every - 1) / self.every * self.every;
        let step = usize::try_from(self.every).unwrap_or(1);
        (first..=upto).step_by(step).filter(|time| self.is_one(*time)).collect()
    }
}

fn minutes(every: &str) -> Option<i64> {
    Some(every.strip_prefix("PT")?.strip_suffix('M')?.parse::<i64>().ok()? * MINUTE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::{START, Story};

    fn every_minute() -> Story {
        let mut story = Story::new();
        write(&mut story, 1, false);
        story
    }

    fn write(story: &mut Story, generation: i64, suspend: bool) {
        let policy = json!({"timeSpec": "* * * * *", "skipOutdated": false, "allowConcurrent": true});
        write_policy(story, generation, suspend, &policy);
    }

    fn write_policy(story: &mut Story, generation: i64, suspend: bool, policy: &serde_json::Value) {
        let metadata = json!({"name": "s", "namespace": "d", "uid": "s", "generation": generation, "creationTimestamp": stamp(0)});
        let spec = json!({"schedulePolicy": policy, "suspend": suspend});
        story.object("schedules.muster.dev", "d/s", json!({"metadata": metadata, "spec": spec}));
    }

    fn stamp(minutes: i64) -> String {
        jiff::Timestamp::from_millisecond(START + minutes * 60_000).unwrap().to_string()
    }

    fn run(story: &mut Story, name: &str, minute: i64) {
        fill(story, name, minute, None);
    }

    fn fill(story: &mut Story, name: &str, minute: i64, backfill: Option<&str>) {
        let mut annotations = json!({"muster.dev/scheduled-at": stamp(minute)});
        if let Some(backfill) = backfill {
            annotations["muster.dev/backfill"] = json!(backfill);
        }
        story.write(&json!({"metadata": {
            "name": name, "uid": name, "namespace": "d", "annotations": annotations,
            "ownerReferences": [{"kind": "Schedule", "name": "s", "uid": "s"}],
        }}));
    }

    #[test]
    fn a_backfill_may_make_a_time_before_the_schedule_and_one_whose_run_is_gone() {
        let mut story = every_minute();
        run(&mut story, "a", 0);
        fill(&mut story, "b", -3, Some("f"));
        fill(&mut story, "c", 0, Some("f"));
        assert!(story.broken("schedule_times").is_empty());
    }

    #[test]
    fn a_backfill_that_makes_a_time_twice_or_one_that_the_schedule_then_makes_itself_is_found() {
        let mut story = every_minute();
        fill(&mut story, "a", 0, Some("f"));
        fill(&mut story, "b", 0, Some("f"));
        assert_eq!(story.broken("schedule_times").len(), 1);
        run(&mut story, "c", 0);
        assert_eq!(story.broken("schedule_times").len(), 2);
    }

    #[test]
    fn a_run_for_every_time_is_as_promised() {
        let mut story = every_minute();
        run(&mut story, "a", 0);
        for minute in 1..=3 {
            story.wait(60_000);
            run(&mut story, &format!("m{minute}"), minute);
        }
        assert!(story.quiet().broken("schedule_times").is_empty());
    }

    #[test]
    fn a_time_that_is_made_twice_is_found() {
        let mut story = every_minute();
        run(&mut story, "a", 0);
        run(&mut story, "b", 0);
        assert_eq!(story.broken("schedule_times").len(), 1);
    }

    #[test]
    fn a_time_that_has_not_come_is_found() {
        let mut story = every_minute();
        run(&mut story, "a", 5);
        assert_eq!(story.broken("schedule_times").len(), 1);
    }

    #[test]
    fn a_time_that_was_lost_is_found() {
        let mut story = every_minute();
        run(&mut story, "a", 0);
        story.wait(300_000).room(1, None);
        assert_eq!(story.wait(20_000).quiet().broken("schedule_times").len(), 1);
    }

    #[test]
    fn a_time_that_comes_while_nothing_disturbs_and_is_not_made_is_found_also_where_late_ones_are_skipped() {
        let find = |policy: serde_json::Value, is_made: bool| {
            let mut story = Story::new();
            write_policy(&mut story, 1, false, &policy);
            run(&mut story, "a", 0);
            story.wait(60_000);
            if is_made {
                run(&mut story, "b", 1);
            }
            for _ in 0..5 {
                story.wait(10_000).room(1, None);
            }
            story.broken("schedule_times").len()
        };
        let counted = json!({"timeSpec": "R2/PT1M", "allowConcurrent": true});
        assert_eq!((find(counted.clone(), true), find(counted, false)), (0, 1));
        assert_eq!(find(json!({"timeSpec": "* * * * *"}), false), 0, "its run may wait for another");
    }

    #[test]
    fn a_time_that_was_lost_before_a_suspension_is_found_and_none_after_it_is_due() {
        for (minutes, lost) in [(1, 0), (5, 1)] {
            let mut story = every_minute();
            run(&mut story, "a", 0);
            story.wait(minutes * 60_000).room(1, None);
            write(story.wait(20_000), 2, true);
            story.wait(300_000).room(1, None);
            assert_eq!(story.wait(20_000).quiet().broken("schedule_times").len(), lost);
        }
    }
}
