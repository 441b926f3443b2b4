//! The logs of attempts where they run, until they are kept elsewhere.

use muster_exec::{AttemptDirs, ReadError};
use muster_ports::clock::Millis;
use muster_ports::logs::{LogError, LogPart, LogTimes, Logs};
use muster_ports::runtime::Handle;

/// Reads logs in the directories of attempts.
#[derive(Debug, Clone)]
pub struct LiveLogs {
    dirs: AttemptDirs,
}

impl LiveLogs {
    pub(crate) fn new(dirs: AttemptDirs) -> Self {
        Self { dirs }
    }
}

impl Logs for LiveLogs {
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        let muster_exec::LogPart { offset, bytes, end } =
            self.dirs.read_log(handle, container, offset, max).map_err(log_error)?;
        Ok(LogPart { offset, bytes, end })
    }

    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        let times = read_times(&self.dirs, handle, container).map_err(log_error)?;
        let part = self.dirs.read_log(handle, container, 0, 0).map_err(log_error)?;
        Ok(times.offset_at(time, part.offset, part.end))
    }
}

/// When which part of a log was written.
pub(crate) fn read_times(
    dirs: &AttemptDirs,
    handle: &Handle,
    container: &str,
) -> Result<LogTimes, ReadError> {
    let places = dirs.read_times(handle, container)?;
    Ok(LogTimes::new(places.into_iter().map(|place| (place.second, place.offset))))
}

pub(crate) fn log_error(error: ReadError) -> LogError {
    match error {
        ReadError::NoAttempt | ReadError::BadName(_) => LogError::NotFound,
        ReadError::Io(error) => LogError::Io(error),
        ReadError::NotAFile => LogError::Io(std::io::Error::other(error)),
    }
}
