//! Field selectors: which objects are meant, said by a few of their fields (`metadata.name=a,status.state!=Failed`).
//!
//! The text is Kubernetes': terms separated by commas, `=`, `==` or `!=`, and in values `\,`, `\=` and `\\` for
//! the characters that would end them. Blanks are part of what they stand in. Which fields a kind can be selected
//! by is not decided here.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Longest selector read.
const MAX_BYTES: usize = 32 * 1024;

/// Requirements on fields that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// One requirement: a field and what it must or must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Path of the field, for example `metadata.name`.
    pub field: String,
    /// Whether it must be the value or must not be it.
    pub operator: FieldOperator,
    /// The value, without escapes.
    pub value: String,
}

/// How a field relates to the value given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    /// It is the value (`=`, `==`).
    Equals,
    /// It is not the value (`!=`).
    NotEquals,
}

/// Why a text is not a field selector.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("invalid field selector: can't understand '{0}', expected field=value or field!=value")]
    NoOperator(String),
    /// A term whose left side cannot be a field.
    #[error("invalid field selector: '{0}' is not a field")]
    NotAField(String),
    /// A backslash before something that needs none.
    #[error("invalid field selector: invalid escape sequence in '{0}', use \\\\, \\, or \\=")]
    InvalidEscape(String),
    /// A bare `=` in a value.
    #[error("invalid field selector: unescaped '=' in '{0}', write \\=")]
    UnescapedEquals(String),
    /// More text than is read.
    #[error("a field selector has at most {MAX_BYTES} bytes")]
    TooLong,
}

impl FieldSelector {
    /// The requirements, in the order they were written.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// True if every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True if the fields that `value_of` knows satisfy every requirement; an absent field is empty.
    pub fn matches_with<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let is_equal = value_of(&requirement.field).unwrap_or_default() == requirement.value;
            is_equal == (requirement.operator == FieldOperator::Equals)
        })
    }

    /// The value a field must have, if the selector says so.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let is_exact = |requirement: &&FieldRequirement| {
            requirement.field == field && requirement.operator == FieldOperator::Equals
        };
        self.requirements.iter().find(is_exact).map(|requirement| requirement.value.as_str())
    }

    /// The only name that can match, if the selector says so.
    pub fn exact_name(&self) -> Option<&str> {
        self.exact("metadata.name")
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        if text.len() > MAX_BYTES {
            return Err(FieldSelectorError::TooLong);
        }
        let terms = split_terms(text).into_iter().filter(|term| !term.is_empty());
        Ok(Self { requirements: terms.map(parse_term).collect::<Result<_, _>>()? })
    }
}

/// Splits at the commas that have no backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = vec![];
    let mut start = 0;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn parse_term(term: &str) -> Result<FieldRequirement, FieldSelectorError> {
    let at = term.find('=').ok_or_else(|| FieldSelectorError::NoOperator(term.to_owned()))?;
    let (left, right) = (&term[..at], &term[at + 1..]);
    let (field, operator, value) = match left.strip_suffix('!') {
        Some(field) => (field, FieldOperator::NotEquals, right),
        None => (left, FieldOperator::Equals, right.strip_prefix('=').unwrap_or(right)),
    };
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    if field.is_empty() || !field.bytes().all(is_path) {
        return Err(FieldSelectorError::NotAField(field.to_owned()));
    }
    Ok(FieldRequirement { field: field.to_owned(), operator, value: unescape(value)? })
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut unescaped = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => unescaped.push(escaped),
                _ => return Err(FieldSelectorError::InvalidEscape(value.to_owned())),
            },
            '=' => return Err(FieldSelectorError::UnescapedEquals(value.to_owned())),
            _ => unescaped.push(character),
        }
    }
    Ok(unescaped)
}

impl fmt::Display for FieldSelector {
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

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        };
        write!(f, "{}{operator}", self.field)?;
        for character in self.value.chars() {
            if matches!(character, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{character}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        text.parse::<FieldSelector>().map_or_else(|error| error.to_string(), |selector| selector.to_string())
    }

    #[test]
    fn every_form_is_read() {
        for (text, written) in [
            ("a.b=c,d!=e,f==g", "a.b=c,d!=e,f=g"),
            ("", ""),
            (",a=b,,", "a=b"),
            ("a=", "a="),
            ("a!=", "a!="),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            ("a=b c", "a=b c"),
            ("a=!b", "a=!b"),
        ] {
            assert_eq!(read(text), written, "{text}");
        }
    }

    #[test]
    fn escapes_are_taken_off_values() {
        let selector: FieldSelector = r"spec.name=x\,y\=z\\".parse().unwrap();
        assert_eq!(selector.requirements()[0].value, r"x,y=z\");
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (text, error) in [
            ("a", FieldSelectorError::NoOperator("a".to_owned())),
            ("a=b,c", FieldSelectorError::NoOperator("c".to_owned())),
            ("=b", FieldSelectorError::NotAField(String::new())),
            ("!=b", FieldSelectorError::NotAField(String::new())),
            (" a=b", FieldSelectorError::NotAField(" a".to_owned())),
            (r"a\,b=c", FieldSelectorError::NotAField(r"a\,b".to_owned())),
            ("a=b=c", FieldSelectorError::UnescapedEquals("b=c".to_owned())),
            ("a===b", FieldSelectorError::UnescapedEquals("=b".to_owned())),
            (r"a=b\c", FieldSelectorError::InvalidEscape(r"b\c".to_owned())),
            (r"a=b\", FieldSelectorError::InvalidEscape(r"b\".to_owned())),
        ] {
            assert_eq!(text.parse::<FieldSelector>(), Err(error), "{text}");
        }
        assert_eq!("a".repeat(MAX_BYTES + 1).parse::<FieldSelector>(), Err(FieldSelectorError::TooLong));
    }

    #[test]
    fn every_requirement_must_hold_and_absent_fields_are_empty() {
        let matches = |text: &str| {
            let value_of = |field: &str| (field == "status.state").then_some("Running");
            text.parse::<FieldSelector>().unwrap().matches_with(value_of)
        };
        assert!(matches(""));
        assert!(matches("status.state=Running"));
        assert!(matches("status.state!=Failed,spec.addon="));
        assert!(!matches("status.state!=Running"));
        assert!(!matches("status.state=Running,spec.addon=a"));
        assert!(matches("spec.addon!=a"));
    }

    #[test]
    fn an_exact_name_is_found() {
        let selector: FieldSelector = "status.state=Ready,metadata.name=a".parse().unwrap();
        assert_eq!(selector.exact_name(), Some("a"));
        assert_eq!(selector.exact("spec.kind"), None);
        assert_eq!("metadata.name!=a".parse::<FieldSelector>().unwrap().exact_name(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ignored = text.parse::<FieldSelector>();
        }

        #[test]
        fn what_is_written_reads_back(text in r"([a-b=!,\\é ]|a=|b!=){0,20}", values in prop::collection::vec(".{0,9}", 0..4)) {
            if let Ok(selector) = text.parse::<FieldSelector>() {
                prop_assert_eq!(selector.to_string().parse(), Ok(selector));
            }
            let requirement = |value| FieldRequirement { field: "a.b".to_owned(), operator: FieldOperator::NotEquals, value };
            let selector = FieldSelector { requirements: values.into_iter().map(requirement).collect() };
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }
}
