//! What containers wrote, while they run and after.
//!
//! Places in a log count from the first byte the container ever wrote, whatever is still kept.

mod all_logs;
mod kept_logs;
mod log_times;

use std::io;

use muster_types::Millis;
use thiserror::Error;

use crate::blobs::BlobError;
use crate::runtime::Handle;

pub use all_logs::AllLogs;
pub use kept_logs::{KeptLogs, container_key, keep_file, keep_parts};
pub use log_times::LogTimes;

/// Part of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPart {
    /// Where `bytes` begin: later than asked for if that part is no longer kept.
    pub offset: u64,
    /// What was written there.
    pub bytes: Vec<u8>,
    /// Where the log ended when it was read.
    pub end: u64,
}

/// Why a log cannot be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// Nothing is known of it: the attempt never started, or its files were let go.
    #[error("there is no log of this container; the attempt never ran, or its files were let go")]
    NotFound,
    /// The disk refused.
    #[error("cannot read the log: {0}")]
    Io(#[from] io::Error),
    /// Where it is kept refused.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// Reads logs. Calls block for as long as a file takes.
pub trait Logs: Send + Sync + 'static {
    /// At most `max` bytes of a container's log from `offset` on.
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError>;

    /// The first place in the log that was written at or after a time, to the second.
    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError>;
}
