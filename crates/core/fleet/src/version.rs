//! Versions and what allows them: `>= 1.2, < 2` are conditions that must all hold.

use std::cmp::Ordering;

/// A version: its numbers, and what follows a hyphen, which makes it older than the same without.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    numbers: Vec<u64>,
    early: Option<String>,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let text = text.split('+').next().unwrap_or(text);
        let (numbers, early) = match text.split_once('-') {
            Some((numbers, early)) => (numbers, Some(early.to_owned())),
            None => (text, None),
        };
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|part| part.parse().ok()).collect();
        numbers.map(|numbers| Self { numbers, early })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let longest = self.numbers.len().max(other.numbers.len());
        let at = |version: &Self, place: usize| version.numbers.get(place).copied().unwrap_or(0);
        let numbers = (0..longest).map(|place| at(self, place).cmp(&at(other, place)));
        let numbers = numbers.fold(Ordering::Equal, Ordering::then);
        numbers.then_with(|| match (&self.early, &other.early) {
            (None, None) => Ordering::Equal,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(ours), Some(theirs)) => ours.cmp(theirs),
        })
    }
}

/// Conditions on a version.
#[derive(Debug, Clone)]
pub(crate) struct Allowed(Vec<(String, Version)>);

impl Allowed {
    /// Reads conditions. `None` if they are none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let conditions: Option<Vec<_>> = text.split(',').map(parse_condition).collect();
        conditions.filter(|conditions| !conditions.is_empty()).map(Self)
    }

    /// True if a version is one and all conditions hold of it.
    pub(crate) fn allows(&self, text: &str) -> bool {
        let Some(version) = Version::parse(text) else { return false };
        self.0.iter().all(|(sign, bound)| {
            let order = version.compare(bound);
            match sign.as_str() {
                ">=" => order.is_ge(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                "<" => order.is_lt(),
                "!=" => order.is_ne(),
                _ => order.is_eq(),
            }
        })
    }
}

fn parse_condition(text: &str) -> Option<(String, Version)> {
    let text = text.trim();
    let signs = [">=", "<=", "!=", ">", "<", "="];
    let sign = signs.into_iter().find(|sign| text.starts_with(sign)).unwrap_or("");
    Some((sign.to_owned(), Version::parse(&text[sign.len()..])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(conditions: &str, version: &str) -> bool {
        Allowed::parse(conditions).unwrap().allows(version)
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        assert!(allows(">= 1.2, < 2", "1.10.0"));
        assert!(!allows(">= 1.2, < 2", "2.0"));
        assert!(!allows(">= 1.2", "1.1.9"));
        assert!(allows("= 1.2", "v1.2.0"));
        assert!(allows("1.2", "1.2+build.7"));
        assert!(allows("!= 1.3", "1.2"));
    }

    #[test]
    fn what_comes_before_a_release_is_older() {
        assert!(allows("< 2.0", "2.0-rc1"));
        assert!(allows("> 2.0-rc1", "2.0"));
    }

    #[test]
    fn what_is_no_version_is_never_allowed() {
        assert!(!allows(">= 0", "banana"));
        assert!(Allowed::parse(">= banana").is_none());
        assert!(Allowed::parse("").is_none());
    }
}
