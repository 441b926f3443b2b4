//! Logs of attempts on robots, until they are kept for good.

use muster_ports::blobs::Blobs;
use muster_ports::clock::Millis;
use muster_ports::logs::{LogError, LogPart, Logs, keep_file};
use muster_ports::runtime::{FilesError, Handle};

use crate::log_store::LogStore;

/// Reads logs of attempts on robots.
#[derive(Debug, Clone)]
pub struct RobotLogs {
    store: LogStore,
}

impl RobotLogs {
    pub(crate) fn new(store: LogStore) -> Self {
        Self { store }
    }

    /// Keeps the logs of an attempt for good.
    pub(crate) fn keep(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        for container in self.store.containers(handle)? {
            if let Some(found) = self.store.find(handle, &container)? {
                let times = LogStore::times(&found);
                keep_file(blobs, handle, &container, found.base, &times, &found.path)?;
            }
        }
        Ok(())
    }
}

impl Logs for RobotLogs {
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        self.store.read(handle, container, offset, max)?.ok_or(LogError::NotFound)
    }

    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        let found = self.store.find(handle, container)?.ok_or(LogError::NotFound)?;
        Ok(LogStore::times(&found).offset_at(time, found.base, found.end))
    }
}
