//! When something happened.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use muster_types::Millis;

/// A moment, on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    pub(crate) wall: Millis,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), wall: wall_now() }
    }
}

/// The time of day.
pub(crate) fn wall_now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
