//! Which occurrences are due, and which of them are made.

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

impl Due<'_> {
    /// Everything up to here was made, or was never to be made.
    pub fn handled(&self) -> Timestamp {
        let bounds = [Some(before(created(self.schedule))), self.status.not_before.map(before)];
        let last = self.status.last_scheduled_time;
        bounds.into_iter().flatten().chain(last).max().unwrap_or(Timestamp::MIN)
    }

    /// The first occurrence that can still be made.
    pub fn first_open(&self) -> Option<Timestamp> {
        let policy = &self.schedule.spec.schedule_policy;
        let patience = [policy.catch_up_window, policy.starting_deadline].into_iter().flatten().min();
        let oldest = patience.map(|patience| minus(self.now, patience));
        let open = Timestamp::from_second(self.handled().as_second() + 1);
        self.occurrences
            .next_at_or_after(oldest.map_or(open, |oldest| oldest.max(open)))
            .and_then(|next| self.not_made_ahead(next))
    }

    /// The occurrence, or the first after those that were made by a clock that was ahead.
    fn not_made_ahead(&self, mut time: Timestamp) -> Option<Timestamp> {
        while let Some(made) = self.made_ahead(time) {
            time = self.occurrences.next_after(made.to)?;
        }
        Some(time)
    }

    fn made_ahead(&self, time: Timestamp) -> Option<&TimeRange> {
        self.status.made_ahead.iter().find(|made| made.contains(time))
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
    let next = |time: &Timestamp| due.occurrences.next_after(*time).and_then(|next| due.not_made_ahead(next));
    let after = |time: &Timestamp| next(time).filter(|next| due.is_due(*next));
    std::iter::successors(Some(first), after).take(most).collect()
}

/// The last one that is due. Jitter never reaches the next one, so at most one that has come is not due yet.
fn latest(due: &Due<'_>, first: Timestamp) -> Timestamp {
    let until = |upto: Timestamp| {
        let mut last = due.occurrences.last_between(first, upto).unwrap_or(first);
        while let Some(made) = due.made_ahead(last).filter(|_| last > first) {
            last = due.occurrences.last_between(first, before(made.from)).unwrap_or(first);
        }
        last
    };
    let last = until(due.now);
    if due.is_due(last) { last } else { until(before(last)) }
}

fn minus(time: Timestamp, duration: Duration) -> Timestamp {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(time.as_second().saturating_sub(seconds))
}
