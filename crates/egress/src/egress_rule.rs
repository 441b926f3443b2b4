//! One rule of a policy: a range of addresses, or host names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::ip_range::IpRange;

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule(Subject);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Range(IpRange),
    Name(String),
    /// Names that end in this, which begins with a dot.
    Suffix(String),
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no range such as 10.0.0.0/8, no address and no host name such as example.org or *.example.org"
)]
pub struct BadRule(String);

impl EgressRule {
    /// The range alone that has an address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        matches!(&self.0, Subject::Range(range) if range.contains(address))
    }

    /// True if the rule is about a host name, as [`normal_name`] writes it.
    pub(crate) fn names(&self, host: &str) -> bool {
        match &self.0 {
            Subject::Range(_) => false,
            Subject::Name(name) => name == host,
            Subject::Suffix(suffix) => host.ends_with(suffix.as_str()) && host.len() > suffix.len(),
        }
    }
}

/// A host name without the differences that mean nothing.
pub fn normal_name(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

impl FromStr for EgressRule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let text = text.trim();
        if let Some(range) = IpRange::parse(text) {
            return Ok(Self(Subject::Range(range)));
        }
        let name = normal_name(text);
        let plain = name.strip_prefix("*.").unwrap_or(&name);
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        // Numbers are addresses in a form that the resolver knows, and that a rule would never meet.
        let is_number = |label: &str| label.starts_with(|first: char| first.is_ascii_digit());
        let is_address = plain.rsplit('.').next().is_some_and(is_number);
        if is_address || !plain.split('.').all(is_label) {
            return Err(BadRule(text.to_owned()));
        }
        let subject = match name.strip_prefix('*') {
            Some(suffix) => Subject::Suffix(suffix.to_owned()),
            None => Subject::Name(name),
        };
        Ok(Self(subject))
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Subject::Range(range) => write!(f, "{range}"),
            Subject::Name(name) => f.write_str(name),
            Subject::Suffix(suffix) => write!(f, "*{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_were_read() {
        for text in
            ["10.0.0.0/8", "127.0.0.1", "::1", "fc00::/7", "localhost", "a-b.example.org", "*.example.org"]
        {
            assert_eq!(text.parse::<EgressRule>().unwrap().to_string(), text);
        }
        assert_eq!(" Example.ORG. ".parse::<EgressRule>().unwrap().to_string(), "example.org");
    }

    #[test]
    fn what_no_host_would_match_is_refused() {
        for text in [
            "",
            "*",
            "*.",
            "a..b",
            "a b",
            "10.0.0.0/33",
            "10/8",
            "127.1",
            "2130706433",
            "0",
            "0x7f.1",
            "http://a",
            "a:80",
            "a.*.b",
            "-/8",
        ] {
            let error = text.parse::<EgressRule>().unwrap_err();
            assert!(error.to_string().contains("*.example.org"), "{error}");
        }
    }

    #[test]
    fn a_suffix_is_about_the_names_below_it() {
        let rule: EgressRule = "*.example.org".parse().unwrap();
        assert!(rule.names("a.example.org") && rule.names("a.b.example.org"));
        assert!(!rule.names("example.org") && !rule.names("badexample.org") && !rule.names(".example.org"));
    }
}
