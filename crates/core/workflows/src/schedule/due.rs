//! Which occurrences are due, which of them are made, and which are left out by that.
//!
//! What was left out lies before the last one that was made. As long as the clock is behind that, nothing of it is open any more. A clock
//! that was ahead and is set back opens it again: each occurrence in it is made when it comes, and nothing around it is made twice.

use muster_types::schedule::Concurrency;
use muster_types::schedule_status::TimeRange;
use muster_types::{Duration, Schedule, ScheduleStatus, Timestamp};

use super::{before, created};
use crate::mix::mix;
use crate::time_spec::Occurrences;

/// Runs made at once for one schedule; the rest follows at once.
const RUNS: usize = 100;

/// What decides about occurrences.
pub struct Due<'a> {
    pub schedule: &'a Schedule,
    pub occurrences: &'a Occurrences,
    pub status: &'a ScheduleStatus,
    pub now: Timestamp,
}

/// Ranges that were left out and are remembered: the latest.
const REMEMBERED: usize = 16;

impl Due<'_> {
    /// Everything up to here was made or left out, or was never to be made.
    pub fn handled(&self) -> Timestamp {
        self.open().next().map_or(self.newest(), |(after, _)| after)
    }

    /// Behind the last that was made, and behind all that was never to be made.
    pub fn newest(&self) -> Timestamp {
        self.status.last_scheduled_time.map_or(self.floor(), |last| last.max(self.floor()))
    }

    /// The first occurrence that can still be made.
    pub fn first_open(&self) -> Option<Timestamp> {
        let policy = &self.schedule.spec.schedule_policy;
        let patience = [policy.catch_up_window, policy.starting_deadline].into_iter().flatten().min();
        self.next_open(patience.map_or(Timestamp::MIN, |patience| minus(self.now, patience)))
    }

    /// The first one from a time on that was not made and can be made.
    pub fn next_open(&self, from: Timestamp) -> Option<Timestamp> {
        self.open().find_map(|(after, end)| {
            let next = self.occurrences.next_at_or_after(from.max(behind(after)))?;
            end.is_none_or(|end| next < end).then_some(next)
        })
    }

    /// How many there are still from a time on; `None` if there is no end to them.
    pub fn count_open(&self, from: Timestamp) -> Option<u64> {
        let count = |(after, end): (Timestamp, Option<Timestamp>)| {
            let after = after.max(before(from));
            match end {
                Some(end) => Some(self.occurrences.count_between(after, before(end))),
                None => self.occurrences.remaining_after(after),
            }
        };
        self.open().map(count).sum()
    }

    /// Where occurrences are that were not made: behind a time and, but for the last of these, before another.
    fn open(&self) -> impl Iterator<Item = (Timestamp, Option<Timestamp>)> {
        let ahead = self.status.dropped_times.iter().filter(|range| self.now < range.to);
        let ahead = ahead.map(|range| (range.from.max(self.floor()), Some(range.to)));
        ahead.chain([(self.newest(), None)])
    }

    /// What is not behind this was never to be made.
    fn floor(&self) -> Timestamp {
        let bounds = [Some(before(created(self.schedule))), self.status.not_before.map(before)];
        bounds.into_iter().flatten().max().unwrap_or(Timestamp::MIN)
    }

    /// When an occurrence is made at the earliest: its time, and its part of the jitter.
    pub fn due_at(&self, time: Timestamp) -> Timestamp {
        let jitter = self.schedule.spec.schedule_policy.jitter.map_or(0, Duration::as_secs);
        if jitter == 0 {
            return time;
        }
        let gap =
            self.occurrences.next_after(time).map_or(jitter, |next| next.duration_since(time).as_secs() - 1);
        let delay = mix(&self.schedule.metadata.uid, time.as_second()) % (jitter.min(gap) + 1);
        time.saturating_add(Duration::from_secs(delay))
    }

    fn is_due(&self, time: Timestamp) -> bool {
        time <= self.now && self.due_at(time) <= self.now
    }
}

/// The occurrences to make now, in order.
pub fn choose_due(due: &Due<'_>) -> Vec<Timestamp> {
    let policy = &due.schedule.spec.schedule_policy;
    let Some(first) = due.first_open().filter(|first| due.is_due(*first)) else { return Vec::new() };
    let concurrency = policy.concurrency();
    if policy.skips_outdated() || concurrency == Concurrency::Replace {
        return vec![latest(due, first)];
    }
    let most = if concurrency == Concurrency::Allow { RUNS } else { 1 };
    let after = |time: &Timestamp| due.next_open(behind(*time)).filter(|next| due.is_due(*next));
    std::iter::successors(Some(first), after).take(most).collect()
}

/// The last one that is due. Jitter never reaches the next one, so at most one that has come is not due yet. From the first that is open
/// up to now, all are.
fn latest(due: &Due<'_>, first: Timestamp) -> Timestamp {
    let until = |upto: Timestamp| due.occurrences.last_between(first, upto).unwrap_or(first);
    let last = until(due.now);
    if due.is_due(last) { last } else { until(before(last)) }
}

/// The status after an occurrence was made: what is open before it is left out.
pub fn note_made(due: &Due<'_>, time: Timestamp) -> ScheduleStatus {
    let mut status = due.status.clone();
    let ranges = &mut status.dropped_times;
    let parts = if let Some(place) = ranges.iter().position(|range| range.from < time && time < range.to) {
        let range = ranges.remove(place);
        status.dropped = status.dropped.saturating_sub(1);
        vec![TimeRange { to: time, ..range }, TimeRange { from: time, ..range }]
    } else {
        let range = TimeRange { from: due.newest(), to: time };
        status.dropped += due.occurrences.count_between(range.from, before(time));
        status.last_scheduled_time = Some(time);
        vec![range]
    };
    let has_any = |range: &TimeRange| due.occurrences.count_between(range.from, before(range.to)) > 0;
    ranges.extend(parts.into_iter().filter(has_any));
    ranges.sort_by_key(|range| range.from);
    ranges.drain(..ranges.len().saturating_sub(REMEMBERED));
    status
}

fn behind(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second().saturating_add(1))
}

fn minus(time: Timestamp, duration: Duration) -> Timestamp {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(time.as_second().saturating_sub(seconds))
}
