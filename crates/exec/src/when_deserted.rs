//! What becomes of attempts whose master is gone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What becomes of attempts when whoever gave the orders is gone and has not ended them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhenDeserted {
    /// They are killed at once, and the shepherd ends.
    End,
    /// They go on, and how they end is written down beside them, for whoever comes next: see `shepherd/door.rs`. The shepherd ends
    /// with the last of them.
    GoOn {
        /// If nobody comes for this long, they are ended, each with its own grace.
        at_most: Duration,
    },
}

impl WhenDeserted {
    /// How long they go on; none if they do not.
    pub fn at_most(self) -> Option<Duration> {
        match self {
            Self::End => None,
            Self::GoOn { at_most } => Some(at_most),
        }
    }
}
