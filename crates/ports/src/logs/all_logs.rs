//! All logs: those of attempts that run, and those of attempts that ended.

use std::sync::Arc;

use muster_types::Millis;

use super::{KeptLogs, LogError, LogPart, Logs};
use crate::runtime::Handle;

/// Looks where attempts run, then where files are kept.
///
/// The log of an attempt that ended moves from the one to the other at some moment. It is never in neither: it is gone from
/// the first only when all of it is in the second. So whoever looks in this order does not miss it, whenever it moves.
#[derive(Clone)]
pub struct AllLogs {
    live: Vec<Arc<dyn Logs>>,
    kept: KeptLogs,
}

impl AllLogs {
    /// The logs of all of them. An attempt runs in one place only.
    pub fn new(live: Vec<Arc<dyn Logs>>, kept: KeptLogs) -> Self {
        Self { live, kept }
    }

    fn read_live(
        &self,
        handle: &Handle,
        container: &str,
        offset: u64,
        max: usize,
    ) -> Result<LogPart, LogError> {
        let mut empty = Err(LogError::NotFound);
        for live in &self.live {
            match live.read(handle, container, offset, max) {
                Ok(part) if part.end > 0 => return Ok(part),
                Ok(part) => empty = Ok(part),
                Err(LogError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        empty
    }

    fn live_offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        let mut found = Err(LogError::NotFound);
        for live in &self.live {
            match live.offset_at(handle, container, time) {
                Err(LogError::NotFound) => {}
                other => found = other,
            }
        }
        found
    }
}

impl Logs for AllLogs {
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        let live = match self.read_live(handle, container, offset, max) {
            Ok(part) if part.end > 0 => return Ok(part),
            // Nothing was written, or it has moved.
            empty @ (Ok(_) | Err(LogError::NotFound)) => empty,
            Err(error) => return Err(error),
        };
        match self.kept.read(handle, container, offset, max) {
            Err(LogError::NotFound) => live,
            kept => kept,
        }
    }

    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        let live = self.live_offset_at(handle, container, time);
        // If it is still there now, it was there before.
        if self.read_live(handle, container, 0, 0).is_ok_and(|part| part.end > 0) {
            return live;
        }
        match self.kept.offset_at(handle, container, time) {
            Err(LogError::NotFound) => live,
            kept => kept,
        }
    }
}
