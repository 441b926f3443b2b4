//! Backfills: runs of times that have passed, made behind the regular ones.
//!
//! Invariants:
//! - A backfill makes no time that the schedule has still to make itself, so none that lies ahead.
//! - It is bound by the concurrency of the schedule: where runs may not overlap, it makes one when nothing is active.
//! - It cancels nothing, and `lastScheduledTime` does not move.
//! - A run of it that a regular run replaces is made again: the backfill goes back to its time. A time whose runs are replaced again
//!   and again is left out, or the backfill would never get further. What a user canceled or deleted is not made again.
//! - Backfills are made one after the other, in the order of the spec.

use muster_types::schedule::{Backfill, Concurrency};
use muster_types::schedule_status::{BackfillStatus, ReplacedTime, RunRef};
use muster_types::{Schedule, ScheduleStatus, Timestamp};

use super::due::Due;
use super::{Plan, Situation};
use crate::schedule_run::Cause;
use crate::time_spec::Occurrences;

/// Runs made at once for one backfill.
const RUNS: usize = 100;

/// How often a time is made again whose run was replaced.
const MADE_AGAIN: u32 = 3;

/// Adds the runs of backfills to what is made anyway.
pub fn plan_backfills(situation: &Situation<'_>, occurrences: Option<&Occurrences>, plan: &mut Plan) {
    let asked = &situation.schedule.spec.backfills;
    plan.status.backfills.retain(|known| asked.iter().any(|backfill| backfill.name == known.name));
    if plan.replaces {
        take_back(situation.replaceable, &mut plan.status);
    }
    let Some(occurrences) = occurrences else { return };
    for backfill in asked {
        let mut known = take_status(situation, occurrences, backfill, &mut plan.status);
        let room = room(situation, backfill, plan);
        let after = |time: &Timestamp| occurrences.next_after(*time).filter(|next| *next <= known.until);
        let times: Vec<_> = std::iter::successors(known.next, after).take(room).collect();
        if let Some(last) = times.last() {
            known.next = after(last);
            known.made += times.len() as u64;
            plan.runs.extend(
                times.iter().map(|time| Cause::Backfill { time: *time, backfill: backfill.name.clone() }),
            );
        }
        let is_over = known.next.is_none();
        plan.status.backfills.push(known);
        if !is_over {
            return;
        }
    }
}

/// Each backfill goes on with the first of its times whose run is replaced. Later ones that have run are there and are passed over.
fn take_back(replaced: &[RunRef], status: &mut ScheduleStatus) {
    for known in &mut status.backfills {
        let own = replaced.iter().filter(|run| run.backfill == known.name);
        for time in own.filter_map(|run| run.scheduled_at) {
            let before = known.replaced.filter(|before| before.time == time).map_or(0, |before| before.count);
            known.replaced = Some(ReplacedTime { time, count: before + 1 });
            if before < MADE_AGAIN {
                known.next = known.next.into_iter().chain([time]).min();
            } else {
                status.dropped += 1;
            }
        }
    }
}

/// How far a backfill is. Times that had not passed, or are the schedule's own to make, when it began are no part of it.
fn take_status(
    situation: &Situation<'_>,
    occurrences: &Occurrences,
    backfill: &Backfill,
    status: &mut ScheduleStatus,
) -> BackfillStatus {
    if let Some(place) = status.backfills.iter().position(|known| known.name == backfill.name) {
        return status.backfills.remove(place);
    }
    let Situation { schedule, now, .. } = *situation;
    let handled = Due { schedule, occurrences, status, now }.handled();
    let until = Timestamp::from_second(backfill.to.as_second() - 1).min(handled).min(now);
    let next = occurrences.next_at_or_after(backfill.from).filter(|next| *next <= until);
    BackfillStatus { name: backfill.name.clone(), until, next, made: 0, replaced: None }
}

/// How many runs of a backfill can be made now.
fn room(situation: &Situation<'_>, backfill: &Backfill, plan: &Plan) -> usize {
    let active = situation.active;
    match situation.schedule.spec.schedule_policy.concurrency() {
        Concurrency::Allow => {
            let most = usize::try_from(backfill.max_active.unwrap_or(1).max(1)).unwrap_or(RUNS);
            let busy = active.iter().filter(|run| run.backfill == backfill.name).count();
            most.saturating_sub(busy).min(RUNS)
        }
        Concurrency::Forbid | Concurrency::Replace | Concurrency::Queue => {
            usize::from(active.is_empty() && plan.runs.is_empty())
        }
    }
}

/// The run for a cause was there already: it was not made now.
pub fn note_present(status: &mut ScheduleStatus, cause: &Cause) {
    status.made = status.made.saturating_sub(1);
    let Cause::Backfill { backfill, .. } = cause else { return };
    if let Some(known) = status.backfills.iter_mut().find(|known| known.name == *backfill) {
        known.made = known.made.saturating_sub(1);
    }
}

/// Times that have passed by `now`, from one time on and before another.
pub fn backfill_times(
    occurrences: &Occurrences,
    from: Timestamp,
    to: Timestamp,
    now: Timestamp,
) -> impl Iterator<Item = Timestamp> {
    let is_asked = move |time: &Timestamp| *time < to && *time <= now;
    let first = occurrences.next_at_or_after(from).filter(is_asked);
    std::iter::successors(first, move |time| occurrences.next_after(*time).filter(is_asked))
}

/// What the spec of a schedule says when one more backfill is asked for: those that have ended are left out.
pub fn add_backfill(
    schedule: &Schedule,
    from: Timestamp,
    to: Timestamp,
    max_active: Option<u32>,
    now: Timestamp,
) -> Vec<Backfill> {
    let is_over = |backfill: &Backfill| {
        let known = schedule.status.backfills.iter().find(|known| known.name == backfill.name);
        // A run that has not ended may be replaced, and is made again then.
        let is_active = schedule.status.active.iter().any(|run| run.backfill == backfill.name);
        known.is_some_and(|known| known.next.is_none()) && !is_active
    };
    let mut backfills: Vec<_> =
        schedule.spec.backfills.iter().filter(|backfill| !is_over(backfill)).cloned().collect();
    let second = now.to_string().replace(['-', ':', 'Z'], "").to_lowercase();
    // One of the same second may have ended, and be known by its name.
    let is_used = |name: &String| {
        let asked = schedule.spec.backfills.iter().map(|backfill| &backfill.name);
        asked.chain(schedule.status.backfills.iter().map(|known| &known.name)).any(|known| known == name)
    };
    let mut names = std::iter::once(second.clone()).chain((2..).map(|number| format!("{second}-{number}")));
    let name = names.find(|name| !is_used(name)).unwrap_or(second);
    backfills.push(Backfill { name, from, to, max_active });
    backfills
}
