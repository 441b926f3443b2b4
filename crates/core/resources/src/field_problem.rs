//! What is wrong with a field of an object or a report.

use std::fmt;

/// A field that cannot be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// Path of the field, such as `conditions[0].type`.
    pub field: String,
    /// What it says, if that helps.
    pub value: String,
    /// What is wrong with it, and what to do.
    pub why: String,
}

impl FieldProblem {
    /// A problem of one field.
    pub fn new(field: impl Into<String>, value: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self { field: field.into(), value: value.to_string(), why: why.to_string() }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}: {}", self.field, self.value, self.why)
    }
}
