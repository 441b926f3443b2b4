//! A name or a pattern of names: which kinds an addon serves, which addons an extension extends (seed 000, H47, H49).
//!
//! Text of letters, digits, `-`, `_` and `.` is a name and matches only itself. Anything else is a regular expression that
//! must match the *whole* name: `analyzer|scanner`, `java-.*`. The empty text matches nothing, and the empty name is
//! matched by nothing.
//!
//! The seed took `.` for a regular expression. Names here may have dots, and `java.analyzer` must not match
//! `javaxanalyzer`; who wants any character in its place writes `java(.)analyzer`.
//!
//! Names are ASCII, so expressions are read without Unicode classes. Limits: [`MAX_BYTES`], and what the compiled
//! expression may take up.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use thiserror::Error;

/// Longest pattern read.
pub const MAX_BYTES: usize = 1024;
/// Most memory of a compiled expression.
const MAX_COMPILED: usize = 256 * 1024;
/// Most groups inside groups.
const MAX_NESTING: u32 = 64;

/// A name, or an expression that matches whole names.
#[derive(Debug, Clone, Default)]
pub struct NamePattern {
    text: String,
    /// `None` for a name.
    expression: Option<Regex>,
}

/// Why a text is neither a name nor a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{pattern:?} is not a name or a regular expression: {why}")]
pub struct NamePatternError {
    /// The text, cut if it is very long.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

impl NamePattern {
    /// Reads a name or a regular expression.
    pub fn parse(text: &str) -> Result<Self, NamePatternError> {
        let refuse =
            |why: String| NamePatternError { pattern: text.chars().take(MAX_BYTES / 8).collect(), why };
        if text.len() > MAX_BYTES {
            return Err(refuse(format!("it has more than {MAX_BYTES} bytes")));
        }
        if is_name(text) {
            return Ok(Self { text: text.to_owned(), expression: None });
        }
        // Alone first: `a)|(b` would only fit into the parentheses that anchor it.
        compile(text).map_err(refuse)?;
        let expression = compile(&format!(r"\A(?:{text})\z")).map_err(refuse)?;
        Ok(Self { text: text.to_owned(), expression: Some(expression) })
    }

    /// True if this name is meant.
    pub fn matches(&self, name: &str) -> bool {
        let fits = || match &self.expression {
            Some(expression) => expression.is_match(name.as_bytes()),
            None => self.text == name,
        };
        !name.is_empty() && fits()
    }

    /// True if only one name can match, or none.
    pub fn is_name(&self) -> bool {
        self.expression.is_none()
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn compile(expression: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(expression);
    builder.unicode(false).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).nest_limit(MAX_NESTING);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it takes up too much memory; use shorter repetitions".to_owned(),
        // A picture of several lines, of which the last says why.
        error => {
            let picture = error.to_string();
            let last = picture.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    })
}
