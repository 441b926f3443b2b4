//! What a schedule makes now: seed 001, its settings, and those added since.
//!
//! Invariants:
//! - `lastScheduledTime` moves only together with the making of a run, and only forward.
//! - An occurrence is made at most once: what was made lies at or before `lastScheduledTime`.
//! - Nothing is made for a time before creation, or while the schedule was suspended or had another timeSpec.
//! - Times that pass while it is suspended are counted as dropped.
//! - A wait costs nothing: the plan says when to look again, or that only a change can matter.

mod backfill;
mod clock_correction;
mod conditions;
mod due;
mod results;

use muster_types::schedule::Concurrency;
use muster_types::schedule_status::{RunRef, RunResult};
use muster_types::{Schedule, ScheduleStatus, Timestamp};

pub use backfill::{add_backfill, backfill_times, note_present};
pub(crate) use conditions::set as set_condition_of;

use crate::schedule_run::Cause;
use crate::time_spec::{Occurrences, TimeSpec};
use crate::trigger::{self, EndedWork};
use due::{Due, choose_due, note_made};

/// Runs listed in `status.active`.
const SHOWN_ACTIVE: usize = 100;

/// What is known about a schedule.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// The schedule as it is stored.
    pub schedule: &'a Schedule,
    /// Its runs that have not ended, in order.
    pub active: &'a [RunRef],
    /// Those of them that a backfill made and whose end nobody has asked for: if they are replaced, their times are made again.
    pub replaceable: &'a [RunRef],
    /// Its runs that have ended, the latest first, as far as they are remembered.
    pub results: &'a [RunResult],
    /// Work that ended and that its triggers wait for, those included that made their runs.
    pub ended: &'a [EndedWork],
    /// Why nothing can be made, if what it is made of is missing.
    pub missing: Option<&'a str>,
    /// The time on the wall clock, which occurrences follow.
    pub now: Timestamp,
    /// The time on the steady clock, on which ends of work are written down.
    pub steady: Timestamp,
}

impl Situation<'_> {
    /// Seconds by which the wall clock is ahead of the steady one.
    pub(crate) fn wall_lead(&self) -> i64 {
        self.now.as_second() - self.steady.as_second()
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Runs to make, in order, in one batch with the status.
    pub runs: Vec<Cause>,
    /// The runs that have not ended are to be canceled. Backfills make theirs again.
    pub replaces: bool,
    /// What is to be reported.
    pub status: ScheduleStatus,
    /// When to look again; `None` if only a change can matter.
    pub wake_at: Option<Timestamp>,
}

/// Decides what a schedule makes now.
pub fn plan_schedule(situation: &Situation<'_>) -> Plan {
    match clock_correction::correct_clock(situation) {
        Some(schedule) => plan(&Situation { schedule: &schedule, ..situation.clone() }),
        None => plan(situation),
    }
}

fn plan(situation: &Situation<'_>) -> Plan {
    let Situation { schedule, active, now, .. } = *situation;
    let mut status = schedule.status.clone();
    results::observe_results(&mut status, situation.results, now);
    trigger::observe_spec(schedule, &mut status, situation.steady);
    status.observed_generation = Some(schedule.metadata.generation);
    status.active = active.iter().take(SHOWN_ACTIVE).cloned().collect();
    let occurrences = match occurrences_of(schedule) {
        Ok(occurrences) => occurrences,
        Err(why) => {
            conditions::set_broken(&mut status, &why, now);
            return Plan { runs: Vec::new(), replaces: false, status, wake_at: None };
        }
    };
    observe_spec(schedule, occurrences.as_ref(), &mut status, now);
    let held = schedule.spec.suspend || schedule.metadata.deletion_timestamp.is_some();
    let mut plan = Plan { runs: Vec::new(), replaces: false, status, wake_at: None };
    if held || situation.missing.is_some() {
        show_next(schedule, occurrences.as_ref().filter(|_| !held), false, &mut plan, now);
    } else {
        plan_times(situation, occurrences.as_ref(), &mut plan);
        trigger::plan_triggers(situation, &mut plan);
        backfill::plan_backfills(situation, occurrences.as_ref(), &mut plan);
    }
    plan.replaces &= !plan.runs.is_empty();
    plan.status.made += plan.runs.len() as u64;
    conditions::set_conditions(situation, occurrences.is_some(), &mut plan.status);
    plan
}

/// The times of a schedule; `None` if it has triggers alone.
pub fn occurrences_of(schedule: &Schedule) -> Result<Option<Occurrences>, String> {
    let policy = &schedule.spec.schedule_policy;
    if policy.time_spec.is_empty() && !schedule.spec.triggers.is_empty() {
        return Ok(None);
    }
    let spec = TimeSpec::parse(&policy.time_spec, &policy.time_zone).map_err(|error| error.to_string())?;
    Ok(Some(spec.starting(created(schedule))))
}

/// The second before a time.
fn before(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second() - 1)
}

/// When the schedule was made, on a clock that was right.
pub fn created(schedule: &Schedule) -> Timestamp {
    let counted = schedule.status.counted_from.or(schedule.metadata.creation_timestamp);
    counted.unwrap_or(Timestamp::from_second(0))
}

/// What was asked for may have changed: times before that are not made up for.
fn observe_spec(
    schedule: &Schedule,
    occurrences: Option<&Occurrences>,
    status: &mut ScheduleStatus,
    now: Timestamp,
) {
    let zone = &schedule.spec.schedule_policy.time_zone;
    let normal = occurrences.map_or_else(String::new, |occurrences| {
        let form = occurrences.normal_form();
        if zone.is_empty() { form } else { format!("{form} [{zone}]") }
    });
    let changed = !status.normal_time_spec.is_empty() && status.normal_time_spec != normal;
    let resumed = conditions::was_suspended(status) && !schedule.spec.suspend;
    if let Some(occurrences) = occurrences.filter(|_| resumed && !changed) {
        let newest = Due { schedule, occurrences, status, now }.newest();
        status.dropped += occurrences.count_between(newest, before(now));
    }
    if changed {
        status.dropped_times.clear();
    }
    if changed || resumed {
        status.not_before = Some(now);
    }
    status.normal_time_spec = normal;
}

/// Which times are due, and what that does to the status.
fn plan_times(situation: &Situation<'_>, occurrences: Option<&Occurrences>, plan: &mut Plan) {
    let Some(occurrences) = occurrences else { return };
    let Situation { schedule, active, now, .. } = *situation;
    let policy = &schedule.spec.schedule_policy;
    let concurrency = policy.concurrency();
    let is_blocked = !active.is_empty() && matches!(concurrency, Concurrency::Forbid | Concurrency::Queue);
    let due = Due { schedule, occurrences, status: &plan.status, now };
    let chosen = if is_blocked { Vec::new() } else { choose_due(&due) };
    if let Some(first) = chosen.first() {
        if let Some(last) = plan.status.last_scheduled_time.filter(|last| first < last) {
            clock_correction::note(&mut plan.status, last, now);
        }
        for time in &chosen {
            plan.status = note_made(&Due { schedule, occurrences, status: &plan.status, now }, *time);
        }
        plan.replaces = concurrency == Concurrency::Replace && !active.is_empty();
        plan.runs.extend(chosen.iter().map(|time| Cause::Time(*time)));
    }
    show_next(schedule, Some(occurrences), is_blocked, plan, now);
    let due = Due { schedule, occurrences, status: &plan.status, now };
    let next = due.first_open().map(|time| due.due_at(time));
    // Whoever waits for a run to end is woken by that end.
    let waits = !plan.runs.is_empty() && matches!(concurrency, Concurrency::Forbid | Concurrency::Queue);
    plan.wake_at = next.filter(|at| !is_blocked && (*at > now || !waits));
}

/// Shows what comes next and how much is left. What waits for a run to end is next, though its time has passed.
fn show_next(
    schedule: &Schedule,
    occurrences: Option<&Occurrences>,
    is_blocked: bool,
    plan: &mut Plan,
    now: Timestamp,
) {
    let Some(occurrences) = occurrences else {
        plan.status.next_scheduled_time = None;
        return;
    };
    let due = Due { schedule, occurrences, status: &plan.status, now };
    let open = due.first_open();
    let left = open.map(|open| due.count_open(open));
    let next = match open {
        Some(open) if open > now || is_blocked || due.due_at(open) > now => Some(open),
        Some(_) => due.next_open(Timestamp::from_second(now.as_second() + 1)),
        None => None,
    };
    plan.status.next_scheduled_time = next;
    plan.status.remaining = left.unwrap_or(Some(0));
}
