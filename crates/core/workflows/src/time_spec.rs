//! When a schedule runs: ISO 8601 repeating intervals and cron, read in a time zone.
//!
//! A [`TimeSpec`] is what the text says; [`TimeSpec::starting`] anchors it at the creation of its schedule and gives the
//! [`Occurrences`], which are computed and never walked through: ten years of missed minutes cost no more than one.
//!
//! Rules:
//! - `Rn` is n runs in all; `R` and `R-1` have no end; `R0` never runs.
//! - A start without a date is the first such time at or after creation; without a start, creation is the start.
//! - Calendar steps (years, months, weeks, days) are taken from the start on the wall clock of the zone, and a day that a
//!   month does not have is its last day: 31 January, 28 February, 31 March. Hours, minutes and seconds are elapsed time.
//! - A wall-clock time that a change of the clocks leaves out runs at the first moment after the gap, that day alone, and one that occurs
//!   twice runs the first time. Cron whose minute or hour begins with `*` follows elapsed time instead: it runs at every
//!   moment the clock shows a matching time.

mod calendar;
mod interval;
mod iso_duration;
mod iso_point;
mod series;
mod text_cursor;
pub mod zone;

use muster_types::Timestamp;
use thiserror::Error;

use crate::cron::Cron;
pub(crate) use calendar::{civil_parts, days_in_month, days_of_date};
use interval::Interval;
use series::Series;
use zone::Zone;

/// Longest text read.
const MAX_CHARACTERS: usize = 256;

/// Why a text says no times.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeSpecError {
    /// The text is wrong at a place.
    #[error("at character {position}: {reason}")]
    Malformed {
        /// Which character, from 1.
        position: usize,
        /// What is wrong, and what to write instead.
        reason: String,
    },
    /// There is no such zone.
    #[error("{0:?} is not an IANA time zone such as Europe/Berlin")]
    UnknownZone(String),
    /// More text than any time needs.
    #[error("a timeSpec has at most {MAX_CHARACTERS} characters")]
    TooManyCharacters,
}

impl TimeSpecError {
    pub(crate) fn at(position: usize, reason: impl Into<String>) -> Self {
        Self::Malformed { position, reason: reason.into() }
    }
}

/// The times that a text says.
#[derive(Debug, Clone)]
pub struct TimeSpec {
    form: Form,
    zone: Zone,
}

#[derive(Debug, Clone)]
enum Form {
    Interval(Interval),
    Cron(Box<Cron>),
}

/// The times at which a schedule runs. All are whole seconds.
#[derive(Debug, Clone)]
pub struct Occurrences(Times);

#[derive(Debug, Clone)]
enum Times {
    Series(Series),
    Cron(Box<Cron>, Zone),
}

impl TimeSpec {
    /// Reads a text; an empty zone is UTC.
    pub fn parse(text: &str, zone: &str) -> Result<Self, TimeSpecError> {
        if text.len() > MAX_CHARACTERS {
            return Err(TimeSpecError::TooManyCharacters);
        }
        let zone = Zone::named(zone).ok_or_else(|| TimeSpecError::UnknownZone(zone.to_owned()))?;
        if text.trim().is_empty() {
            return Err(TimeSpecError::at(1, "it is empty; write for example R/T01:00:00/P1D or 0 1 * * *"));
        }
        let is_cron = text.starts_with('@') || text.contains(char::is_whitespace);
        let form = if is_cron {
            Form::Cron(Box::new(Cron::parse(text)?))
        } else {
            Form::Interval(Interval::parse(text)?)
        };
        Ok(Self { form, zone })
    }

    /// The occurrences for a schedule that was made then.
    pub fn starting(&self, created: Timestamp) -> Occurrences {
        Occurrences(match &self.form {
            Form::Interval(interval) => Times::Series(interval.anchor(&self.zone, created.as_second())),
            Form::Cron(cron) => Times::Cron(cron.clone(), self.zone.clone()),
        })
    }

    /// The zone the times are read in.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }
}

impl Occurrences {
    /// The first at this time or later.
    pub fn next_at_or_after(&self, time: Timestamp) -> Option<Timestamp> {
        self.next(time.as_second()).map(Timestamp::from_second)
    }

    /// The first later than this time.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        self.next(time.as_second().checked_add(1)?).map(Timestamp::from_second)
    }

    /// The last at this time or earlier, but not before `floor`.
    pub fn last_between(&self, floor: Timestamp, time: Timestamp) -> Option<Timestamp> {
        let (mut low, mut high) = (self.next_at_or_after(floor)?.as_second(), time.as_second());
        if low > high {
            return None;
        }
        // The next one from x on is not too late exactly if x is not behind the last one.
        while low < high {
            let middle = high - (high - low) / 2;
            match self.next(middle).filter(|next| *next <= time.as_second()) {
                Some(next) => low = next,
                None => high = middle - 1,
            }
        }
        Some(Timestamp::from_second(low))
    }

    /// How many are later than `after` and not later than `upto`. Several that a gap in the clock makes one count as
    /// several.
    pub fn count_between(&self, after: Timestamp, upto: Timestamp) -> u64 {
        let (after, upto) = (after.as_second(), upto.as_second());
        if after >= upto {
            return 0;
        }
        match &self.0 {
            Times::Series(series) => series.count_between(after, upto),
            Times::Cron(cron, zone) => cron.count_between(zone, after, upto),
        }
    }

    /// The n-th of all, from 0, counted from the start, whether before creation or not. `None` if there is no such one,
    /// and for cron, which has no start.
    pub fn nth(&self, n: u64) -> Option<Timestamp> {
        match &self.0 {
            Times::Series(series) => series.nth(n).map(Timestamp::from_second),
            Times::Cron(..) => None,
        }
    }

    /// How many are later than `time`; `None` if there is no end to them.
    pub fn remaining_after(&self, time: Timestamp) -> Option<u64> {
        match &self.0 {
            Times::Series(series) => series.remaining_after(time.as_second()),
            Times::Cron(..) => None,
        }
    }

    /// How the text was understood; read again, it says the same times.
    pub fn normal_form(&self) -> String {
        match &self.0 {
            Times::Series(series) => series.to_string(),
            Times::Cron(cron, _) => cron.to_string(),
        }
    }

    fn next(&self, second: i64) -> Option<i64> {
        let found = match &self.0 {
            Times::Series(series) => series.next_at_or_after(second),
            Times::Cron(cron, zone) => cron.next_at_or_after(zone, second),
        };
        found.filter(|second| (Timestamp::MIN.as_second()..=Timestamp::MAX.as_second()).contains(second))
    }
}
