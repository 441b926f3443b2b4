//! Logs of pods, while they run and until they are kept for good.

use muster_ports::blobs::Blobs;
use muster_ports::clock::Millis;
use muster_ports::logs::{LogError, LogPart, Logs, keep_parts};
use muster_ports::runtime::{FilesError, Handle};

use crate::log_store::LogStore;

/// How much is read at once to be kept.
const PIECE: usize = 256 << 10;

/// Reads logs of pods.
#[derive(Debug, Clone)]
pub struct PodLogs {
    store: LogStore,
}

impl PodLogs {
    pub(crate) fn new(store: LogStore) -> Self {
        Self { store }
    }

    /// Keeps the logs of an attempt for good.
    pub(crate) fn keep(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        for container in self.store.containers(handle)? {
            let Some(start) = self.store.read(handle, &container, 0, 0)? else { continue };
            if start.end == start.offset {
                continue;
            }
            let times = self.store.times(handle, &container)?;
            let next = |place| Ok(self.read(handle, &container, place, PIECE)?.bytes);
            keep_parts(blobs, handle, &container, start.offset, &times, next).map_err(
                |error| match error {
                    LogError::Blob(error) => FilesError::Blob(error),
                    LogError::Io(error) => FilesError::Io(error),
                    LogError::NotFound => FilesError::Io(std::io::ErrorKind::NotFound.into()),
                },
            )?;
        }
        Ok(())
    }
}

impl Logs for PodLogs {
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        self.store.read(handle, container, offset, max)?.ok_or(LogError::NotFound)
    }

    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        let start = self.read(handle, container, 0, 0)?;
        Ok(self.store.times(handle, container)?.offset_at(time, start.offset, start.end))
    }
}
