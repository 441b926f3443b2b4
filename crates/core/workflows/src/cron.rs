//! Cron: five fields (minute, hour, day of month, month, day of week) or six (a second before them), names, lists, ranges,
//! steps, `L`, `n#k`, and `@daily` and its like.
//!
//! If both days are restricted, either is enough; a day field that begins with `*` is not restricted. A fixed time of day
//! follows the rules of [`crate::time_spec`] for changes of the clock; when minute or hour begin with `*`, every moment at
//! which the clock shows a matching time is an occurrence.

mod day_rule;
mod parse;

use std::fmt;

use crate::time_spec::zone::Zone;
use crate::time_spec::{TimeSpecError, civil_parts, days_of_date};
use day_rule::DayRule;

/// Months looked at before it is clear that a day never comes: the calendar repeats after 400 years.
const MONTHS: i64 = 400 * 12;
const DAY: i64 = 86_400;

/// Times that fields say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    /// One bit for each second, minute and hour.
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: DayRule,
    /// Minute or hour begin with a star.
    is_elapsed: bool,
    text: String,
}

impl Cron {
    /// Reads a text. What never comes, such as 30 February, is refused.
    pub fn parse(text: &str) -> Result<Self, TimeSpecError> {
        parse::parse(text)
    }

    /// The first at this second or later.
    pub fn next_at_or_after(&self, zone: &Zone, second: i64) -> Option<i64> {
        if !self.is_elapsed || !zone.changes() {
            return self.next_civil(zone.reached_by(second - 1) + 1).map(|civil| zone.resolve(civil));
        }
        let mut from = second;
        loop {
            // Between two changes of the clock, what it shows and elapsed time go together.
            let offset = zone.offset_at(from);
            let found = self.next_civil(from + offset)? - offset;
            match zone.change_after(from) {
                Some(change) if change <= found => from = change,
                _ => return Some(found),
            }
        }
    }

    /// How many are in `(after, upto]`.
    pub fn count_between(&self, zone: &Zone, after: i64, upto: i64) -> u64 {
        if !self.is_elapsed || !zone.changes() {
            return self.count_civil(zone.reached_by(after), zone.reached_by(upto));
        }
        let (mut from, mut count) = (after, 0);
        loop {
            let offset = zone.offset_at(from + 1);
            let end = zone.change_after(from + 1).map_or(upto, |change| upto.min(change - 1));
            count += self.count_civil(from + offset, end + offset);
            if end >= upto {
                return count;
            }
            from = end;
        }
    }

    /// The first civil second at or after one that matches.
    fn next_civil(&self, civil: i64) -> Option<i64> {
        let (year, month, day, second) = civil_parts(civil);
        let start = year * 12 + month - 1;
        for index in start..start + MONTHS {
            let (year, month) = (index.div_euclid(12), index.rem_euclid(12) + 1);
            if year > 9999 {
                return None;
            }
            let mut days = self.days.days_of_month(year, month);
            if index == start {
                days &= u32::MAX << day;
            }
            while days != 0 {
                let candidate = i64::from(days.trailing_zeros());
                days &= days - 1;
                let is_today = index == start && candidate == day;
                let time = self.next_time(if is_today { second } else { 0 });
                if let Some(time) = time {
                    return Some(days_of_date(year, month, candidate) * DAY + time);
                }
            }
        }
        None
    }

    /// The first second of the day at or after one that matches.
    fn next_time(&self, second: i64) -> Option<i64> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let first_minute = next_bit(self.minutes, 0)?;
        let first_second = next_bit(self.seconds, 0)?;
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = next_bit(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = next_bit(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first_second);
            }
        }
        Some(next_bit(self.hours, hour + 1)? * 3600 + first_minute * 60 + first_second)
    }

    /// How many civil seconds in `(after, upto]` match.
    fn count_civil(&self, after: i64, upto: i64) -> u64 {
        if after >= upto {
            return 0;
        }
        (self.count_months(after, upto) + self.count_to(upto)).saturating_sub(self.count_to(after))
    }

    /// How many match in the month of a civil second, up to it.
    fn count_to(&self, civil: i64) -> u64 {
        let (year, month, day, second) = civil_parts(civil);
        let days = self.days.days_of_month(year, month);
        let before = days & !(u32::MAX << day);
        let today = if days >> day & 1 == 1 { self.count_times(second) } else { 0 };
        u64::from(before.count_ones()) * self.times_per_day() + today
    }

    /// How many match in the months from that of `after` until before that of `upto`.
    fn count_months(&self, after: i64, upto: i64) -> u64 {
        let index = |civil: i64| {
            let (year, month, ..) = civil_parts(civil);
            year * 12 + month - 1
        };
        let days = (index(after)..index(upto)).map(|index| {
            u64::from(self.days.days_of_month(index.div_euclid(12), index.rem_euclid(12) + 1).count_ones())
        });
        days.sum::<u64>() * self.times_per_day()
    }

    fn times_per_day(&self) -> u64 {
        [self.hours, self.minutes, self.seconds].map(|bits| u64::from(bits.count_ones())).iter().product()
    }

    /// How many times of day are not after a second of the day.
    fn count_times(&self, second: i64) -> u64 {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let below = |bits: u64, end: i64| u64::from((bits & !(u64::MAX << end)).count_ones());
        let all = |bits: u64| u64::from(bits.count_ones());
        let mut count = below(self.hours, hour) * all(self.minutes) * all(self.seconds);
        if self.hours >> hour & 1 == 1 {
            count += below(self.minutes, minute) * all(self.seconds);
            if self.minutes >> minute & 1 == 1 {
                count += below(self.seconds, second + 1);
            }
        }
        count
    }
}

/// The first bit that is set at a place or above.
fn next_bit(bits: u64, from: i64) -> Option<i64> {
    let left = if from > 63 { 0 } else { bits & u64::MAX << from };
    (left != 0).then(|| i64::from(left.trailing_zeros()))
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
