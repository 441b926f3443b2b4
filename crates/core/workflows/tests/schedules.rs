//! Schedules under a clock that the test owns: which occurrence is made when.
//!
//! A run is shown by the minute it is for, and `@` the minute it was made in if that is another.

use muster_types::schedule_status::RunRef;
use muster_types::{Duration, Schedule, Timestamp};
use muster_workflows::schedule::{Situation, plan_schedule};
use muster_workflows::schedule_run::Cause;
use serde_json::{Value, json};

/// The first of January 2026.
const MIDNIGHT: i64 = 1_767_225_600;

/// A schedule, its runs, and a clock.
struct Play {
    schedule: Schedule,
    run_minutes: i64,
    now: i64,
    /// Names and ends of runs that have not ended.
    active: Vec<(RunRef, i64)>,
    made: Vec<String>,
    replaced: usize,
    missing: Option<&'static str>,
}

impl Play {
    fn new(policy: &Value, run_minutes: i64) -> Self {
        let mut policy = policy.clone();
        if policy["timeSpec"].is_null() {
            policy["timeSpec"] = json!("R/2026-01-01T00:10:00Z/PT10M");
        }
        let schedule = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Schedule",
            "metadata": {"name": "s", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"schedulePolicy": policy, "template": {"spec": {"container": {"command": ["true"]}}}},
        });
        let schedule = serde_json::from_value(schedule).expect("a good schedule");
        let (active, made) = (Vec::new(), Vec::new());
        Self { schedule, run_minutes, now: MIDNIGHT, active, made, replaced: 0, missing: None }
    }

    /// One look, as the engine does it. Returns when to look again.
    fn look(&mut self) -> Option<i64> {
        self.active.retain(|(_, end)| *end > self.now);
        let active: Vec<_> = self.active.iter().map(|(run, _)| run.clone()).collect();
        let situation = Situation {
            schedule: &self.schedule,
            active: &active,
            ended: &[],
            missing: self.missing,
            now: Timestamp::from_second(self.now),
            steady: Timestamp::from_second(self.now),
        };
        let plan = plan_schedule(&situation);
        if plan.replaces {
            self.replaced += self.active.len();
            self.active.clear();
        }
        for cause in &plan.runs {
            let Cause::Time(time) = cause else { continue };
            let (nominal, now) = ((time.as_second() - MIDNIGHT) / 60, (self.now - MIDNIGHT) / 60);
            self.made.push(if nominal == now { format!("{nominal}") } else { format!("{nominal}@{now}") });
            let run = RunRef { kind: "Task".to_owned(), name: cause.run_name(&self.schedule, 0) };
            self.active.push((run, self.now + self.run_minutes * 60));
        }
        self.schedule.status = plan.status;
        plan.wake_at.map(Timestamp::as_second)
    }

    /// Goes on to a minute, looking whenever there is a reason to.
    fn until(&mut self, minute: i64) -> &mut Self {
        let end = MIDNIGHT + minute * 60;
        loop {
            let wake = self.look();
            let ends = self.active.iter().map(|(_, end)| *end);
            let next = ends.chain(wake).filter(|at| *at > self.now).min();
            match next.filter(|next| *next <= end) {
                Some(next) => self.now = next,
                None => break,
            }
        }
        self.now = self.now.max(end);
        self
    }

    /// Nobody looks until a minute.
    fn down_until(&mut self, minute: i64) -> &mut Self {
        self.now = MIDNIGHT + minute * 60;
        self
    }

    fn suspend(&mut self, suspend: bool) -> &mut Self {
        self.schedule.spec.suspend = suspend;
        self.look();
        self
    }

    fn said(&self) -> String {
        self.made.join(" ")
    }

    fn condition(&self, r#type: &str) -> String {
        let found = self.schedule.status.conditions.iter().find(|condition| condition.r#type == r#type);
        found.map_or_else(String::new, |found| format!("{} {}", found.status, found.reason))
    }
}

/// The four combinations: `allowConcurrent skipOutdated | runs in minutes | what is made`.
#[track_caller]
fn check(table: &str, course: impl Fn(&mut Play)) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        assert_eq!(columns.len(), 3, "not a line of the table: {line}");
        let (settings, minutes, expected) = (columns[0], columns[1], columns[2]);
        let policy =
            json!({"allowConcurrent": settings.contains("allow"), "skipOutdated": settings.contains("skip")});
        let mut play = Play::new(&policy, minutes.parse().expect("minutes"));
        course(&mut play);
        assert_eq!(play.said(), expected, "{line}");
    }
}

#[test]
fn runs_overlap_wait_or_are_skipped_as_the_two_settings_say() {
    check(
        "
        allow skip |  4 | 10 20 30 40 50 60
        allow all  |  4 | 10 20 30 40 50 60
        one skip   |  4 | 10 20 30 40 50 60
        one all    |  4 | 10 20 30 40 50 60
        allow skip | 10 | 10 20 30 40 50 60
        allow all  | 10 | 10 20 30 40 50 60
        one skip   | 10 | 10 20 30 40 50 60
        one all    | 10 | 10 20 30 40 50 60
        allow skip | 25 | 10 20 30 40 50 60
        allow all  | 25 | 10 20 30 40 50 60
        one skip   | 25 | 10 30@35 60
        one all    | 25 | 10 20@35 30@60
        ",
        |play| {
            play.until(65);
        },
    );
}

#[test]
fn what_fell_into_a_time_without_the_engine_is_made_up_for_as_the_settings_say() {
    check(
        "
        allow skip |  4 | 10 40@45 50 60 70
        allow all  |  4 | 10 20@45 30@45 40@45 50 60 70
        one skip   |  4 | 10 40@45 50 60 70
        one all    |  4 | 10 20@45 30@49 40@53 50@57 60@61 70
        one skip   | 25 | 10 40@45 70
        one all    | 25 | 10 20@45 30@70
        ",
        |play| {
            play.until(12).down_until(45).until(70);
        },
    );
}

#[test]
fn what_falls_into_a_suspension_is_never_made() {
    check(
        "
        allow skip |  4 | 10 50 60
        allow all  |  4 | 10 50 60
        one skip   |  4 | 10 50 60
        one all    |  4 | 10 50 60
        ",
        |play| {
            play.until(12).suspend(true).until(45).suspend(false).until(65);
        },
    );
}

#[test]
fn a_clock_that_jumps_forward_is_a_time_without_the_engine() {
    check("one skip | 1 | 10 60@65 70", |play| {
        play.until(12).down_until(65).until(72);
    });
    check("allow all | 1 | 10 20@35 30@35 40", |play| {
        play.until(12).down_until(35).until(42);
    });
}

#[test]
fn a_clock_that_jumps_backward_makes_nothing_twice() {
    let policy = json!({"allowConcurrent": true, "skipOutdated": false});
    let mut play = Play::new(&policy, 1);
    play.until(32).down_until(5).until(42);
    assert_eq!(play.said(), "10 20 30 40");
}

#[test]
fn what_was_left_out_is_counted() {
    let mut play = Play::new(&json!({}), 25);
    play.until(65);
    assert_eq!((play.said().as_str(), play.schedule.status.dropped), ("10 30@35 60", 3));
    assert_eq!(play.schedule.status.made, 3);
}

#[test]
fn the_latest_run_takes_the_place_of_the_one_that_has_not_ended() {
    let mut play = Play::new(&json!({"concurrency": "Replace"}), 25);
    play.until(45);
    assert_eq!((play.said().as_str(), play.replaced), ("10 20 30 40", 3));
}

#[test]
fn a_queue_makes_every_run_one_after_the_other() {
    let mut play = Play::new(&json!({"concurrency": "Queue"}), 25);
    play.until(65);
    assert_eq!(play.said(), "10 20@35 30@60");
}

#[test]
fn times_outside_of_the_catch_up_window_are_left_out() {
    let mut play =
        Play::new(&json!({"skipOutdated": false, "allowConcurrent": true, "catchUpWindow": "16m"}), 1);
    play.until(12).down_until(45).until(52);
    assert_eq!((play.said().as_str(), play.schedule.status.dropped), ("10 30@45 40@45 50", 1));
}

#[test]
fn a_run_that_could_not_start_in_time_is_left_out() {
    let mut play = Play::new(&json!({"startingDeadline": "4m"}), 25);
    play.until(75);
    // The first ends at 35, when 30 is five minutes late.
    assert_eq!(play.said(), "10 40 70");
}

#[test]
fn jitter_delays_each_time_by_an_amount_of_its_own_and_not_beyond_the_next() {
    let mut play = Play::new(&json!({"jitter": "1h"}), 0);
    play.until(200);
    let delays: Vec<i64> = play
        .made
        .iter()
        .map(|run| {
            let (nominal, made) = run.split_once('@').unwrap_or((run, run));
            made.parse::<i64>().unwrap() - nominal.parse::<i64>().unwrap()
        })
        .collect();
    assert!(delays.len() >= 18 && delays.iter().all(|delay| (0..10).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay > 0) && delays.windows(2).any(|pair| pair[0] != pair[1]));
    let mut again = Play::new(&json!({"jitter": "1h"}), 0);
    again.until(200);
    assert_eq!(play.made, again.made);
}

#[test]
fn a_schedule_that_made_all_its_runs_says_so() {
    let mut play = Play::new(&json!({"timeSpec": "R2/2026-01-01T00:10:00Z/PT10M"}), 1);
    play.until(15);
    assert_eq!(
        (play.schedule.status.remaining, play.condition("Ready")),
        (Some(1), "True Scheduled".to_owned())
    );
    play.until(65);
    assert_eq!((play.said().as_str(), play.schedule.status.remaining), ("10 20", Some(0)));
    assert_eq!(play.condition("Exhausted"), "True Occurrences");
    assert_eq!(play.condition("Ready"), "False Exhausted");
    assert_eq!(play.schedule.status.next_scheduled_time, None);
}

#[test]
fn a_start_in_the_past_uses_up_the_count_and_says_so() {
    let mut play = Play::new(&json!({"timeSpec": "R1/2025-12-31T00:00:00Z/PT10M"}), 1);
    play.until(30);
    assert_eq!((play.said().as_str(), play.condition("Exhausted").as_str()), ("", "True Occurrences"));
}

#[test]
fn another_time_spec_makes_nothing_for_times_before_it() {
    let mut play = Play::new(&json!({}), 1);
    play.until(32);
    play.schedule.spec.schedule_policy.time_spec = "R/2026-01-01T00:05:00Z/PT5M".to_owned();
    play.until(47);
    assert_eq!(play.said(), "10 20 30 35 40 45");
}

#[test]
fn nothing_is_made_until_what_it_is_made_of_is_there() {
    let mut play = Play::new(&json!({}), 1);
    play.missing = Some("there is no TaskTemplate t");
    play.until(32);
    assert_eq!((play.said().as_str(), play.condition("Ready").as_str()), ("", "False TemplateNotFound"));
    play.missing = None;
    play.until(42);
    assert_eq!((play.said().as_str(), play.condition("Ready").as_str()), ("30@32 40", "True Scheduled"));
}

#[test]
fn ten_years_of_missed_minutes_are_one_run_or_are_caught_up_in_slices() {
    let spec = json!({"timeSpec": "R/2026-01-01T00:00:00Z/PT1M"});
    let mut play = Play::new(&spec, 0);
    play.down_until(10 * 365 * 24 * 60).look();
    assert_eq!(play.made.len(), 1);
    assert_eq!(play.schedule.status.dropped, 10 * 365 * 24 * 60);
    let mut play =
        Play::new(&json!({"timeSpec": spec["timeSpec"], "allowConcurrent": true, "skipOutdated": false}), 0);
    play.down_until(10 * 365 * 24 * 60).look();
    assert_eq!((play.made.len(), play.schedule.status.dropped), (100, 0));
}

#[test]
fn days_on_which_the_clock_changes_have_one_run_each() {
    for (day, expected) in [
        ("2026-03-28", "2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30"),
        ("2026-10-24", "2026-10-24T00:30 2026-10-25T00:30 2026-10-26T01:30"),
    ] {
        let policy = json!({"timeSpec": "30 2 * * *", "timeZone": "Europe/Berlin"});
        let mut play = Play::new(&policy, 1);
        let start: Timestamp = format!("{day}T00:00:00Z").parse().unwrap();
        play.schedule.metadata.creation_timestamp = Some(start);
        play.now = start.as_second();
        let mut made = Vec::new();
        for _ in 0..3 {
            let next = play.schedule.status.next_scheduled_time;
            let wake = play.look();
            made.extend(
                next.filter(|_| play.now > start.as_second()).map(|time| time.to_string()[..16].to_owned()),
            );
            play.now = wake.expect("a next run");
        }
        made.push(Timestamp::from_second(play.now).to_string()[..16].to_owned());
        assert_eq!(made.join(" "), expected);
    }
}

#[test]
fn a_schedule_whose_times_cannot_be_read_says_why_and_makes_nothing() {
    let mut play = Play::new(&json!({"timeSpec": "R/P1H"}), 1);
    play.until(60);
    assert_eq!((play.said().as_str(), play.condition("Ready").as_str()), ("", "False InvalidTimeSpec"));
}

#[test]
fn names_of_runs_follow_from_their_times() {
    let play = Play::new(&json!({}), 1);
    let cause = Cause::Time("2026-01-01T00:10:00Z".parse().unwrap());
    assert_eq!(cause.run_name(&play.schedule, 0), "s-20260101t001000");
    assert!(cause.run_name(&play.schedule, 1).starts_with("s-20260101t001000-"));
    let mut long = play.schedule.clone();
    long.metadata.name = "x".repeat(253);
    assert_eq!(cause.run_name(&long, 0).len(), 253);
}

#[test]
fn the_count_of_the_seeds_example_is_five_runs_in_all() {
    let mut play =
        Play::new(&json!({"timeSpec": "R5/T01:00:00/PT01", "execTimeout": 100, "maxRestart": 2}), 1);
    play.until(24 * 60);
    assert_eq!(play.said(), "60 120 180 240 300");
    assert_eq!(play.schedule.status.normal_time_spec, "R5/2026-01-01T01:00:00Z/PT1H");
    assert_eq!(play.schedule.spec.schedule_policy.exec_timeout, Some(Duration::from_secs(100)));
}
