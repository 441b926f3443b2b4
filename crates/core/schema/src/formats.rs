//! Formats of texts and numbers that are checked. Others are advice for people, as in JSON Schema.

use std::net::{Ipv4Addr, Ipv6Addr};

use muster_types::name_rules::dns1123_subdomain;
use muster_types::{Duration, Timestamp};
use serde_json::Number;

/// A format that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    DateTime,
    Duration,
    Ipv4,
    Ipv6,
    Ip,
    Hostname,
    Uuid,
    Int32,
    Int64,
}

impl Format {
    /// The format of this name, if it is checked.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date-time" => Self::DateTime,
            "duration" => Self::Duration,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "ip" => Self::Ip,
            "hostname" => Self::Hostname,
            "uuid" => Self::Uuid,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            _ => return None,
        })
    }

    /// Why a text is not of this format.
    pub(crate) fn refuse_text(self, text: &str) -> Option<&'static str> {
        let (fits, why) = match self {
            Self::DateTime => {
                (text.parse::<Timestamp>().is_ok(), "must be a time such as 2026-01-31T12:00:00Z")
            }
            Self::Duration => (text.parse::<Duration>().is_ok(), "must be a duration such as 90s or PT1M30S"),
            Self::Ipv4 => (text.parse::<Ipv4Addr>().is_ok(), "must be an IPv4 address"),
            Self::Ipv6 => (text.parse::<Ipv6Addr>().is_ok(), "must be an IPv6 address"),
            Self::Ip => (
                text.parse::<Ipv4Addr>().is_ok() || text.parse::<Ipv6Addr>().is_ok(),
                "must be an IP address",
            ),
            Self::Hostname => (dns1123_subdomain(text).is_ok(), "must be a host name"),
            Self::Uuid => (is_uuid(text), "must be a UUID"),
            Self::Int32 | Self::Int64 => return None,
        };
        (!fits).then_some(why)
    }

    /// Why a number is not of this format.
    pub(crate) fn refuse_number(self, number: &Number) -> Option<&'static str> {
        let whole = number.as_i64();
        match self {
            Self::Int32 if whole.is_none_or(|whole| i32::try_from(whole).is_err()) => {
                Some("must be a whole number of 32 bits")
            }
            Self::Int64 if whole.is_none() => Some("must be a whole number of 64 bits"),
            _ => None,
        }
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_format_or_are_told_what_it_is() {
        for (name, good, bad) in [
            ("date-time", "2026-01-31T12:00:00Z", "yesterday"),
            ("duration", "90s", "soon"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "::1", "10.0.0.1"),
            ("ip", "10.0.0.1", "host"),
            ("hostname", "a.example.com", "-a"),
            ("uuid", "6f1c8e0e-7a53-4d3e-9f5c-0f6a1b2c3d4e", "6f1c8e0e"),
        ] {
            let format = Format::named(name).unwrap();
            assert_eq!(format.refuse_text(good), None, "{name}");
            assert!(format.refuse_text(bad).is_some(), "{name}");
        }
    }

    #[test]
    fn numbers_fit_their_bits() {
        let number = |text: &str| text.parse::<Number>().unwrap();
        assert_eq!(Format::Int32.refuse_number(&number("2147483647")), None);
        assert!(Format::Int32.refuse_number(&number("2147483648")).is_some());
        assert!(Format::Int64.refuse_number(&number("9223372036854775808")).is_some());
    }

    #[test]
    fn other_formats_are_advice() {
        assert_eq!(Format::named("password"), None);
    }
}
