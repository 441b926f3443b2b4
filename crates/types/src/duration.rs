//! Lengths of time as users write them.
//!
//! Read: Go style (`90s`, `1h30m`, `1.5h`, `500ms`; units ns, us, µs, ms, s, m, h, and d for 24 hours), ISO 8601
//! (`PT2M`, `P1DT12H`, `P2W`) and a bare whole number of seconds, in quotes or not. Years and months are refused
//! because they have no fixed length; negative lengths are refused.
//!
//! Written: the shortest Go style. Hours and minutes are whole, the last part may have a fraction, parts that are
//! zero are left out, and nothing is `0s`: `72h`, `1m30s`, `1.5s`, `1m500ms`.

mod parser;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::decode_text::decode_text_or_number;

/// Longest text read.
const MAX_CHARACTERS: usize = 64;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A length of time from nothing to 100 years, to the nanosecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(time::Duration);

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DurationError {
    /// Neither of the accepted forms.
    #[error("{0:?} is not a duration such as 90s, 1h30m or PT2M")]
    Malformed(String),
    /// More text than any duration needs.
    #[error("a duration has at most {MAX_CHARACTERS} characters")]
    TooManyCharacters,
    /// Below zero.
    #[error("a duration must not be negative")]
    Negative,
    /// Above the limit.
    #[error("a duration must not be longer than 100 years (876600h)")]
    TooLong,
    /// A number with a fraction and no unit.
    #[error("{0:?} has no unit, write {0}s for seconds")]
    NoUnit(String),
    /// A unit there is not.
    #[error("{0:?} is not a unit of time, use ns, us, ms, s, m, h or d")]
    UnknownUnit(String),
    /// Years or months.
    #[error("years and months have no fixed length, use days or weeks")]
    NoFixedLength,
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(time::Duration::ZERO);
    /// 100 years of 365.25 days.
    pub const MAX: Self = Self(time::Duration::from_hours(36_525 * 24));

    /// Whole seconds, at most [`Self::MAX`].
    pub const fn from_secs(seconds: u64) -> Self {
        if seconds > Self::MAX.0.as_secs() { Self::MAX } else { Self(time::Duration::from_secs(seconds)) }
    }

    /// Whole milliseconds, at most [`Self::MAX`].
    pub const fn from_millis(milliseconds: u64) -> Self {
        if milliseconds / 1_000 >= Self::MAX.0.as_secs() {
            Self::MAX
        } else {
            Self(time::Duration::from_millis(milliseconds))
        }
    }

    /// Whole seconds in it; the rest is cut off.
    pub const fn as_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// Whole seconds, rounded up: a wait of so many is not shorter than what was asked for.
    pub fn seconds_rounded_up(self) -> i64 {
        i64::try_from(self.0.as_nanos().div_ceil(NANOS_PER_SECOND)).unwrap_or(i64::MAX)
    }

    /// True if it is no time at all, which several fields read as "no limit".
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// The same length as the standard library knows it.
    pub const fn as_std(self) -> time::Duration {
        self.0
    }

    fn from_nanos(nanos: u128) -> Result<Self, DurationError> {
        if nanos > Self::MAX.0.as_nanos() {
            return Err(DurationError::TooLong);
        }
        let seconds = u64::try_from(nanos / NANOS_PER_SECOND).map_err(|_| DurationError::TooLong)?;
        let rest = u32::try_from(nanos % NANOS_PER_SECOND).map_err(|_| DurationError::TooLong)?;
        Ok(Self(time::Duration::new(seconds, rest)))
    }
}

impl From<Duration> for time::Duration {
    fn from(duration: Duration) -> Self {
        duration.0
    }
}

impl TryFrom<time::Duration> for Duration {
    type Error = DurationError;

    fn try_from(duration: time::Duration) -> Result<Self, DurationError> {
        Self::from_nanos(duration.as_nanos())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        match (seconds, nanos) {
            (0, 0) if self.is_zero() => f.write_str("0s"),
            (0, 0) => Ok(()),
            (0, 1..1_000) => write!(f, "{nanos}ns"),
            (0, 1_000..1_000_000) => write_part(f, nanos / 1_000, nanos % 1_000, 3, "us"),
            (0, _) => write_part(f, nanos / 1_000_000, nanos % 1_000_000, 6, "ms"),
            _ => write_part(f, seconds, nanos, 9, "s"),
        }
    }
}

/// Writes `whole.fraction unit`, the fraction without its trailing zeros.
fn write_part(
    f: &mut fmt::Formatter<'_>,
    whole: impl fmt::Display,
    mut fraction: u32,
    mut digits: usize,
    unit: &str,
) -> fmt::Result {
    if fraction == 0 {
        return write!(f, "{whole}{unit}");
    }
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        digits -= 1;
    }
    write!(f, "{whole}.{fraction:0digits$}{unit}")
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        if text.len() > MAX_CHARACTERS {
            return Err(DurationError::TooManyCharacters);
        }
        if text.starts_with('-') {
            return Err(DurationError::Negative);
        }
        Self::from_nanos(parser::nanos(text)?)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode_text_or_number(deserializer, "a duration such as 90s, 1h30m or PT2M", Self::from_str)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "x-kubernetes-int-or-string": true,
            "description": "A length of time such as 90s, 1h30m or PT2M; a bare whole number is seconds.",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        text.parse::<Duration>().map_or_else(|error| error.to_string(), |duration| duration.to_string())
    }

    #[test]
    fn seconds_of_a_wait_are_rounded_up() {
        let rounded = |text: &str| text.parse::<Duration>().map(Duration::seconds_rounded_up);
        assert_eq!(
            [rounded("0"), rounded("1ns"), rounded("1500ms"), rounded("2s")],
            [Ok(0), Ok(1), Ok(2), Ok(2)]
        );
        assert_eq!(Duration::MAX.seconds_rounded_up(), 36_525 * 24 * 3_600);
    }

    #[test]
    fn go_style_is_read_and_written_in_its_shortest_form() {
        for (text, written) in [
            ("90s", "1m30s"),
            ("2m", "2m"),
            ("72h", "72h"),
            ("3d", "72h"),
            ("1h30m", "1h30m"),
            ("1.5h", "1h30m"),
            (".5h", "30m"),
            ("5.s", "5s"),
            ("500ms", "500ms"),
            ("0.5s", "500ms"),
            ("1.5s", "1.5s"),
            ("1m500ms", "1m500ms"),
            ("61.25s", "1m1.25s"),
            ("1.5ms", "1.5ms"),
            ("10us", "10us"),
            ("10\u{b5}s", "10us"),
            ("10\u{3bc}s", "10us"),
            ("1500ns", "1.5us"),
            ("7ns", "7ns"),
            ("1.000000007s", "1.000000007s"),
            ("0.9999999999ns", "0s"),
            ("+5m", "5m"),
            ("0", "0s"),
            ("0h", "0s"),
        ] {
            assert_eq!(read(text), written, "{text}");
        }
    }

    #[test]
    fn iso_8601_is_read() {
        for (text, written) in [
            ("PT2M", "2m"),
            ("P1DT12H", "36h"),
            ("P2W", "336h"),
            ("PT0S", "0s"),
            ("PT1.5S", "1.5s"),
            ("PT1,5H", "1h30m"),
            ("P1W1D", "192h"),
            ("PT1H30M", "1h30m"),
        ] {
            assert_eq!(read(text), written, "{text}");
        }
    }

    #[test]
    fn a_bare_whole_number_is_seconds() {
        assert_eq!(read("90"), "1m30s");
        for (json, written) in
            [("90", "\"1m30s\""), ("\"90\"", "\"1m30s\""), ("0", "\"0s\""), ("90.0", "\"1m30s\"")]
        {
            let duration: Duration = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&duration).unwrap(), written);
        }
        assert_eq!(read("1.5"), "\"1.5\" has no unit, write 1.5s for seconds");
    }

    #[test]
    fn negative_lengths_are_refused_with_words() {
        for text in ["-1s", "-PT2M", "-5", "-"] {
            assert_eq!(text.parse::<Duration>(), Err(DurationError::Negative));
        }
        let error = serde_json::from_str::<Duration>("-5").unwrap_err();
        assert!(error.to_string().starts_with("a duration must not be negative"));
    }

    #[test]
    fn years_and_months_are_refused_with_words() {
        for text in ["P1Y", "P1M", "P1Y2D", "P3MT1H"] {
            assert_eq!(text.parse::<Duration>(), Err(DurationError::NoFixedLength), "{text}");
        }
    }

    #[test]
    fn too_long_is_refused() {
        assert_eq!(Duration::MAX.to_string(), "876600h");
        assert_eq!(read("876600h"), "876600h");
        for text in [
            "876600h1ns",
            "36526d",
            "P99999999W",
            &"9".repeat(64),
            "340282366920938463463374607431768211456h",
        ] {
            assert_eq!(text.parse::<Duration>(), Err(DurationError::TooLong), "{text}");
        }
        assert_eq!("1".repeat(65).parse::<Duration>(), Err(DurationError::TooManyCharacters));
        assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!(Duration::from_millis(u64::MAX), Duration::MAX);
        assert_eq!(Duration::try_from(time::Duration::MAX), Err(DurationError::TooLong));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "", "+", ".", "s", "1h2", " 1h", "P", "PT", "P1", "P1DT", "PT1S1M", "PT1.5H1M", "P1S", "PT1W",
            "PTé",
        ] {
            assert_eq!(text.parse::<Duration>(), Err(DurationError::Malformed(text.to_owned())), "{text}");
        }
        assert_eq!("3 weeks".parse::<Duration>(), Err(DurationError::UnknownUnit(" weeks".to_owned())));
        assert_eq!("1h ".parse::<Duration>(), Err(DurationError::UnknownUnit("h ".to_owned())));
        assert!(serde_json::from_str::<Duration>("true").is_err());
        assert!(serde_json::from_str::<Duration>("1e300").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ignored = text.parse::<Duration>();
        }

        #[test]
        fn almost_durations_are_read_or_refused(text in "[+-]?P?([0-9.,]{0,5}[TYMWDHSnuµmshd]{1,2}){0,6}") {
            let _ignored = text.parse::<Duration>();
        }

        #[test]
        fn what_is_written_reads_back(seconds in 0..Duration::MAX.as_secs(), nanos in 0..1_000_000_000_u32) {
            let duration = Duration::try_from(time::Duration::new(seconds, nanos)).unwrap();
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
            let json = serde_json::to_string(&duration).unwrap();
            prop_assert_eq!(serde_json::from_str::<Duration>(&json).unwrap(), duration);
        }
    }
}
