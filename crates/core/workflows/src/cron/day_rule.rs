//! Which days the three day fields of cron say.

use crate::time_spec::{days_in_month, days_of_date};

/// Days of the month, months and days of the week, as bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayRule {
    /// Bits 1 to 31.
    pub days: u32,
    /// The last day of the month.
    pub last_day: bool,
    /// The day field begins with a star.
    pub any_day: bool,
    /// Bits 1 to 12.
    pub months: u32,
    /// Bits 0 (Sunday) to 6.
    pub weekdays: u32,
    /// Bits of weekdays of which the last in the month is meant.
    pub last_weekdays: u32,
    /// Weekday and which of the month, from 1.
    pub nth_weekdays: Vec<(u32, u32)>,
    /// The weekday field begins with a star.
    pub any_weekday: bool,
}

impl DayRule {
    /// The days of a month that match, as bits 1 to 31.
    pub fn days_of_month(&self, year: i64, month: i64) -> u32 {
        if self.months >> month & 1 == 0 {
            return 0;
        }
        let length = u32::try_from(days_in_month(year, month)).unwrap_or(31);
        let valid = u32::MAX >> (31 - length) & !1;
        let mut by_day = self.days;
        if self.last_day {
            by_day |= 1 << length;
        }
        let by_day = by_day & valid;
        if self.any_weekday && self.weekdays == 0b111_1111 {
            return by_day;
        }
        let by_weekday = self.by_weekday(year, month, length);
        if self.any_day || self.any_weekday { by_day & by_weekday } else { by_day | by_weekday }
    }

    fn by_weekday(&self, year: i64, month: i64, length: u32) -> u32 {
        // 1 January 1970 was a Thursday.
        let first = u32::try_from((days_of_date(year, month, 1) + 4).rem_euclid(7)).unwrap_or(0);
        let mut found = 0;
        for day in 1..=length {
            let weekday = (first + day - 1) % 7;
            let is_last = day + 7 > length && self.last_weekdays >> weekday & 1 == 1;
            let is_nth = self.nth_weekdays.contains(&(weekday, (day - 1) / 7 + 1));
            if self.weekdays >> weekday & 1 == 1 || is_last || is_nth {
                found |= 1 << day;
            }
        }
        found
    }
}
