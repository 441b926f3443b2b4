//! Rules on the tags of a subject, as addons and extensions state them (seed 000, H50).
//!
//! ```text
//! tag:Language=Java              the subject has the tag Java of the category Language
//! tag:Language                   it has any tag of that category
//! !a    a && b    a || b    (a)  not, and, or; ! binds closest, then &&, then ||
//! tag:Framework="Spring Boot"    text with spaces, parentheses or quotes stands in double quotes
//! ```
//!
//! A category or tag without quotes runs until a space, a parenthesis, a quote, `&&` or `||`, and a category also until
//! the first `=`; so `C#`, `C++`, `.NET`, `R&D` and `a=b` (as a tag) need no quotes. Inside quotes `\"` and `\\` stand for
//! the character itself. Nothing at all matches every subject. Matching is exact, upper and lower case differ.
//!
//! Two things that look right and are not are refused instead of being read as odd names: `tag:A!=B` (write `!tag:A=B`)
//! and `tag:A==B`. So are predicates other than `tag`.
//!
//! What is written by [`fmt::Display`] reads back as the same selector. Limits: [`MAX_BYTES`], [`MAX_NESTING`].

mod parser;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Longest selector read, also as it is written back.
pub const MAX_BYTES: usize = 4096;
/// How many parentheses and `!` may be open at once.
pub const MAX_NESTING: usize = 64;

/// A rule on tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// `None` matches everything.
    rule: Option<Rule>,
}

/// A rule in its one form: `All` and `Any` have at least two parts, none of which is of their own sort.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Tag { category: String, tag: Option<String> },
    Not(Box<Rule>),
    All(Vec<Rule>),
    Any(Vec<Rule>),
}

/// Why a text is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at column {column}: {message}")]
pub struct SelectorError {
    /// The character where reading stopped, counted from 1.
    pub column: usize,
    /// What was found there and what was expected.
    pub message: String,
}

impl Selector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parser::parse(text)
    }

    /// True if every subject matches.
    pub fn is_everything(&self) -> bool {
        self.rule.is_none()
    }

    /// True if a subject matches. `has` says whether it has a tag of a category, or any tag of it for `None`.
    pub fn matches(&self, has: impl Fn(&str, Option<&str>) -> bool) -> bool {
        self.rule.as_ref().is_none_or(|rule| rule.holds(&has))
    }
}

impl Rule {
    fn holds(&self, has: &dyn Fn(&str, Option<&str>) -> bool) -> bool {
        match self {
            Self::Tag { category, tag } => has(category, tag.as_deref()),
            Self::Not(rule) => !rule.holds(has),
            Self::All(rules) => rules.iter().all(|rule| rule.holds(has)),
            Self::Any(rules) => rules.iter().any(|rule| rule.holds(has)),
        }
    }

    /// Both must hold.
    fn and(self, other: Self) -> Self {
        let mut rules = match self {
            Self::All(rules) => rules,
            rule => vec![rule],
        };
        match other {
            Self::All(others) => rules.extend(others),
            rule => rules.push(rule),
        }
        Self::All(rules)
    }

    /// One must hold.
    fn or(self, other: Self) -> Self {
        let mut rules = match self {
            Self::Any(rules) => rules,
            rule => vec![rule],
        };
        match other {
            Self::Any(others) => rules.extend(others),
            rule => rules.push(rule),
        }
        Self::Any(rules)
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.as_ref().map_or(Ok(()), |rule| rule.fmt(f))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag { category, tag } => {
                write!(f, "tag:{}", Text(category, parser::is_plain_category(category)))?;
                tag.iter().try_for_each(|tag| write!(f, "={}", Text(tag, parser::is_plain_tag(tag))))
            }
            Self::Not(rule) => write!(f, "!{}", Part(rule, matches!(**rule, Self::All(_) | Self::Any(_)))),
            Self::All(rules) => fmt_joined(f, " && ", rules, |rule| matches!(rule, Self::Any(_))),
            Self::Any(rules) => fmt_joined(f, " || ", rules, |_| false),
        }
    }
}

fn fmt_joined(
    f: &mut fmt::Formatter<'_>,
    operator: &str,
    rules: &[Rule],
    in_parentheses: impl Fn(&Rule) -> bool,
) -> fmt::Result {
    for (index, rule) in rules.iter().enumerate() {
        if index > 0 {
            f.write_str(operator)?;
        }
        write!(f, "{}", Part(rule, in_parentheses(rule)))?;
    }
    Ok(())
}

/// A rule inside another, in parentheses or not.
struct Part<'a>(&'a Rule, bool);

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 { write!(f, "({})", self.0) } else { self.0.fmt(f) }
    }
}

/// A category or tag, plain or in quotes.
struct Text<'a>(&'a str, bool);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 {
            return f.write_str(self.0);
        }
        write!(f, "\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
