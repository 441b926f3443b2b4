//! What a schedule says of itself.

use muster_types::condition::{Condition, ConditionStatus, find_condition, set_condition};
use muster_types::{ScheduleStatus, Timestamp};

use super::Situation;

/// Whether it makes runs when it should.
const READY: &str = "Ready";
/// Whether it was told not to.
const SUSPENDED: &str = "Suspended";
/// Whether nothing is left to make.
const EXHAUSTED: &str = "Exhausted";

/// True if it was suspended when it was last looked at.
pub fn was_suspended(status: &ScheduleStatus) -> bool {
    find_condition(&status.conditions, SUSPENDED).is_some_and(Condition::is_true)
}

/// The times cannot be read.
pub fn set_broken(status: &mut ScheduleStatus, why: &str, now: Timestamp) {
    status.next_scheduled_time = None;
    set(status, READY, ConditionStatus::False, "InvalidTimeSpec", why, now);
}

/// All conditions, from what is known.
pub fn set_conditions(situation: &Situation<'_>, has_times: bool, status: &mut ScheduleStatus) {
    let (schedule, now) = (situation.schedule, situation.now);
    let word = |holds: bool| if holds { ConditionStatus::True } else { ConditionStatus::False };
    let suspended = schedule.spec.suspend;
    if suspended || find_condition(&status.conditions, SUSPENDED).is_some() {
        let (reason, message) = if suspended { ("Asked", "spec.suspend is true") } else { ("Resumed", "") };
        set(status, SUSPENDED, word(suspended), reason, message, now);
    }
    let exhausted = has_times && !suspended && status.remaining == Some(0);
    if exhausted || find_condition(&status.conditions, EXHAUSTED).is_some() {
        let message = if exhausted {
            let spec = &status.normal_time_spec;
            format!("{spec} has no occurrence left; those before the schedule was made count as well")
        } else {
            String::new()
        };
        set(status, EXHAUSTED, word(exhausted), "Occurrences", &message, now);
    }
    let next = status.next_scheduled_time;
    let waits_for = |last: Timestamp| next.is_none_or(|next| next > last);
    let waits_for_clock;
    let (ready, reason, message) = match situation.missing {
        Some(missing) => (false, "TemplateNotFound", missing),
        None if suspended => (false, "Suspended", "spec.suspend is true"),
        None if exhausted && schedule.spec.triggers.is_empty() => {
            (false, "Exhausted", "no occurrence is left")
        }
        None => match status.last_scheduled_time.filter(|last| *last > now && waits_for(*last)) {
            Some(last) => {
                waits_for_clock = format!("the clock was set back; times up to {last} were made already");
                (true, "ClockSetBack", waits_for_clock.as_str())
            }
            None => (true, "Scheduled", ""),
        },
    };
    set(status, READY, word(ready), reason, message, now);
}

/// One condition.
pub fn set(
    status: &mut ScheduleStatus,
    r#type: &str,
    holds: ConditionStatus,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    set_condition(&mut status.conditions, Condition::new(r#type, holds, reason, message, now));
}
