//! A clock that was far ahead and was set right: the schedule goes on from now and says so.
//!
//! Times that were made are waited for if they lie ahead by less than a day, so that none is made twice because a clock was set
//! back. What a clock leapt over was not made: it is made when its time comes, and what was made behind it is left out then.

use muster_types::condition::ConditionStatus;
use muster_types::schedule_status::{TimeRange, TriggeredBy};
use muster_types::{Schedule, ScheduleStatus, Timestamp};

use super::{Situation, before, conditions, created, occurrences_of};

/// Seconds that a schedule waits for its clock.
const PATIENCE: i64 = 24 * 3600;
/// Leaps whose runs are remembered until their time has come: those that come first.
const REMEMBERED: usize = 16;
/// Whether times of a clock that was ahead were given up.
const CLOCK_CORRECTED: &str = "ClockCorrected";

/// The schedule without what a clock wrote that was ahead; `None` if there is no such thing.
pub fn correct_clock(situation: &Situation<'_>) -> Option<Schedule> {
    let back = come_back(situation.schedule, situation.now);
    let situation = Situation { schedule: back.as_ref().unwrap_or(situation.schedule), ..situation.clone() };
    forget_far(&situation).or(back)
}

/// The schedule as it is if its clock leapt ahead and was set back to before what it made after that leap.
fn come_back(schedule: &Schedule, now: Timestamp) -> Option<Schedule> {
    let last = schedule.status.last_scheduled_time?;
    let left_out = schedule.status.left_out.filter(|left_out| now < left_out.to && left_out.to <= last)?;
    let mut schedule = schedule.clone();
    let occurrences = occurrences_of(&schedule).ok().flatten();
    // What lies before the leap was made.
    let open = now.max(Timestamp::from_second(left_out.from.as_second() + 1));
    let status = &mut schedule.status;
    let open_again = occurrences.map_or(0, |it| it.count_between(before(open), before(left_out.to)));
    status.dropped = status.dropped.saturating_sub(open_again);
    status.made_ahead.push(TimeRange { from: left_out.to, to: last });
    status.made_ahead.sort_by_key(|made| made.from);
    status.made_ahead.truncate(REMEMBERED);
    (status.left_out, status.last_scheduled_time, status.not_before) = (None, None, Some(open));
    say(status, last, now);
    Some(schedule)
}

fn say(status: &mut ScheduleStatus, furthest: Timestamp, now: Timestamp) {
    let message =
        format!("the clock was set back from {furthest} or later to {now}; the schedule goes on from {now}");
    conditions::set(status, CLOCK_CORRECTED, ConditionStatus::True, "ClockWasAhead", &message, now);
}

/// The schedule without what a clock wrote that was more than a day ahead; `None` if there is no such thing.
fn forget_far(situation: &Situation<'_>) -> Option<Schedule> {
    let Situation { schedule, now, steady, .. } = *situation;
    let is_far = |time: Timestamp| time.as_second() > now.as_second().saturating_add(PATIENCE);
    let is_late = |time: Timestamp| time.as_second() > steady.as_second().saturating_add(PATIENCE);
    let status = &schedule.status;
    let triggered = status.triggered_before.iter().chain(&status.triggered).map(|mark| mark.at);
    let times = [Some(created(schedule)), status.last_scheduled_time, status.not_before];
    let ahead = times.into_iter().flatten().filter(|time| is_far(*time));
    let furthest = ahead.chain(triggered.filter(|time| is_late(*time))).max()?;
    let mut schedule = schedule.clone();
    if is_far(created(&schedule)) {
        schedule.status.counted_from = Some(now);
    }
    let status = &mut schedule.status;
    if status.last_scheduled_time.is_some_and(is_far) {
        status.last_scheduled_time = None;
        status.not_before = Some(now);
    }
    if status.not_before.is_some_and(is_far) {
        status.not_before = Some(now);
    }
    status.triggered.retain(|mark| !is_late(mark.at));
    if status.triggered_before.as_ref().is_some_and(|mark| is_late(mark.at)) {
        status.triggered_before = Some(TriggeredBy { at: steady, uid: String::new() });
    }
    say(status, furthest, now);
    Some(schedule)
}
