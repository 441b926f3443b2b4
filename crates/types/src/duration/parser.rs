//! Reads durations in Go style and in ISO 8601.

use super::{DurationError, NANOS_PER_SECOND};

/// Digits of a fraction that are looked at; finer than a nanosecond of the largest unit.
const MAX_FRACTION_DIGITS: usize = 18;

/// The nanoseconds a text without a minus sign stands for.
pub fn nanos(text: &str) -> Result<u128, DurationError> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let parsed = match unsigned.strip_prefix('P') {
        Some(iso) => parse_iso(iso),
        None => parse_go(unsigned),
    };
    parsed.map_err(|refusal| match refusal {
        Refusal::Malformed => DurationError::Malformed(text.to_owned()),
        Refusal::Because(error) => error,
    })
}

/// Why parsing stopped; `Malformed` gets the whole text added by the caller.
enum Refusal {
    Malformed,
    Because(DurationError),
}

impl From<DurationError> for Refusal {
    fn from(error: DurationError) -> Self {
        Self::Because(error)
    }
}

fn parse_go(text: &str) -> Result<u128, Refusal> {
    let (only, after) = Number::split(text, &['.']).ok_or(Refusal::Malformed)?;
    if after.is_empty() {
        return if only.has_fraction() {
            Err(DurationError::NoUnit(text.to_owned()).into())
        } else {
            Ok(only.times(NANOS_PER_SECOND)?)
        };
    }
    let mut total = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = Number::split(rest, &['.']).ok_or(Refusal::Malformed)?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        total = add(total, number.times(go_unit(unit)?)?)?;
        rest = next;
    }
    Ok(total)
}

fn go_unit(unit: &str) -> Result<u128, Refusal> {
    Ok(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3_600 * NANOS_PER_SECOND,
        "d" => 86_400 * NANOS_PER_SECOND,
        "" => return Err(Refusal::Malformed),
        _ => return Err(DurationError::UnknownUnit(unit.to_owned()).into()),
    })
}

/// ISO 8601 designators with their seconds, in the order they may come in; none where the length is not fixed.
const ISO_DATE: &[(char, Option<u128>)] =
    &[('Y', None), ('M', None), ('W', Some(7 * 86_400)), ('D', Some(86_400))];
const ISO_CLOCK: &[(char, Option<u128>)] = &[('H', Some(3_600)), ('M', Some(60)), ('S', Some(1))];

/// Reads what follows the `P`: parts in falling order, a fraction only in the last.
fn parse_iso(text: &str) -> Result<u128, Refusal> {
    let (date, clock) = match text.split_once('T') {
        Some((date, clock)) if !clock.is_empty() => (date, clock),
        None if !text.is_empty() => (text, ""),
        _ => return Err(Refusal::Malformed),
    };
    let mut total = 0;
    let mut fraction_seen = false;
    for (mut rest, mut designators) in [(date, ISO_DATE), (clock, ISO_CLOCK)] {
        while !rest.is_empty() {
            let (number, after) = Number::split(rest, &['.', ',']).ok_or(Refusal::Malformed)?;
            if fraction_seen {
                return Err(Refusal::Malformed);
            }
            fraction_seen = number.has_fraction();
            let mut characters = after.chars();
            let designator = characters.next();
            let place = designators.iter().position(|(name, _)| designator == Some(*name));
            let place = place.ok_or(Refusal::Malformed)?;
            let seconds = designators[place].1.ok_or(DurationError::NoFixedLength)?;
            total = add(total, number.times(seconds * NANOS_PER_SECOND)?)?;
            designators = &designators[place + 1..];
            rest = characters.as_str();
        }
    }
    Ok(total)
}

fn add(total: u128, part: u128) -> Result<u128, DurationError> {
    total.checked_add(part).ok_or(DurationError::TooLong)
}

/// A decimal number as written.
struct Number<'a> {
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Number<'a> {
    /// Splits a number off the front; at least one digit before or after the point.
    fn split(text: &'a str, points: &[char]) -> Option<(Self, &'a str)> {
        let (whole, rest) = split_digits(text);
        let (fraction, rest) = match rest.strip_prefix(points) {
            Some(after) => split_digits(after),
            None => ("", rest),
        };
        (!whole.is_empty() || !fraction.is_empty()).then_some((Self { whole, fraction }, rest))
    }

    fn has_fraction(&self) -> bool {
        !self.fraction.is_empty()
    }

    /// This number of units, in nanoseconds; what is finer is cut off.
    fn times(&self, unit: u128) -> Result<u128, DurationError> {
        let whole = to_number(self.whole).ok_or(DurationError::TooLong)?;
        let mut place = 1;
        let mut fraction = 0;
        for digit in self.fraction.bytes().take(MAX_FRACTION_DIGITS) {
            place *= 10;
            fraction = fraction * 10 + u128::from(digit - b'0');
        }
        whole
            .checked_mul(unit)
            .and_then(|whole| whole.checked_add(fraction * unit / place))
            .ok_or(DurationError::TooLong)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The number a run of digits stands for; none is zero. `None` if it does not fit.
fn to_number(digits: &str) -> Option<u128> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}
