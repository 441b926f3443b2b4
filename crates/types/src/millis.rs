//! A moment, to the millisecond.

use serde::{Deserialize, Serialize};

use crate::timestamp::{MilliTimestamp, Timestamp};

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Millis(pub i64);

impl From<Timestamp> for Millis {
    fn from(at: Timestamp) -> Self {
        Self(at.as_second().saturating_mul(1000))
    }
}

impl Millis {
    /// The same moment as attempts show it.
    pub fn to_milli_timestamp(self) -> MilliTimestamp {
        MilliTimestamp::from_millisecond(self.0)
    }

    /// The first whole second that is not before it: a wait that is counted from there is not too short.
    pub fn next_second(self) -> i64 {
        self.0.saturating_add(999).div_euclid(1000)
    }

    /// The whole seconds, as objects show them.
    pub fn to_timestamp(self) -> Timestamp {
        Timestamp::from_second(self.0.div_euclid(1000))
    }
}
