//! What is wrong with a document, and where.

use std::fmt;

/// One rule that a document breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, for example `spec.pools[0].size`.
    pub at: String,
    /// What.
    pub problem: Problem,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It is not there.
    Missing,
    /// It is not allowed.
    Wrong {
        /// The value, cut if it is long.
        value: String,
        /// What it must be.
        why: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("must be given"),
            Self::Wrong { value, why } => write!(f, "{value:?}: {why}"),
        }
    }
}
