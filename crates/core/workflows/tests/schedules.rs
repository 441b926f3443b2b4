//! Schedules under a clock that the test owns: which occurrence is made when.
//!
//! A run is shown by the minute it is for, and `@` the minute it was made in if that is another; `b` stands before one that a
//! backfill asked for.

use muster_types::schedule::Backfill;
use muster_types::schedule_status::{BackfillStatus, RunRef, RunResult};
use muster_types::{Duration, Schedule, State, Timestamp};
use muster_workflows::schedule::{Situation, add_backfill, plan_schedule};
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
    /// How runs end, and how those that did ended, the latest first.
    outcome: State,
    results: Vec<RunResult>,
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
        let (outcome, results) = (State::Succeeded, Vec::new());
        Self {
            schedule,
            run_minutes,
            now: MIDNIGHT,
            active,
            outcome,
            results,
            made,
            replaced: 0,
            missing: None,
        }
    }

    /// One look, as the engine does it. Returns when to look again.
    fn look(&mut self) -> Option<i64> {
        let (over, active) =
            std::mem::take(&mut self.active).into_iter().partition::<Vec<_>, _>(|(_, end)| *end <= self.now);
        self.active = active;
        for (run, end) in over {
            let (state, at) = (self.outcome, Timestamp::from_second(end));
            self.results.insert(0, RunResult { kind: run.kind, name: run.name, state, at });
        }
        let active: Vec<_> = self.active.iter().map(|(run, _)| run.clone()).collect();
        let replaceable: Vec<_> = active.iter().filter(|run| !run.backfill.is_empty()).cloned().collect();
        let situation = Situation {
            schedule: &self.schedule,
            active: &active,
            replaceable: &replaceable,
            results: &self.results,
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
            let (mark, time) = match cause {
                Cause::Time(time) => ("", time),
                Cause::Backfill { time, .. } => ("b", time),
                Cause::Trigger { .. } => continue,
            };
            let (nominal, now) = ((time.as_second() - MIDNIGHT) / 60, (self.now - MIDNIGHT) / 60);
            let at = if nominal == now { String::new() } else { format!("@{now}") };
            self.made.push(format!("{mark}{nominal}{at}"));
            let (name, backfill) = (cause.run_name(&self.schedule, 0), cause.backfill().to_owned());
            let run = RunRef { kind: "Task".to_owned(), name, backfill, scheduled_at: cause.time() };
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

    /// Asks for the runs of times between two minutes.
    fn backfill(&mut self, from: i64, to: i64, max_active: Option<u32>) -> &mut Self {
        let minute = |minute: i64| Timestamp::from_second(MIDNIGHT + minute * 60);
        let name = format!("b{}", self.schedule.spec.backfills.len());
        let backfill = Backfill { name, from: minute(from), to: minute(to), max_active };
        self.schedule.spec.backfills.push(backfill);
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
            assert_eq!(play.schedule.status.dropped, 3, "they are counted");
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

/// Times from an hour before the schedule was made.
fn with_a_past(policy: &Value) -> Value {
    let mut policy = policy.clone();
    policy["timeSpec"] = json!("R/2025-12-31T23:00:00Z/PT10M");
    policy
}

#[test]
fn a_backfill_makes_times_that_have_passed_and_leaves_those_ahead_to_the_schedule() {
    let mut play = Play::new(&with_a_past(&json!({})), 1);
    play.until(5).backfill(-30, 100_000, None).until(35);
    assert_eq!(play.said(), "0 b-30@5 b-20@6 b-10@7 b0@8 10 20 30");
    let backfill = &play.schedule.status.backfills[0];
    assert_eq!((backfill.next, backfill.made), (None, 4));
    assert_eq!(play.schedule.status.last_scheduled_time, Some(Timestamp::from_second(MIDNIGHT + 30 * 60)));
}

#[test]
fn a_backfill_waits_for_regular_runs_and_lets_them_go_first_where_runs_may_not_overlap() {
    for policy in [json!({}), json!({"skipOutdated": false}), json!({"concurrency": "Queue"})] {
        let mut play = Play::new(&with_a_past(&policy), 4);
        play.until(5).backfill(-60, 0, Some(5)).until(35);
        assert_eq!(play.said(), "0 b-60@5 b-50@9 10@13 b-40@17 20@21 b-30@25 b-20@29 30@33", "{policy}");
        assert_eq!(play.schedule.status.dropped, 0);
    }
}

#[test]
fn a_backfill_replaces_nothing() {
    let mut play = Play::new(&with_a_past(&json!({"concurrency": "Replace"})), 8);
    play.until(5).backfill(-20, 0, None).until(9);
    assert_eq!((play.said().as_str(), play.replaced), ("0 b-20@8", 0));
}

#[test]
fn a_time_of_a_backfill_whose_run_is_replaced_is_made_again() {
    let mut play = Play::new(&with_a_past(&json!({"concurrency": "Replace"})), 4);
    play.until(7).backfill(-20, 0, None).until(10);
    // The regular run of 10 starts at once, in the place of the one for -20 that was made at 7.
    assert_eq!((play.said().as_str(), play.replaced), ("0 b-20@7 10", 1));
    assert_eq!(play.schedule.status.backfills[0].next, Some(Timestamp::from_second(MIDNIGHT - 20 * 60)));
    play.until(25);
    assert_eq!((play.said().as_str(), play.replaced), ("0 b-20@7 10 b-20@14 b-10@18 20 b-10@24", 2));
    play.until(30);
    assert_eq!((play.schedule.status.backfills[0].next, play.schedule.status.dropped), (None, 0));
}

#[test]
fn a_time_of_a_backfill_that_is_replaced_again_and_again_is_left_out_and_the_next_one_is_made() {
    // The run of a backfill takes twelve minutes, and regular ones begin every ten.
    let mut play = Play::new(&with_a_past(&json!({"concurrency": "Replace"})), 4);
    play.until(5).backfill(-20, 0, None);
    play.run_minutes = 6;
    play.until(58);
    assert_eq!(play.said(), "0 b-20@5 10 b-20@16 20 b-20@26 30 b-20@36 40 b-10@46 50 b-10@56");
    let known = play.schedule.status.backfills[0].replaced.map(|replaced| replaced.count);
    assert_eq!((known, play.schedule.status.dropped), (Some(1), 1));
}

#[test]
fn the_last_time_of_a_backfill_is_made_again_though_another_backfill_was_asked_for() {
    let mut play = Play::new(&with_a_past(&json!({"concurrency": "Replace"})), 4);
    play.until(7).backfill(-10, 0, None).until(8);
    assert_eq!((play.said().as_str(), play.schedule.status.backfills[0].next), ("0 b-10@7", None));
    // The run that was made is written down as active.
    play.look();
    let minute = |minute: i64| Timestamp::from_second(MIDNIGHT + minute * 60);
    let now = Timestamp::from_second(play.now);
    play.schedule.spec.backfills = add_backfill(&play.schedule, minute(-30), minute(-20), None, now);
    play.until(25);
    assert_eq!(play.said(), "0 b-10@7 10 b-10@14 b-30@18 20 b-30@24");
}

#[test]
fn where_runs_may_overlap_a_backfill_has_as_many_active_as_it_may() {
    let mut play = Play::new(&with_a_past(&json!({"allowConcurrent": true})), 6);
    play.until(5).backfill(-60, 0, Some(2)).backfill(-20, -10, None).until(18);
    assert_eq!(play.said(), "0 b-60@5 b-50@5 10 b-40@11 b-30@11 b-20@17 b-10@17 b-20@17");
}

#[test]
fn a_backfill_waits_while_its_schedule_is_suspended_and_goes_when_it_is_withdrawn() {
    let mut play = Play::new(&with_a_past(&json!({})), 1);
    play.until(2).suspend(true).backfill(-20, 0, None).until(5);
    assert_eq!(play.said(), "0");
    play.suspend(false).until(8);
    assert_eq!(play.said(), "0 b-20@5 b-10@6");
    play.schedule.spec.backfills.clear();
    play.look();
    assert!(play.schedule.status.backfills.is_empty());
}

#[test]
fn a_schedule_is_failing_after_three_failures_in_a_row_until_a_run_succeeds() {
    let mut play = Play::new(&json!({}), 1);
    play.outcome = State::Failed;
    play.until(25);
    assert_eq!((play.schedule.status.consecutive_failures, play.condition("Failing")), (2, String::new()));
    // Only the latest failure is kept: what was counted before counts on.
    play.results.truncate(1);
    play.until(35);
    assert_eq!(play.condition("Failing"), "True ConsecutiveFailures");
    let failing = play.schedule.status.conditions.iter().find(|condition| condition.r#type == "Failing");
    let message = failing.map(|failing| failing.message.as_str());
    assert_eq!(
        message,
        Some(
            "the last 3 runs failed, the latest is s-20260101t003000; see muster describe task s-20260101t003000"
        )
    );
    play.outcome = State::Canceled;
    play.until(45);
    assert_eq!(
        (play.schedule.status.consecutive_failures, play.condition("Failing").as_str()),
        (3, "True ConsecutiveFailures")
    );
    play.outcome = State::Succeeded;
    play.until(55);
    assert_eq!(
        (play.schedule.status.consecutive_failures, play.condition("Failing").as_str()),
        (0, "False RunSucceeded")
    );
    let last = &play.schedule.status.recent_runs[0];
    assert_eq!((last.name.as_str(), last.state), ("s-20260101t005000", State::Succeeded));
}

#[test]
fn a_clock_that_was_years_ahead_does_not_end_a_schedule() {
    const YEARS: i64 = 3 * 365 * 24 * 60;
    let mut play = Play::new(&json!({}), 1);
    play.until(12).down_until(YEARS).until(YEARS + 5);
    play.down_until(15).until(35);
    assert_eq!(play.said(), format!("10 {YEARS} 20 30"));
    assert_eq!(play.condition("ClockCorrected"), "True ClockWasAhead");
    // It was made while the clock was ahead.
    let mut play = Play::new(&json!({"timeSpec": "R/PT10M"}), 1);
    play.schedule.metadata.creation_timestamp = Some(Timestamp::from_second(MIDNIGHT + YEARS * 60));
    play.down_until(YEARS).until(YEARS + 5);
    play.made.clear();
    play.down_until(0).until(25);
    assert_eq!(play.said(), "0 10 20");
    assert_eq!(play.condition("ClockCorrected"), "True ClockWasAhead");
}

#[test]
fn what_a_clock_leapt_over_is_made_when_its_time_comes_and_what_it_made_is_not_made_again() {
    for time_spec in ["R100/PT10M", "R/PT10M", "*/10 * * * *"] {
        let mut play = Play::new(&json!({ "timeSpec": time_spec }), 1);
        play.until(12).down_until(130).until(155);
        assert!(play.said().ends_with("10 130 140 150"), "{time_spec}: {}", play.said());
        play.made.clear();
        play.down_until(15).until(185);
        assert_eq!(play.said(), "20 30 40 50 60 70 80 90 100 110 120 160 170 180", "{time_spec}");
        assert_eq!(play.condition("ClockCorrected"), "True ClockWasAhead");
        assert_eq!(
            (play.schedule.status.dropped, play.schedule.status.dropped_times.len()),
            (0, 0),
            "{time_spec}"
        );
    }
}

#[test]
fn a_counted_schedule_is_not_exhausted_by_a_clock_that_was_ahead_for_a_moment() {
    for ahead in [200, 3 * 365 * 24 * 60] {
        let mut play = Play::new(&json!({"timeSpec": "R10/PT10M"}), 1);
        play.until(12).down_until(ahead).until(ahead + 1);
        assert_eq!(play.schedule.status.remaining, Some(0));
        play.made.clear();
        play.down_until(13).until(65);
        assert_eq!(play.said(), "20 30 40 50 60");
        assert_ne!(play.condition("Exhausted"), "True Occurrences");
    }
}

#[test]
fn a_clock_that_leaps_twice_makes_nothing_twice_and_loses_nothing() {
    let mut play = Play::new(&json!({"timeSpec": "R/PT10M"}), 1);
    play.until(12).down_until(60).until(61).down_until(15).until(22).down_until(40).until(41);
    play.down_until(25).until(75);
    assert_eq!(play.said(), "0 10 60 20 40 30 50 70");
}

#[test]
fn a_clock_that_leaps_beyond_what_it_made_ahead_makes_nothing_twice() {
    let mut play = Play::new(&json!({"timeSpec": "R/PT10M"}), 1);
    play.until(12).down_until(60).until(61).down_until(15).until(22).down_until(95).until(96);
    assert_eq!(play.said(), "0 10 60 20 90@95");
    play.made.clear();
    play.down_until(25).until(125);
    assert_eq!(play.said(), "30 40 50 70 80 100 110 120", "60 and 90 were made");
}

#[test]
fn a_clock_that_leaps_in_two_steps_and_comes_back_in_two_loses_nothing() {
    let mut play = Play::new(&json!({"timeSpec": "R/PT10M"}), 1);
    play.until(12).down_until(60).until(61).down_until(130).until(131);
    play.down_until(72).until(82).down_until(13).until(155);
    assert_eq!(play.said(), "0 10 60 130 70@72 80 20 30 40 50 90 100 110 120 140 150");
    assert_eq!(play.schedule.status.dropped, 0);
}

/// Whatever the clock does, no time is made twice; and one that comes on a clock that then goes right is made.
#[test]
fn a_clock_that_goes_wherever_it_wants_makes_nothing_twice() {
    for seed in 1..200_u64 {
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from((state >> 33) % below).expect("a small number")
        };
        let counted = if seed.is_multiple_of(2) { "R60/PT10M" } else { "R/PT10M" };
        let policy = match seed % 3 {
            0 => json!({"timeSpec": counted}),
            1 => json!({"timeSpec": counted, "allowConcurrent": true}),
            _ => json!({"timeSpec": counted, "concurrency": "Replace"}),
        };
        let (mut play, mut now) = (Play::new(&policy, 1), 12);
        play.until(now);
        for _ in 0..8 {
            now = (now + draw(200) - 90).clamp(1, 500);
            play.down_until(now);
            now += draw(40);
            play.until(now);
        }
        let minutes = |made: &[String]| -> Vec<String> {
            made.iter().map(|run| run.split('@').next().unwrap_or_default().to_owned()).collect()
        };
        let mut made = minutes(&play.made);
        let before = made.clone();
        play.made.clear();
        play.until(620);
        made.extend(minutes(&play.made));
        let last = (now / 10 + 1) * 10;
        let missing = (0..).map(|step| last + step * 10).take_while(|minute| *minute <= 590);
        let missing: Vec<i64> = missing.filter(|minute| !made.contains(&minute.to_string())).collect();
        // Where runs may not overlap, one that was made on a clock that was ahead keeps the next ones back here.
        let may_wait = seed.is_multiple_of(3);
        assert!(
            may_wait || missing.is_empty(),
            "seed {seed}: {missing:?} came and were not made; before: {before:?}"
        );
        let all = made.len();
        made.sort();
        made.dedup();
        assert_eq!(all, made.len(), "seed {seed}: made twice; before: {before:?}");
    }
}

#[test]
fn a_schedule_that_waits_for_its_clock_says_so() {
    let mut play = Play::new(&json!({}), 1);
    play.until(122).down_until(5).until(6);
    assert_eq!(play.condition("Ready"), "True ClockSetBack");
    play.down_until(125).until(131);
    assert_eq!(
        (play.condition("Ready").as_str(), play.made.last().map(String::as_str)),
        ("True Scheduled", Some("130"))
    );
}

#[test]
fn backfills_of_the_same_second_have_names_of_their_own() {
    let mut schedule = Play::new(&json!({}), 1).schedule;
    let now = Timestamp::from_second(MIDNIGHT);
    let ask = |schedule: &mut Schedule| {
        let backfills = add_backfill(schedule, now, now, None, now);
        let name = backfills.last().expect("the new one").name.clone();
        schedule.spec.backfills = backfills;
        name
    };
    assert_eq!(ask(&mut schedule), "20260101t000000");
    assert_eq!(ask(&mut schedule), "20260101t000000-2");
    // Both have ended, and are known by their names still.
    for backfill in schedule.spec.backfills.clone() {
        let known = BackfillStatus { name: backfill.name, until: now, next: None, made: 1, replaced: None };
        schedule.status.backfills.push(known);
    }
    assert_eq!(ask(&mut schedule), "20260101t000000-3");
    assert_eq!(schedule.spec.backfills.len(), 1);
}
