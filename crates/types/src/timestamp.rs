//! Instants: [`Timestamp`] to the second and [`MicroTimestamp`] to the microsecond, as Kubernetes writes them, and
//! [`MilliTimestamp`] to the millisecond, for attempts, many of which take less than a second.
//!
//! All read any RFC 3339 text (offsets, fractions) and write one form, in UTC. What is finer than the type
//! keeps is cut off. The range is from the year 0 to 9999-12-30T22:00:00Z, the last instant that can be shown
//! in every time zone.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::decode_text::decode_text;
use crate::duration::Duration;

/// Longest text read; more than any sensible fraction needs.
const MAX_CHARACTERS: usize = 64;
const FIRST_SECOND: i64 = -62_167_219_200;
const LAST_SECOND: i64 = 253_402_207_200;

/// An instant with whole seconds: `2026-11-15T14:00:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

/// An instant with milliseconds: `2026-11-15T14:00:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MilliTimestamp(jiff::Timestamp);

/// An instant with microseconds: `2026-11-15T14:00:00.000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTimestamp(jiff::Timestamp);

/// Why a text is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimestampError {
    /// Not RFC 3339, or a date or time that does not exist.
    #[error("{0:?} is not an RFC 3339 timestamp such as 2026-11-15T14:00:00Z")]
    Malformed(String),
    /// More text than any timestamp needs.
    #[error("a timestamp has at most {MAX_CHARACTERS} characters")]
    TooManyCharacters,
    /// An instant that cannot be kept.
    #[error("a timestamp must lie between 0000-01-01T00:00:00Z and 9999-12-30T22:00:00Z")]
    OutOfRange,
}

impl Timestamp {
    /// The first instant there is.
    pub const MIN: Self = Self(jiff::Timestamp::constant(FIRST_SECOND, 0));
    /// The last instant there is.
    pub const MAX: Self = Self(jiff::Timestamp::constant(LAST_SECOND, 0));

    /// Seconds since 1970, moved into the range from [`Self::MIN`] to [`Self::MAX`].
    pub fn from_second(second: i64) -> Self {
        let second = second.clamp(FIRST_SECOND, LAST_SECOND);
        jiff::Timestamp::from_second(second).map_or(Self::MAX, Self)
    }

    /// Seconds since 1970.
    pub fn as_second(self) -> i64 {
        self.0.as_second()
    }

    /// The second after it. What is kept in whole seconds was a moment before that: a wait that is counted from there is not too short.
    pub fn next_second(self) -> i64 {
        self.as_second().saturating_add(1)
    }

    /// The same instant as jiff knows it.
    pub fn as_jiff(self) -> jiff::Timestamp {
        self.0
    }

    /// This instant moved on by the whole seconds of `duration`, at most to [`Self::MAX`].
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Self::from_second(self.as_second().saturating_add(seconds))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn duration_since(self, earlier: Self) -> Duration {
        let seconds = self.as_second().saturating_sub(earlier.as_second());
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }
}

impl MilliTimestamp {
    /// Milliseconds since 1970, moved into the range of [`Timestamp`].
    pub fn from_millisecond(millisecond: i64) -> Self {
        let millisecond = millisecond.clamp(FIRST_SECOND * 1_000, LAST_SECOND * 1_000);
        jiff::Timestamp::from_millisecond(millisecond).map_or(Self(Timestamp::MAX.0), Self)
    }

    /// Milliseconds since 1970.
    pub fn as_millisecond(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Whole seconds since 1970.
    pub fn as_second(self) -> i64 {
        self.as_millisecond().div_euclid(1_000)
    }

    /// The first whole second that is not before it: a wait that is counted from there is not too short.
    pub fn next_second(self) -> i64 {
        crate::Millis(self.as_millisecond()).next_second()
    }
}

impl MicroTimestamp {
    /// Microseconds since 1970, moved into the range of [`Timestamp`].
    pub fn from_microsecond(microsecond: i64) -> Self {
        let microsecond = microsecond.clamp(FIRST_SECOND * 1_000_000, LAST_SECOND * 1_000_000);
        jiff::Timestamp::from_microsecond(microsecond).map_or(Self(Timestamp::MAX.0), Self)
    }

    /// Microseconds since 1970.
    pub fn as_microsecond(self) -> i64 {
        self.0.as_microsecond()
    }

    /// The same instant as jiff knows it.
    pub fn as_jiff(self) -> jiff::Timestamp {
        self.0
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(instant: jiff::Timestamp) -> Self {
        // jiff counts the fraction away from 1970, so before it the fraction is negative.
        Self::from_second(instant.as_second() - i64::from(instant.subsec_nanosecond() < 0))
    }
}

impl From<jiff::Timestamp> for MilliTimestamp {
    fn from(instant: jiff::Timestamp) -> Self {
        let finer = instant.subsec_nanosecond() % 1_000_000;
        Self::from_millisecond(instant.as_millisecond() - i64::from(finer < 0))
    }
}

impl From<jiff::Timestamp> for MicroTimestamp {
    fn from(instant: jiff::Timestamp) -> Self {
        let finer = instant.subsec_nanosecond() % 1_000;
        Self::from_microsecond(instant.as_microsecond() - i64::from(finer < 0))
    }
}

impl From<Timestamp> for MicroTimestamp {
    fn from(instant: Timestamp) -> Self {
        Self(instant.0)
    }
}

impl From<Timestamp> for MilliTimestamp {
    fn from(instant: Timestamp) -> Self {
        Self(instant.0)
    }
}

impl From<MilliTimestamp> for Timestamp {
    fn from(instant: MilliTimestamp) -> Self {
        Self::from(instant.0)
    }
}

impl From<MicroTimestamp> for Timestamp {
    fn from(instant: MicroTimestamp) -> Self {
        Self::from(instant.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", self.0)
    }
}

impl fmt::Display for MilliTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl fmt::Display for MicroTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text).map(Self::from)
    }
}

impl FromStr for MilliTimestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text).map(Self::from)
    }
}

impl FromStr for MicroTimestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text).map(Self::from)
    }
}

fn parse(text: &str) -> Result<jiff::Timestamp, TimestampError> {
    if text.len() > MAX_CHARACTERS {
        return Err(TimestampError::TooManyCharacters);
    }
    let (local, offset) = parse_rfc3339(text).ok_or_else(|| TimestampError::Malformed(text.to_owned()))?;
    match offset.to_timestamp(local) {
        Ok(instant) if (FIRST_SECOND..=LAST_SECOND).contains(&instant.as_second()) => Ok(instant),
        _ => Err(TimestampError::OutOfRange),
    }
}

/// jiff's own parser takes more than RFC 3339 (missing seconds, zone names), so the form is read here.
fn parse_rfc3339(text: &str) -> Option<(DateTime, Offset)> {
    let mut rest = Rest(text.as_bytes());
    let year = rest.digits(4)?;
    rest.one_of(b"-")?;
    let month = rest.two_digits()?;
    rest.one_of(b"-")?;
    let day = rest.two_digits()?;
    rest.one_of(b"Tt")?;
    let hour = rest.two_digits()?;
    rest.one_of(b":")?;
    let minute = rest.two_digits()?;
    rest.one_of(b":")?;
    let second = rest.two_digits()?;
    let nanosecond = if rest.one_of(b".").is_some() { rest.fraction()? } else { 0 };
    let offset = rest.offset()?;
    let local = DateTime::new(year, month, day, hour, minute, second, nanosecond).ok()?;
    rest.0.is_empty().then_some((local, offset))
}

/// The part of a text that was not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn one_of(&mut self, allowed: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        allowed.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }

    fn digit(&mut self) -> Option<u8> {
        self.one_of(b"0123456789").map(|digit| digit - b'0')
    }

    fn digits(&mut self, count: usize) -> Option<i16> {
        (0..count).try_fold(0, |number: i16, _| number.checked_mul(10)?.checked_add(i16::from(self.digit()?)))
    }

    fn two_digits(&mut self) -> Option<i8> {
        self.digits(2).and_then(|number| i8::try_from(number).ok())
    }

    fn fraction(&mut self) -> Option<i32> {
        let mut place = 100_000_000;
        let mut nanosecond = i32::from(self.digit()?) * place;
        while let Some(digit) = self.digit() {
            place /= 10;
            nanosecond += i32::from(digit) * place;
        }
        Some(nanosecond)
    }

    fn offset(&mut self) -> Option<Offset> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(Offset::UTC),
        };
        let hours = self.digits(2).filter(|hours| *hours < 24)?;
        self.one_of(b":")?;
        let minutes = self.digits(2).filter(|minutes| *minutes < 60)?;
        Offset::from_seconds(sign * (i32::from(hours) * 3_600 + i32::from(minutes) * 60)).ok()
    }
}

/// Each type is one string in JSON and in the schema.
macro_rules! timestamp_in_json {
    ($name:ident, $about:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                decode_text(deserializer, "an RFC 3339 timestamp", Self::from_str)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": "date-time", "description": $about })
            }
        }
    };
}

timestamp_in_json!(Timestamp, "An instant as RFC 3339 text in UTC with whole seconds.");
timestamp_in_json!(MilliTimestamp, "An instant as RFC 3339 text in UTC with milliseconds.");
timestamp_in_json!(MicroTimestamp, "An instant as RFC 3339 text in UTC with microseconds.");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        text.parse::<Timestamp>().map_or_else(|error| error.to_string(), |instant| instant.to_string())
    }

    #[test]
    fn whole_seconds_in_utc_are_written() {
        assert_eq!(read("2026-11-15T14:00:00Z"), "2026-11-15T14:00:00Z");
        assert_eq!(read("2026-11-15t16:30:00.999999999+02:30"), "2026-11-15T14:00:00Z");
        assert_eq!(read("2026-11-15T09:00:00-05:00"), "2026-11-15T14:00:00Z");
        assert_eq!(Timestamp::from_second(0).to_string(), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn fractions_are_cut_off_on_both_sides_of_1970() {
        assert_eq!(read("1969-12-31T23:59:58.7Z"), "1969-12-31T23:59:58Z");
        assert_eq!(read("1970-01-01T00:00:00.7Z"), "1970-01-01T00:00:00Z");
        let micro: MicroTimestamp = "1969-12-31T23:59:59.9999999Z".parse().unwrap();
        assert_eq!(micro.to_string(), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn microseconds_have_six_digits() {
        let micro: MicroTimestamp = "2026-11-15T14:00:00.5Z".parse().unwrap();
        assert_eq!(micro.to_string(), "2026-11-15T14:00:00.500000Z");
        assert_eq!(
            MicroTimestamp::from(Timestamp::from_second(1)).to_string(),
            "1970-01-01T00:00:01.000000Z"
        );
    }

    #[test]
    fn milliseconds_have_three_digits_and_whole_seconds_are_read_too() {
        let read = |text: &str| text.parse::<MilliTimestamp>().unwrap().to_string();
        assert_eq!(read("2026-11-15T14:00:00.0129Z"), "2026-11-15T14:00:00.012Z");
        assert_eq!(read("2026-11-15T14:00:00Z"), "2026-11-15T14:00:00.000Z");
        assert_eq!(read("1969-12-31T23:59:59.9999Z"), "1969-12-31T23:59:59.999Z");
        let instant = MilliTimestamp::from_millisecond(1_250);
        assert_eq!((instant.as_second(), instant.as_millisecond()), (1, 1_250));
        assert_eq!(Timestamp::from(instant), Timestamp::from_second(1));
        assert_eq!(MilliTimestamp::from_millisecond(i64::MAX).to_string(), "9999-12-30T22:00:00.000Z");
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused() {
        for text in [
            "",
            "now",
            "2026-11-15",
            "2026-11-15T14:00Z",
            "2026-11-15T14:00:00",
            "2026-11-15 14:00:00Z",
            "2026-11-15T14:00:00.Z",
            "2026-11-15T14:00:00Z ",
            "2026-11-15T14:00:00+24:00",
            "2026-11-15T14:00:60Z",
            "2026-02-29T14:00:00Z",
            "2026-11-15T14:00:00Z[UTC]",
            "-001-11-15T14:00:00Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError::Malformed(text.to_owned())));
        }
        assert_eq!("9".repeat(65).parse::<Timestamp>(), Err(TimestampError::TooManyCharacters));
    }

    #[test]
    fn the_ends_of_time_are_refused_or_clamped() {
        assert_eq!("9999-12-31T23:59:59Z".parse::<Timestamp>(), Err(TimestampError::OutOfRange));
        assert_eq!("0000-01-01T00:00:00+00:01".parse::<Timestamp>(), Err(TimestampError::OutOfRange));
        assert_eq!(Timestamp::from_second(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_second(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::from(jiff::Timestamp::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from(jiff::Timestamp::MIN), Timestamp::MIN);
        assert_eq!(MicroTimestamp::from(jiff::Timestamp::MIN).as_jiff(), Timestamp::MIN.as_jiff());
        assert_eq!(Timestamp::MIN.to_string(), "0000-01-01T00:00:00Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00Z");
    }

    #[test]
    fn time_between_instants_is_never_negative() {
        let (early, late) = (Timestamp::from_second(10), Timestamp::from_second(100));
        assert_eq!(late.duration_since(early), Duration::from_secs(90));
        assert_eq!(early.duration_since(late), Duration::from_secs(0));
        assert_eq!(early.saturating_add(Duration::from_secs(90)), late);
        assert_eq!(Timestamp::MAX.saturating_add(Duration::from_secs(1)), Timestamp::MAX);
    }

    #[test]
    fn json_is_a_string_and_nothing_else() {
        let instant: Timestamp = serde_json::from_str("\"2026-11-15T14:00:00.25Z\"").unwrap();
        assert_eq!(serde_json::to_string(&instant).unwrap(), "\"2026-11-15T14:00:00Z\"");
        assert!(serde_json::from_str::<Timestamp>("1700000000").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ignored = text.parse::<Timestamp>();
            let _ignored = text.parse::<MicroTimestamp>();
        }

        #[test]
        fn almost_timestamps_are_read_or_refused(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.0-9]{0,12}[Z+-][0-9:]{0,5}") {
            let _ignored = text.parse::<Timestamp>();
        }

        #[test]
        fn what_is_written_reads_back(second in FIRST_SECOND..=LAST_SECOND, micro in any::<i64>()) {
            let instant = Timestamp::from_second(second);
            prop_assert_eq!(instant.as_second(), second);
            prop_assert_eq!(instant.to_string().parse(), Ok(instant));
            let instant = MilliTimestamp::from_millisecond(micro);
            prop_assert_eq!(instant.to_string().parse(), Ok(instant));
            let instant = MicroTimestamp::from_microsecond(micro);
            prop_assert_eq!(instant.to_string().parse(), Ok(instant));
        }
    }
}
