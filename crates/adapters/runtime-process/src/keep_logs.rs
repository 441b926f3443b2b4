//! Moves the logs of an attempt that ended to where files are kept.
//!
//! A log that is one file is renamed; one that was rotated is copied as a whole and then discarded. Whatever interrupts this,
//! each log is complete in the one place or in the other, and doing it again finishes it.

use muster_exec::{AttemptDirs, EndedLog, ReadError};
use muster_ports::blobs::Blobs;
use muster_ports::logs::{LogError, LogTimes, keep_file, keep_parts};
use muster_ports::runtime::{FilesError, Handle};

use crate::live_logs::{log_error, read_times};

/// Bytes copied at once.
const PIECE: usize = 1 << 20;

/// Keeps all logs of an attempt.
pub(crate) fn keep_logs(dirs: &AttemptDirs, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
    let containers = match dirs.logged_containers(handle) {
        Err(error) => return left_alone(handle, "all of them", error),
        Ok(containers) => containers,
    };
    for container in &containers {
        let found = dirs.ended_log(handle, container).and_then(|log| {
            let Some(log) = log else { return Ok(None) };
            Ok(Some((log, read_times(dirs, handle, container)?)))
        });
        match found {
            Ok(None) => {}
            Ok(Some((log, times))) => keep_log(dirs, handle, container, log, &times, blobs)?,
            Err(error) => left_alone(handle, container, error)?,
        }
    }
    Ok(())
}

fn keep_log(
    dirs: &AttemptDirs,
    handle: &Handle,
    container: &str,
    log: EndedLog,
    times: &LogTimes,
    blobs: &dyn Blobs,
) -> Result<(), FilesError> {
    if let Some(file) = log.file() {
        return Ok(keep_file(blobs, handle, container, log.first(), times, &file)?);
    }
    let next = |place| Ok(dirs.read_log(handle, container, place, PIECE).map_err(log_error)?.bytes);
    keep_parts(blobs, handle, container, log.first(), times, next).map_err(|error| match error {
        LogError::Blob(error) => FilesError::Blob(error),
        LogError::Io(error) => FilesError::Io(error),
        LogError::NotFound => FilesError::Io(std::io::ErrorKind::NotFound.into()),
    })?;
    log.discard().or_else(|error| left_alone(handle, container, error))
}

/// What an attempt put in place of its log is none; nobody can mend that, so it does not hold up the others.
fn left_alone(handle: &Handle, container: &str, error: ReadError) -> Result<(), FilesError> {
    match error {
        ReadError::Io(error) => Err(FilesError::Io(error)),
        ReadError::NoAttempt => Ok(()),
        ReadError::NotAFile | ReadError::BadName(_) => {
            tracing::warn!(%handle, container, %error, "a log is not kept");
            Ok(())
        }
    }
}
