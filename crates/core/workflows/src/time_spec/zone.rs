//! Time zones: from moments to what the clock shows, and back.
//!
//! The rules come with the program, so that an occurrence is the same on every machine.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use super::calendar::{DAY, civil_parts, show_civil};

/// A zone, or a fixed distance from UTC.
#[derive(Debug, Clone)]
pub struct Zone(Rules);

#[derive(Debug, Clone)]
enum Rules {
    Fixed(i64),
    Changing(TimeZone),
}

impl Zone {
    /// No distance from UTC.
    pub const UTC: Self = Self(Rules::Fixed(0));

    /// The zone of an IANA name; an empty name is UTC.
    pub fn named(name: &str) -> Option<Self> {
        if name.is_empty() || name.eq_ignore_ascii_case("utc") || name == "Z" {
            return Some(Self::UTC);
        }
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        let changes = zone.following(jiff::Timestamp::MIN).next().is_some();
        let offset = i64::from(zone.to_offset(jiff::Timestamp::UNIX_EPOCH).seconds());
        Some(if changes { Self(Rules::Changing(zone)) } else { Self::fixed(offset) })
    }

    /// So many seconds before UTC.
    pub fn fixed(offset: i64) -> Self {
        Self(Rules::Fixed(offset))
    }

    /// True if days may be longer or shorter than 24 hours.
    pub fn changes(&self) -> bool {
        matches!(self.0, Rules::Changing(_))
    }

    /// Seconds between UTC and the clock at a moment.
    pub fn offset_at(&self, second: i64) -> i64 {
        match &self.0 {
            Rules::Fixed(offset) => *offset,
            Rules::Changing(zone) => {
                moment(second).map_or(0, |moment| i64::from(zone.to_offset(moment).seconds()))
            }
        }
    }

    /// What the clock shows at a moment, in civil seconds.
    pub fn clock_at(&self, second: i64) -> i64 {
        second + self.offset_at(second)
    }

    /// The moment at which the clock shows a time: the first if there are two, the end of the gap if there is none.
    pub fn resolve(&self, civil: i64) -> i64 {
        let zone = match &self.0 {
            Rules::Fixed(offset) => return civil - offset,
            Rules::Changing(zone) => zone,
        };
        let Some(local) = date_time(civil) else { return civil };
        let seconds = |offset: Offset| i64::from(offset.seconds());
        match zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => civil - seconds(offset),
            AmbiguousOffset::Fold { before, .. } => civil - seconds(before),
            AmbiguousOffset::Gap { before, .. } => {
                let inside = civil - seconds(before);
                self.change_before(inside + 1).unwrap_or(inside)
            }
        }
    }

    /// What the clock shows at a moment, with its distance from UTC.
    pub fn show(&self, second: i64) -> String {
        let offset = self.offset_at(second);
        let mut shown = show_civil(second + offset);
        if offset == 0 {
            shown.push('Z');
        } else {
            let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.abs());
            shown += &format!("{sign}{:02}:{:02}", size / 3600, size / 60 % 60);
        }
        shown
    }

    /// The first moment after this one at which the clock is changed.
    pub fn change_after(&self, second: i64) -> Option<i64> {
        let Rules::Changing(zone) = &self.0 else { return None };
        zone.following(moment(second)?).next().map(|change| change.timestamp().as_second())
    }

    /// The latest time the clock has shown for the first time, up to a moment. It differs from [`Self::clock_at`] only
    /// while an hour is repeated.
    pub fn reached_by(&self, second: i64) -> i64 {
        let shown = self.clock_at(second);
        if !self.changes() {
            return shown;
        }
        match self.change_before(second + 1) {
            Some(change) if second - change < DAY => {
                let before = change - 1 + self.offset_at(change - 1);
                shown.max(before)
            }
            _ => shown,
        }
    }

    fn change_before(&self, second: i64) -> Option<i64> {
        let Rules::Changing(zone) = &self.0 else { return None };
        zone.preceding(moment(second)?).next().map(|change| change.timestamp().as_second())
    }
}

fn moment(second: i64) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(second).ok()
}

fn date_time(civil: i64) -> Option<DateTime> {
    let (year, month, day, second) = civil_parts(civil);
    let small = |number: i64| i8::try_from(number).ok();
    DateTime::new(
        i16::try_from(year).ok()?,
        small(month)?,
        small(day)?,
        small(second / 3600)?,
        small(second / 60 % 60)?,
        small(second % 60)?,
        0,
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_spec::days_of_date;

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    fn civil(year: i64, month: i64, day: i64, hour: i64, minute: i64) -> i64 {
        days_of_date(year, month, day) * DAY + hour * 3600 + minute * 60
    }

    fn utc(zone: &Zone, civil: i64) -> String {
        show_civil(zone.resolve(civil))
    }

    #[test]
    fn a_time_that_is_left_out_is_the_end_of_the_gap() {
        let zone = berlin();
        assert_eq!(utc(&zone, civil(2026, 3, 29, 1, 59)), "2026-03-29T00:59:00");
        assert_eq!(utc(&zone, civil(2026, 3, 29, 2, 30)), "2026-03-29T01:00:00");
        assert_eq!(utc(&zone, civil(2026, 3, 29, 3, 0)), "2026-03-29T01:00:00");
    }

    #[test]
    fn a_time_that_occurs_twice_is_the_first() {
        let zone = berlin();
        assert_eq!(utc(&zone, civil(2026, 10, 25, 2, 30)), "2026-10-25T00:30:00");
        let second_pass = zone.resolve(civil(2026, 10, 25, 2, 0)) + 3600 + 600;
        assert_eq!(show_civil(zone.clock_at(second_pass)), "2026-10-25T02:10:00");
        assert_eq!(show_civil(zone.reached_by(second_pass)), "2026-10-25T02:59:59");
    }

    #[test]
    fn a_zone_nobody_knows_is_none() {
        assert!(Zone::named("Mars/Olympus").is_none());
        assert!(!Zone::named("").unwrap().changes() && !Zone::named("Etc/GMT+5").unwrap().changes());
        assert_eq!(Zone::named("Etc/GMT+5").unwrap().offset_at(0), -5 * 3600);
    }
}
