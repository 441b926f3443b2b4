//! A moment, to the millisecond.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Millis(pub i64);

impl From<Timestamp> for Millis {
    fn from(at: Timestamp) -> Self {
        Self(at.as_second().saturating_mul(1000))
    }
}

impl Millis {
    /// The whole seconds, as objects show them.
    pub fn to_timestamp(self) -> Timestamp {
        Timestamp::from_second(self.0.div_euclid(1000))
    }
}
