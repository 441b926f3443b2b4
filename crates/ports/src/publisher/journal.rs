//! A place outside of the store where it is written down how far messages were confirmed.

use super::Boxed;

/// One value that survives.
pub trait Journal: Send + Sync {
    /// What was last written, if anything.
    fn read(&self) -> Boxed<'_, Result<Option<String>, JournalError>>;

    /// Replaces it. When this returns, it is kept.
    fn write<'a>(&'a self, value: &'a str) -> Boxed<'a, Result<(), JournalError>>;
}

/// The journal cannot be reached, or did not take the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot be used: {0}")]
pub struct JournalError(pub String);
