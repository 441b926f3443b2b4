//! Amounts of a resource in the Kubernetes quantity notation: `500m`, `256Mi`, `1.5`, `2e3`.
//!
//! The text is kept and written as the user wrote it. Its value is known to the billionth and rounded up beyond
//! that, as in Kubernetes. Two limits are stricter than there, because nothing Muster counts is below zero or
//! needs more places: negative amounts and more than 27 decimal places are refused. What exceeds 2⁶³-1 is
//! refused, not cut down.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::decode_text::decode_text_or_number;

/// Longest text read.
const MAX_CHARACTERS: usize = 64;
/// Places after the point, counting those a suffix or an exponent adds.
const MAX_PLACES: u32 = 27;
const MAX_WHOLE: u128 = i64::MAX as u128;
const NANO: u128 = 1_000_000_000;

/// An amount of cpu, memory or the like. Equal when written the same; compare values with [`Self::milli`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Quantity {
    text: Box<str>,
    nanos: u128,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// Not a number with an optional suffix.
    #[error("{0:?} is not a quantity such as 500m, 256Mi or 1.5")]
    Malformed(String),
    /// More text than any quantity needs.
    #[error("a quantity has at most {MAX_CHARACTERS} characters")]
    TooManyCharacters,
    /// Below zero.
    #[error("a quantity must not be negative")]
    Negative,
    /// Above the limit.
    #[error("a quantity must not exceed 9223372036854775807")]
    TooLarge,
    /// Finer than can be kept.
    #[error("a quantity has at most {MAX_PLACES} decimal places")]
    TooFine,
}

impl Quantity {
    /// Thousandths, such as those of a core, as Kubernetes writes them: `2` or `500m`.
    pub fn of_millis(millis: u64) -> Self {
        let text =
            if millis.is_multiple_of(1000) { (millis / 1000).to_string() } else { format!("{millis}m") };
        Self { text: text.into(), nanos: u128::from(millis) * (NANO / 1_000) }
    }

    /// Bytes as Kubernetes writes them, in the largest unit that says all.
    pub fn of_bytes(count: u64) -> Self {
        let unit = [("Gi", 30), ("Mi", 20), ("Ki", 10)]
            .into_iter()
            .find(|(_, bits)| count > 0 && count.trailing_zeros() >= *bits);
        let text = unit.map_or_else(|| count.to_string(), |(unit, bits)| format!("{}{unit}", count >> bits));
        Self { text: text.into(), nanos: u128::from(count) * NANO }
    }

    /// The value in whole units, rounded up: `1` for `500m`.
    pub fn value(&self) -> u64 {
        // Parsing refused what does not fit.
        u64::try_from(self.nanos.div_ceil(NANO)).unwrap_or(u64::MAX)
    }

    /// The value in thousandths, rounded up: `500` for `500m`.
    pub fn milli(&self) -> u128 {
        self.nanos.div_ceil(NANO / 1_000)
    }

    /// The text as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.len() > MAX_CHARACTERS {
            return Err(QuantityError::TooManyCharacters);
        }
        if text.starts_with('-') {
            return Err(QuantityError::Negative);
        }
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        let malformed = || QuantityError::Malformed(text.to_owned());
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(malformed());
        }
        let scale = parse_suffix(suffix).ok_or_else(malformed)??;
        Ok(Self { text: text.into(), nanos: to_nanos(whole, fraction, &scale)? })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// What a suffix multiplies by: `times`, then `10^-places`.
struct Scale {
    times: u128,
    places: u32,
}

/// `None` if there is no such suffix.
fn parse_suffix(suffix: &str) -> Option<Result<Scale, QuantityError>> {
    let (times, places) = match suffix {
        "n" => (1, 9),
        "u" => (1, 6),
        "m" => (1, 3),
        "" => (1, 0),
        "k" => (10_u128.pow(3), 0),
        "M" => (10_u128.pow(6), 0),
        "G" => (10_u128.pow(9), 0),
        "T" => (10_u128.pow(12), 0),
        "P" => (10_u128.pow(15), 0),
        "E" => (10_u128.pow(18), 0),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => return parse_exponent(suffix.strip_prefix(['e', 'E'])?),
    };
    Some(Ok(Scale { times, places }))
}

fn parse_exponent(text: &str) -> Option<Result<Scale, QuantityError>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Text that does not fit is far beyond either limit.
    let exponent = digits.parse::<u32>().unwrap_or(u32::MAX);
    Some(match (negative, 10_u128.checked_pow(exponent)) {
        (true, _) => Ok(Scale { times: 1, places: exponent }),
        (false, Some(times)) => Ok(Scale { times, places: 0 }),
        (false, None) => Err(QuantityError::TooLarge),
    })
}

/// The value in billionths, rounded up.
fn to_nanos(whole: &str, fraction: &str, scale: &Scale) -> Result<u128, QuantityError> {
    let fraction_places = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    let places = scale.places.saturating_add(fraction_places);
    if places > MAX_PLACES {
        return Err(QuantityError::TooFine);
    }
    let mut digits = whole.bytes().chain(fraction.bytes());
    let scaled = digits
        .try_fold(0_u128, |number, digit| number.checked_mul(10)?.checked_add(u128::from(digit - b'0')))
        .and_then(|number| number.checked_mul(scale.times))
        .ok_or(QuantityError::TooLarge)?;
    let place = 10_u128.pow(places);
    let (units, rest) = (scaled / place, scaled % place);
    if units > MAX_WHOLE || (units == MAX_WHOLE && rest > 0) {
        return Err(QuantityError::TooLarge);
    }
    // Neither product overflows: `units` fits 63 bits and `rest` is below 10^27.
    Ok(units * NANO + (rest * NANO).div_ceil(place))
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode_text_or_number(deserializer, "a quantity such as 500m, 256Mi or 1.5", Self::from_str)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "x-kubernetes-int-or-string": true,
            "description": "An amount such as 500m, 256Mi or 1.5.",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn milli(text: &str) -> u128 {
        text.parse::<Quantity>().unwrap().milli()
    }

    #[test]
    fn every_suffix_has_its_value() {
        for (text, expected) in [
            ("0", 0),
            ("1", 1_000),
            ("+1", 1_000),
            ("1.5", 1_500),
            (".5", 500),
            ("5.", 5_000),
            ("500m", 500),
            ("1500000u", 1_500),
            ("1500000000n", 1_500),
            ("2k", 2_000_000),
            ("2e3", 2_000_000),
            ("2E3", 2_000_000),
            ("2e+3", 2_000_000),
            ("2000e-3", 2_000),
            ("2M", 2_000_000_000),
            ("2G", 2_000_000_000_000),
            ("2T", 2_000_000_000_000_000),
            ("2P", 2_000_000_000_000_000_000),
            ("2E", 2_000_000_000_000_000_000_000),
            ("1Ki", 1_024_000),
            ("1.5Ki", 1_536_000),
            ("256Mi", 268_435_456_000),
            ("1Gi", 1_073_741_824_000),
            ("1Ti", 1_099_511_627_776_000),
            ("1Pi", 1_125_899_906_842_624_000),
            ("7Ei", 8_070_450_532_247_928_832_000),
            ("9223372036854775807", 9_223_372_036_854_775_807_000),
        ] {
            assert_eq!(milli(text), expected, "{text}");
        }
    }

    #[test]
    fn a_number_is_written_as_kubernetes_writes_it() {
        let cores = |millis| Quantity::of_millis(millis).to_string();
        assert_eq!([cores(0), cores(2000), cores(2500)], ["0", "2", "2500m"]);
        let bytes = |count| Quantity::of_bytes(count).to_string();
        assert_eq!([bytes(0), bytes(11), bytes(3 << 29)], ["0", "11", "1536Mi"]);
        assert_eq!(Quantity::of_bytes(1 << 30), "1Gi".parse().unwrap());
        assert_eq!(Quantity::of_millis(2500), "2500m".parse().unwrap());
    }

    #[test]
    fn what_is_too_fine_is_rounded_up() {
        assert_eq!(milli("1u"), 1);
        assert_eq!(milli("1e-20"), 1);
        assert_eq!("500m".parse::<Quantity>().unwrap().value(), 1);
        assert_eq!("1.000000001".parse::<Quantity>().unwrap().value(), 2);
        assert_eq!("1024".parse::<Quantity>().unwrap().value(), 1_024);
    }

    #[test]
    fn the_text_is_kept_as_written() {
        for (json, written) in [
            ("\"1000m\"", "\"1000m\""),
            ("\"1024Mi\"", "\"1024Mi\""),
            ("2", "\"2\""),
            ("0.5", "\"0.5\""),
            ("1e3", "\"1000\""),
        ] {
            let quantity: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&quantity).unwrap(), written);
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let nines = "9".repeat(64);
        for text in [
            "8Ei",
            "9223372036854775808",
            "9223372036854775807.1",
            "1e19",
            "1e99",
            "1e4294967296",
            nines.as_str(),
        ] {
            assert_eq!(text.parse::<Quantity>(), Err(QuantityError::TooLarge), "{text}");
        }
        assert_eq!("1".repeat(65).parse::<Quantity>(), Err(QuantityError::TooManyCharacters));
    }

    #[test]
    fn what_is_too_fine_to_keep_is_refused() {
        for text in ["1e-28", "1e-4294967296", "0.0000000000000000001n"] {
            assert_eq!(text.parse::<Quantity>(), Err(QuantityError::TooFine), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", ".", "m", "1 Gi", "1gi", "1K", "1e", "1eM", "1e--3", "1.2.3", "0x10", "1mm", "Infinity"]
        {
            assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Malformed(text.to_owned())), "{text}");
        }
        assert_eq!("-1".parse::<Quantity>(), Err(QuantityError::Negative));
        assert!(serde_json::from_str::<Quantity>("-1").is_err());
        assert!(serde_json::from_str::<Quantity>("[]").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ignored = text.parse::<Quantity>();
        }

        #[test]
        fn almost_quantities_read_back(text in "[+]?[0-9]{0,21}[.]?[0-9]{0,21}(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{0,3})") {
            if let Ok(quantity) = text.parse::<Quantity>() {
                let json = serde_json::to_string(&quantity).unwrap();
                prop_assert_eq!(serde_json::from_str::<Quantity>(&json).unwrap(), quantity.clone());
                prop_assert!(u128::from(quantity.value()) * 1_000 >= quantity.milli());
            }
        }

        #[test]
        fn whole_numbers_have_their_value(number in 0..=i64::MAX.unsigned_abs()) {
            let quantity: Quantity = serde_json::from_value(number.into()).unwrap();
            prop_assert_eq!(quantity.value(), number);
            prop_assert_eq!(quantity.to_string(), number.to_string());
        }
    }
}
