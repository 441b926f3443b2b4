//! Whether a store's log takes writes.

use super::log::LogError;

/// How it stands with the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The last thing that was asked of it worked.
    Good,
    /// It does not work now, and may later. With the reason.
    Away(String),
    /// It will not work again in this process. With the reason.
    Broken(String),
}

impl Standing {
    /// What an error says about the log.
    pub(super) fn of(error: &LogError) -> Self {
        if error.is_refusal() || error.is_unknown() {
            Self::Away(error.to_string())
        } else {
            Self::Broken(error.to_string())
        }
    }
}
