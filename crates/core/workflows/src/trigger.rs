//! Runs that are made because other work ended: once for each end, across restarts, and without running in circles.
//!
//! A schedule remembers the work that made its runs by end and uid. When it remembers too much, the oldest go and everything
//! up to them counts as done. A run that was triggered is one deeper than the work that triggered it.

use muster_types::condition::{ConditionStatus, find_condition};
use muster_types::metadata::StringMap;
use muster_types::schedule::{Concurrency, Outcome, TriggerKind, TriggerOn};
use muster_types::schedule_status::TriggeredBy;
use muster_types::{Schedule, ScheduleStatus, State, Timestamp};

use crate::schedule::{Plan, Situation, created};
use crate::schedule_run::Cause;

/// Longest chain of runs that trigger each other.
pub const MAX_DEPTH: u32 = 16;
/// Triggered runs of one schedule in a minute.
pub const MAX_PER_MINUTE: usize = 60;
/// Work that is remembered.
const REMEMBERED: usize = 256;
/// Whether triggers do what they should.
const TRIGGERING: &str = "Triggering";

/// Work that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedWork {
    /// Task or Job.
    pub kind: TriggerKind,
    /// Its name.
    pub name: String,
    /// Unique over all time.
    pub uid: String,
    /// When it ended.
    pub at: Timestamp,
    /// How it ended.
    pub state: State,
    /// How many runs triggered each other until it was made.
    pub depth: u32,
}

impl EndedWork {
    fn mark(&self) -> TriggeredBy {
        TriggeredBy { at: self.at, uid: self.uid.clone() }
    }
}

/// True if a schedule waits for this.
pub fn is_waited_for(schedule: &Schedule, work: &EndedWork, labels: &StringMap) -> bool {
    schedule.spec.triggers.iter().any(|trigger| matches(&trigger.on, work, labels))
}

fn matches(on: &TriggerOn, work: &EndedWork, labels: &StringMap) -> bool {
    let named = if on.name.is_empty() {
        !on.selector.is_empty() && on.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    } else {
        on.name == work.name
    };
    let ended = match on.outcome.unwrap_or(Outcome::Completed) {
        Outcome::Completed => work.state.is_terminal(),
        Outcome::Succeeded => work.state == State::Succeeded,
        Outcome::Failed => work.state == State::Failed,
    };
    on.kind.unwrap_or(TriggerKind::Task) == work.kind && named && ended
}

/// True if work made its run, or is too old to make one. Work ends on the steady clock, a schedule begins on the wall clock,
/// which is ahead of it by `wall_lead` seconds: where a jump of the clock leaves open which came first, the work counts.
pub fn is_handled(schedule: &Schedule, status: &ScheduleStatus, work: &EndedWork, wall_lead: i64) -> bool {
    let mark = work.mark();
    let floor = status.not_before.map_or_else(|| created(schedule), |time| time.max(created(schedule)));
    work.at.as_second() < floor.as_second().saturating_sub(wall_lead.max(0))
        || status.triggered_before.as_ref().is_some_and(|before| mark <= *before)
        || status.triggered.contains(&mark)
}

/// What is asked for has changed: what ended before makes nothing.
pub fn observe_spec(schedule: &Schedule, status: &mut ScheduleStatus, now: Timestamp) {
    let known = status.observed_generation.is_none_or(|seen| seen == schedule.metadata.generation);
    if !known && !schedule.spec.triggers.is_empty() {
        let before = TriggeredBy { at: now, uid: String::new() };
        status.triggered_before = status.triggered_before.take().max(Some(before));
    }
}

/// Adds runs for work that ended.
pub fn plan_triggers(situation: &Situation<'_>, plan: &mut Plan) {
    let Situation { schedule, active, ended, now, steady, .. } = *situation;
    if schedule.spec.triggers.is_empty() {
        return;
    }
    let concurrency = schedule.spec.schedule_policy.concurrency();
    let waits = matches!(concurrency, Concurrency::Forbid | Concurrency::Queue);
    let minute = Timestamp::from_second(steady.as_second() - 60);
    let mut recent = plan.status.triggered.iter().filter(|mark| mark.at > minute).count();
    let mut trouble = None;
    for work in ended {
        if is_handled(schedule, &plan.status, work, situation.wall_lead()) {
            continue;
        }
        if work.depth >= MAX_DEPTH {
            trouble = Some((
                "TooDeep",
                format!(
                    "{} {} ended a chain of {MAX_DEPTH} runs that triggered each other; nothing is made for it",
                    work.kind, work.name
                ),
            ));
            remember(&mut plan.status, work);
            continue;
        }
        if waits && !(active.is_empty() && plan.runs.is_empty()) {
            break;
        }
        if recent >= MAX_PER_MINUTE {
            trouble = Some((
                "RateLimited",
                format!(
                    "more than {MAX_PER_MINUTE} runs were triggered in a minute; the others are made later"
                ),
            ));
            let oldest = plan.status.triggered.iter().map(|mark| mark.at).filter(|at| *at > minute).min();
            let wait = oldest.map_or(60, |oldest| oldest.as_second() + 60 - steady.as_second());
            let again = Timestamp::from_second(now.as_second().saturating_add(wait));
            plan.wake_at = Some(plan.wake_at.map_or(again, |wake| wake.min(again)));
            break;
        }
        recent += 1;
        plan.replaces |= concurrency == Concurrency::Replace && !active.is_empty();
        plan.runs.push(Cause::Trigger { work: work.clone() });
        remember(&mut plan.status, work);
    }
    report(&mut plan.status, trouble.as_ref(), now);
}

fn remember(status: &mut ScheduleStatus, work: &EndedWork) {
    status.triggered.push(work.mark());
    status.triggered.sort();
    while status.triggered.len() > REMEMBERED {
        let oldest = status.triggered.remove(0);
        status.triggered_before = Some(oldest);
    }
}

fn report(status: &mut ScheduleStatus, trouble: Option<&(&'static str, String)>, now: Timestamp) {
    let old = find_condition(&status.conditions, TRIGGERING);
    let was_deep = old.is_some_and(|old| old.reason == "TooDeep");
    let (holds, reason, message) = match trouble {
        Some((reason, message)) => (ConditionStatus::False, *reason, message.as_str()),
        // What was cut off stays said.
        None if was_deep => return,
        None => (ConditionStatus::True, "Triggers", ""),
    };
    crate::schedule::set_condition_of(status, TRIGGERING, holds, reason, message, now);
}
