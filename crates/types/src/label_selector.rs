//! Label selectors: which objects are meant, said by their labels.
//!
//! [`LabelSelector`] is the text language of `kubectl -l` (`a=b,c!=d,e in (x,y),f notin (z),g,!h,i>3`), read by
//! `parser`. [`MatchSelector`] is the structured form inside manifests. Both become the same list of
//! requirements, all of which must hold; an empty list matches everything. Keys and values obey the same rules
//! as labels themselves, as in Kubernetes.

mod match_selector;
mod parser;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use match_selector::{MatchExpression, MatchOperator, MatchSelector, MatchSelectorError};
pub use parser::LabelSelectorError;

use crate::name_rules;

/// Requirements on labels that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One requirement: a key and what must be true of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    test: Test,
}

/// What must be true of a label's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// It is one of these, sorted and without doubles (`a=b`, `a in (b,c)`).
    In(Vec<String>),
    /// It is none of these, or the label is absent (`a!=b`, `a notin (b,c)`).
    NotIn(Vec<String>),
    /// The label is there (`a`).
    Exists,
    /// The label is not there (`!a`).
    DoesNotExist,
    /// It is a whole number above this (`a>3`).
    GreaterThan(i64),
    /// It is a whole number below this (`a<3`).
    LessThan(i64),
}

impl LabelSelector {
    /// A selector with these requirements; none matches everything.
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// The requirements, in the order they were written.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// True if every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True if these labels satisfy every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(|key| labels.get(key).map(String::as_str))
    }

    /// True if the labels that `value_of` knows satisfy every requirement.
    pub fn matches_with<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.holds(value_of(&requirement.key)))
    }
}

impl Requirement {
    /// Checks key and values as Kubernetes does; sorts the values.
    pub fn new(key: impl Into<String>, mut test: Test) -> Result<Self, String> {
        let key = key.into();
        name_rules::qualified_name(&key)?;
        match &mut test {
            Test::In(values) | Test::NotIn(values) => {
                if values.is_empty() {
                    return Err("for 'in', 'notin' operators, values set can't be empty".to_owned());
                }
                values.iter().try_for_each(|value| name_rules::label_value(value))?;
                values.sort_unstable();
                values.dedup();
            }
            Test::GreaterThan(bound) | Test::LessThan(bound) if *bound < 0 => {
                return Err("for 'Gt', 'Lt' operators, the value must not be negative".to_owned());
            }
            Test::Exists | Test::DoesNotExist | Test::GreaterThan(_) | Test::LessThan(_) => {}
        }
        Ok(Self { key, test })
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What must be true of its value.
    pub fn test(&self) -> &Test {
        &self.test
    }
}

impl Test {
    /// True if it holds for a label with this value, or for one that is absent.
    pub fn holds(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[String], value: &str| values.iter().any(|one| one == value);
        match (self, value) {
            (Self::In(values), Some(value)) => is_one_of(values, value),
            (Self::NotIn(values), Some(value)) => !is_one_of(values, value),
            (Self::Exists, value) => value.is_some(),
            (Self::DoesNotExist, value) => value.is_none(),
            (Self::GreaterThan(bound), Some(value)) => {
                value.parse::<i64>().is_ok_and(|number| number > *bound)
            }
            (Self::LessThan(bound), Some(value)) => value.parse::<i64>().is_ok_and(|number| number < *bound),
            (Self::NotIn(_), None) => true,
            (Self::In(_) | Self::GreaterThan(_) | Self::LessThan(_), None) => false,
        }
    }
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;

    fn from_str(text: &str) -> Result<Self, LabelSelectorError> {
        parser::parse(text)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::In(values) => match values.as_slice() {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Test::NotIn(values) => match values.as_slice() {
                [value] => write!(f, "{key}!={value}"),
                values => write!(f, "{key} notin ({})", values.join(",")),
            },
            Test::Exists => f.write_str(key),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        selector.parse::<LabelSelector>().unwrap().matches(&labels)
    }

    #[test]
    fn an_empty_selector_matches_everything() {
        assert!(matches("", &[]));
        assert!(matches("", &[("a", "b")]));
        assert!(LabelSelector::default().is_everything());
    }

    #[test]
    fn equality_needs_the_label() {
        assert!(matches("a=b", &[("a", "b")]));
        assert!(matches("a==b", &[("a", "b")]));
        assert!(matches("a=", &[("a", "")]));
        assert!(!matches("a=", &[]));
        assert!(!matches("a=b", &[("a", "c")]));
        assert!(matches("a in (b,c)", &[("a", "c")]));
        assert!(!matches("a in (b,c)", &[("b", "c")]));
    }

    #[test]
    fn inequality_holds_for_absent_labels() {
        assert!(matches("a!=b", &[]));
        assert!(matches("a notin (b,c)", &[]));
        assert!(matches("a!=b", &[("a", "c")]));
        assert!(!matches("a notin (b,c)", &[("a", "c")]));
    }

    #[test]
    fn existence_looks_at_the_key_alone() {
        assert!(matches("a", &[("a", "")]));
        assert!(!matches("a", &[]));
        assert!(matches("!a", &[]));
        assert!(!matches("!a", &[("a", "")]));
    }

    #[test]
    fn bounds_hold_only_for_whole_numbers() {
        assert!(matches("a>3", &[("a", "4")]));
        assert!(!matches("a>3", &[("a", "3")]));
        assert!(matches("a<3", &[("a", "2")]));
        assert!(!matches("a<3", &[("a", "x")]));
        assert!(!matches("a<3", &[]));
    }

    #[test]
    fn every_requirement_must_hold() {
        assert!(matches("a=b, c in (d) ,!e", &[("a", "b"), ("c", "d")]));
        assert!(!matches("a=b,c=d", &[("a", "b")]));
    }

    #[test]
    fn a_requirement_is_checked_when_made() {
        assert!(Requirement::new("a", Test::In(vec![])).is_err());
        assert!(Requirement::new("a b", Test::Exists).is_err());
        assert!(Requirement::new("a", Test::NotIn(vec!["b c".to_owned()])).is_err());
        assert!(Requirement::new("a", Test::LessThan(-1)).is_err());
        let requirement =
            Requirement::new("a", Test::In(vec!["c".to_owned(), "b".to_owned(), "c".to_owned()]));
        assert_eq!(requirement.unwrap().to_string(), "a in (b,c)");
    }

    fn any_test() -> impl Strategy<Value = Test> {
        let values = || prop::collection::vec("([a-c][-a-c_.]{0,3}[a-c])?|in|notin", 1..4);
        prop_oneof![
            values().prop_map(Test::In),
            values().prop_map(Test::NotIn),
            Just(Test::Exists),
            Just(Test::DoesNotExist),
            (0..=i64::MAX).prop_map(Test::GreaterThan),
            (0..=i64::MAX).prop_map(Test::LessThan),
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ignored = text.parse::<LabelSelector>();
        }

        #[test]
        fn almost_selectors_are_read_or_refused(text in "([a-c]|in|notin|[ =!<>(),.é0-9/-]){0,30}") {
            if let Ok(selector) = text.parse::<LabelSelector>() {
                prop_assert_eq!(selector.to_string().parse(), Ok(selector));
            }
        }

        #[test]
        fn what_is_written_reads_back(parts in prop::collection::vec(("([a-z]{1,9}/)?([a-z]{1,9}|in|notin)", any_test()), 0..6)) {
            let requirements = parts.into_iter().map(|(key, test)| Requirement::new(key, test).unwrap()).collect();
            let selector = LabelSelector::new(requirements);
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }
}
