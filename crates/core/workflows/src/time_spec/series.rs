//! Occurrences at equal steps from an anchor, forward or backward, found by arithmetic.

use std::fmt;

use muster_types::Timestamp;

use super::calendar::{DAY, add_months_and_days, show_civil};
use super::iso_duration::IsoDuration;
use super::zone::Zone;

/// No series is longer: beyond lies the end of time.
const MANY: i64 = 1 << 40;

/// Which end of the series the anchor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnchorIs {
    /// The series starts there.
    First,
    /// The series ends there.
    Last,
}

/// Occurrences at equal steps. The k-th is k steps from the anchor; k is below zero when the anchor is the end.
#[derive(Debug, Clone)]
pub struct Series {
    zone: Zone,
    anchor: i64,
    /// What the clock shows at the anchor, or was asked to show where a change of the clocks leaves that out.
    civil: i64,
    step: Option<IsoDuration>,
    count: Option<u64>,
    anchor_is: AnchorIs,
    first: i64,
    last: i64,
}

impl Series {
    /// A series from a moment. Without a step it has at most one occurrence.
    pub fn new(
        zone: Zone,
        anchor: i64,
        step: Option<IsoDuration>,
        count: Option<u64>,
        anchor_is: AnchorIs,
    ) -> Self {
        let civil = zone.clock_at(anchor);
        Self::anchored(zone, anchor, civil, step, count, anchor_is)
    }

    /// A series from a time of the zone's clock. If the clock never shows that time, only the occurrence at the anchor itself
    /// is moved to the end of the gap.
    pub fn from_civil(
        zone: Zone,
        civil: i64,
        step: Option<IsoDuration>,
        count: Option<u64>,
        anchor_is: AnchorIs,
    ) -> Self {
        let anchor = zone.resolve(civil);
        Self::anchored(zone, anchor, civil, step, count, anchor_is)
    }

    fn anchored(
        zone: Zone,
        anchor: i64,
        civil: i64,
        step: Option<IsoDuration>,
        count: Option<u64>,
        anchor_is: AnchorIs,
    ) -> Self {
        let steps = count.map_or(MANY, |count| i64::try_from(count).unwrap_or(MANY).min(MANY)) - 1;
        let (first, last) = if anchor_is == AnchorIs::Last { (-steps, 0) } else { (0, steps) };
        Self { zone, anchor, civil, step, count, anchor_is, first, last }
    }

    /// The first at this second or later.
    pub fn next_at_or_after(&self, second: i64) -> Option<i64> {
        self.at(self.index_at_or_after(second)?)
    }

    /// How many are in `(after, upto]`.
    pub fn count_between(&self, after: i64, upto: i64) -> u64 {
        let behind = |second: i64| self.index_at_or_after(second + 1).unwrap_or(self.last + 1);
        u64::try_from(behind(upto) - behind(after)).unwrap_or(0)
    }

    /// The n-th of all, from 0. `None` if the series has no first or no such one.
    pub fn nth(&self, n: u64) -> Option<i64> {
        if self.anchor_is == AnchorIs::Last && self.count.is_none() {
            return None;
        }
        let k = self.first.checked_add(i64::try_from(n).ok()?)?;
        (k <= self.last).then(|| self.at(k)).flatten()
    }

    /// How many are later; `None` if there is no end.
    pub fn remaining_after(&self, second: i64) -> Option<u64> {
        if self.anchor_is == AnchorIs::First && self.count.is_none() && self.step.is_some() {
            return None;
        }
        let next = self.index_at_or_after(second + 1);
        Some(next.map_or(0, |next| u64::try_from(self.last - next + 1).unwrap_or(0)))
    }

    /// The k-th; `None` beyond the ends of time.
    fn at(&self, k: i64) -> Option<i64> {
        let Some(step) = self.step.filter(|_| k != 0) else { return Some(self.anchor) };
        let seconds = step.seconds.checked_mul(k)?;
        let second = if step.months == 0 && (step.days == 0 || !self.zone.changes()) {
            self.anchor.checked_add(step.days.checked_mul(k)?.checked_mul(DAY)?)?
        } else {
            let clock =
                add_months_and_days(self.civil, step.months.checked_mul(k)?, step.days.checked_mul(k)?)?;
            self.zone.resolve(clock)
        };
        let second = second.checked_add(seconds)?;
        (Timestamp::MIN.as_second()..=Timestamp::MAX.as_second()).contains(&second).then_some(second)
    }

    /// The least k whose occurrence is not before a second.
    fn index_at_or_after(&self, second: i64) -> Option<i64> {
        if self.first > self.last {
            return None;
        }
        let Some(step) = self.step else { return (self.anchor >= second).then_some(0) };
        // Months and years are of their average length, which is never off by more than some days.
        let average = step.months * 2_629_746 + step.days * DAY + step.seconds;
        let guess = (second - self.anchor).div_euclid(average.max(1));
        let (mut low, mut high) = (self.clamp(guess - 3), self.clamp(guess + 3));
        let mut reach = 4;
        while low > self.first && self.is_at_or_after(low, second) {
            low = self.clamp(low - reach);
            reach *= 2;
        }
        while high < self.last && !self.is_at_or_after(high, second) {
            high = self.clamp(high + reach);
            reach *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.is_at_or_after(middle, second) { high = middle } else { low = middle + 1 }
        }
        self.is_at_or_after(low, second).then_some(low)
    }

    fn clamp(&self, k: i64) -> i64 {
        k.clamp(self.first, self.last)
    }

    fn is_at_or_after(&self, k: i64, second: i64) -> bool {
        self.at(k).map_or(k > 0, |found| found >= second)
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("R")?;
        if let Some(count) = self.count {
            write!(f, "{count}")?;
        }
        let in_gap = self.civil != self.zone.clock_at(self.anchor);
        let anchor = if in_gap { show_civil(self.civil) } else { self.zone.show(self.anchor) };
        match (self.step, self.anchor_is) {
            (None, _) => write!(f, "/{anchor}"),
            (Some(step), AnchorIs::First) => write!(f, "/{anchor}/{step}"),
            (Some(step), AnchorIs::Last) => write!(f, "/{step}/{anchor}"),
        }
    }
}
