//! Logs of attempts that ended, where files are kept.
//!
//! `tasks/<uid>/logs/<attempt>/<container>/<base>` holds what was kept of a log; its name is the place of its first byte, later
//! than 0 if the beginning was dropped. `times` beside it says when which part was written. A log that was written within one
//! second needs no file for that: its name is `<base>@<second>`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use muster_types::Millis;

use super::{LogError, LogPart, LogTimes, Logs};
use crate::blobs::{BlobError, BlobKey, Blobs};
use crate::runtime::Handle;

/// Beside the log.
const TIMES: &str = "times";

/// Reads what [`keep_file`] and [`keep_parts`] kept.
#[derive(Clone)]
pub struct KeptLogs {
    blobs: Arc<dyn Blobs>,
}

impl KeptLogs {
    /// The logs that are kept there.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs }
    }

    fn find(&self, handle: &Handle, container: &str) -> Result<Kept, LogError> {
        let below = container_key(handle, container)?;
        let entries = self.blobs.list(&below)?;
        let log = entries.iter().find_map(|entry| Some((parse_name(&entry.path)?, entry)));
        let ((first, second), entry) = log.ok_or(LogError::NotFound)?;
        let times = entries.iter().find(|entry| entry.path == TIMES);
        Ok(Kept {
            key: below.join(&entry.path)?,
            first,
            end: first + entry.size,
            second,
            times: times.map(|times| Ok::<_, BlobError>((below.join(TIMES)?, times.size))).transpose()?,
        })
    }
}

/// A log that is there.
struct Kept {
    key: BlobKey,
    first: u64,
    end: u64,
    /// When all of it was written, if that was within one.
    second: Option<i64>,
    times: Option<(BlobKey, u64)>,
}

impl Logs for KeptLogs {
    fn read(&self, handle: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
        let Kept { key, first, end, .. } = self.find(handle, container)?;
        let offset = offset.clamp(first, end);
        let wanted = usize::try_from(end - offset).unwrap_or(usize::MAX).min(max);
        let mut bytes = Vec::new();
        while bytes.len() < wanted {
            let place = offset - first + bytes.len() as u64;
            match gone_is_not_found(self.blobs.read(&key, place, wanted - bytes.len()))? {
                more if more.is_empty() => break,
                more if bytes.is_empty() => bytes = more,
                more => bytes.extend(more),
            }
        }
        Ok(LogPart { offset, bytes, end })
    }

    fn offset_at(&self, handle: &Handle, container: &str, time: Millis) -> Result<u64, LogError> {
        let Kept { first, end, second, times, .. } = self.find(handle, container)?;
        let times = match times {
            None => LogTimes::new(second.map(|second| (second, first))),
            Some((key, size)) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                LogTimes::decode(&gone_is_not_found(self.blobs.read(&key, 0, size))?)
            }
        };
        Ok(times.offset_at(time, first, end))
    }
}

/// The name of a log that begins at `first`.
fn name(first: u64, times: &LogTimes) -> String {
    match times.only_second() {
        Some(second) => format!("{first}@{second}"),
        None => first.to_string(),
    }
}

/// Where a log begins, and the second in which it was written, by its name.
fn parse_name(name: &str) -> Option<(u64, Option<i64>)> {
    match name.split_once('@') {
        Some((first, second)) => Some((first.parse().ok()?, Some(second.parse().ok()?))),
        None => Some((name.parse().ok()?, None)),
    }
}

/// Files may be let go at any time.
fn gone_is_not_found<T>(done: Result<T, BlobError>) -> Result<T, LogError> {
    done.map_err(|error| match error {
        BlobError::NotFound(_) => LogError::NotFound,
        error => error.into(),
    })
}

/// Where the log of a container is kept, with its times.
pub fn container_key(handle: &Handle, container: &str) -> Result<BlobKey, BlobError> {
    BlobKey::of_task(&handle.task)?.join(&format!("logs/{}/{container}", handle.attempt))
}

/// Keeps a whole log that is one file of this machine, which is gone from there afterwards. Nobody sees a part of it.
pub fn keep_file(
    blobs: &dyn Blobs,
    handle: &Handle,
    container: &str,
    first: u64,
    times: &LogTimes,
    file: &Path,
) -> Result<(), BlobError> {
    keep_times(blobs, handle, container, times)?;
    blobs.take(&container_key(handle, container)?.join(&name(first, times))?, file)
}

/// Keeps a whole log that comes in parts, the first of which begins at `first`; an empty part ends it. Nobody sees a part of
/// it before all are there.
pub fn keep_parts(
    blobs: &dyn Blobs,
    handle: &Handle,
    container: &str,
    first: u64,
    times: &LogTimes,
    mut next: impl FnMut(u64) -> Result<Vec<u8>, LogError>,
) -> Result<(), LogError> {
    keep_times(blobs, handle, container, times)?;
    let key = container_key(handle, container)?.join(&name(first, times))?;
    let mut writer = blobs.write(&key)?;
    let mut place = first;
    loop {
        let part = next(place)?;
        if part.is_empty() {
            break;
        }
        writer.write_all(&part).map_err(|error| BlobError::Io { key: key.clone(), error })?;
        place += part.len() as u64;
    }
    writer.finish()?;
    Ok(())
}

/// Before the log, so that whoever finds it finds them too.
fn keep_times(
    blobs: &dyn Blobs,
    handle: &Handle,
    container: &str,
    times: &LogTimes,
) -> Result<(), BlobError> {
    if !times.is_needed() {
        return Ok(());
    }
    let key = container_key(handle, container)?.join(TIMES)?;
    let mut writer = blobs.write(&key)?;
    writer.write_all(&times.encode()).map_err(|error| BlobError::Io { key: key.clone(), error })?;
    writer.finish()?;
    Ok(())
}
