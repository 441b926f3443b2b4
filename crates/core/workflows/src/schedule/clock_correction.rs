//! A clock that was far ahead and was set right: the schedule goes on from now and says so.
//!
//! Times that were made are waited for if they lie ahead by less than a day, so that none is made twice because a clock was set
//! back. What a clock leapt over is made when its time comes.

use muster_types::condition::ConditionStatus;
use muster_types::schedule_status::TriggeredBy;
use muster_types::{Schedule, ScheduleStatus, Timestamp};

use super::{Situation, conditions, created};

/// Seconds that a schedule waits for its clock.
const PATIENCE: i64 = 24 * 3600;
/// Whether times of a clock that was ahead were given up.
const CLOCK_CORRECTED: &str = "ClockCorrected";

/// What a clock leapt over is made now that its time has come; it had made times up to `last`.
pub fn note(status: &mut ScheduleStatus, last: Timestamp, now: Timestamp) {
    let message =
        format!("the clock was ahead, at {last} or later; what it leapt over is made when its time comes");
    conditions::set(status, CLOCK_CORRECTED, ConditionStatus::True, "ClockWasAhead", &message, now);
}

/// The schedule without what a clock wrote that was more than a day ahead; `None` if there is no such thing.
pub fn correct_clock(situation: &Situation<'_>) -> Option<Schedule> {
    let Situation { schedule, now, steady, .. } = *situation;
    let is_far = |time: Timestamp| time.as_second() > now.as_second().saturating_add(PATIENCE);
    let is_late = |time: Timestamp| time.as_second() > steady.as_second().saturating_add(PATIENCE);
    let status = &schedule.status;
    let triggered = status.triggered_before.iter().chain(&status.triggered).map(|mark| mark.at);
    // What lies ahead of now and was left out goes on by itself.
    let goes_on = status.dropped_times.iter().any(|range| !is_far(range.from) && now < range.to);
    let last = status.last_scheduled_time.filter(|last| is_far(*last) && !goes_on);
    let times = [Some(created(schedule)), last, status.not_before];
    let ahead = times.into_iter().flatten().filter(|time| is_far(*time));
    let furthest = ahead.chain(triggered.filter(|time| is_late(*time))).max()?;
    let mut schedule = schedule.clone();
    if is_far(created(&schedule)) {
        schedule.status.counted_from = Some(now);
    }
    let status = &mut schedule.status;
    if last.is_some() {
        status.dropped_times.clear();
        (status.last_scheduled_time, status.not_before) = (None, Some(now));
    }
    if status.not_before.is_some_and(is_far) {
        status.not_before = Some(now);
    }
    status.triggered.retain(|mark| !is_late(mark.at));
    if status.triggered_before.as_ref().is_some_and(|mark| is_late(mark.at)) {
        status.triggered_before = Some(TriggeredBy { at: steady, uid: String::new() });
    }
    let message =
        format!("the clock was set back from {furthest} or later to {now}; the schedule goes on from {now}");
    conditions::set(status, CLOCK_CORRECTED, ConditionStatus::True, "ClockWasAhead", &message, now);
    Some(schedule)
}
