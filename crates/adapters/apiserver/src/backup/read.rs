//! Reads a backup: only to check it, or to make everything in it again.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use muster_ports::blobs::{BlobError, BlobKey, Blobs};
use muster_ports::clock::Millis;
use muster_ports::store::{Change, Forget, Log, LogError, Revision, Row};
use tar::Archive;
use thiserror::Error;

use super::{FILES, FORMAT, HEAD, Head, ROWS, RowHead, SUM, Sum, Summed};

/// Objects that are written at once,
const BATCH: usize = 1024;
/// or as many as have this many bytes.
const BATCH_BYTES: u64 = 4 << 20;
/// Longest line before an object, and longest of the small entries.
const MAX_LINE: u64 = 64 * 1024;
/// Bytes of a file that are read at once.
const BLOCK: usize = 256 * 1024;

/// Why a backup cannot be used.
#[derive(Debug, Error)]
pub enum BackupError {
    /// It is something else.
    #[error("it is no backup of Muster: {0}")]
    Foreign(String),
    /// It was made by a newer version.
    #[error("it has the format {0}, which this version does not know; use a newer one")]
    TooNew(u32),
    /// Its end is missing, or it was changed.
    #[error("it is not whole: {0}; make it again, or take another one")]
    Torn(String),
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The store did not take an object.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file could not be kept.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// What is in a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The moment that it shows.
    pub revision: Revision,
    /// Objects.
    pub rows: u64,
    /// Files.
    pub files: u64,
}

/// Where everything is made again. Nothing is there before.
pub struct Into<'a> {
    /// Objects.
    pub log: &'a mut dyn Log,
    /// Files.
    pub blobs: &'a dyn Blobs,
    /// When it is done.
    pub now: Millis,
}

/// Reads all of it. What was made of it counts only if this succeeds.
pub fn read(archive: impl Read, mut into: Option<Into<'_>>) -> Result<Summary, BackupError> {
    let mut archive = Archive::new(archive);
    let mut sum = Sum::default();
    let mut summary: Option<Summary> = None;
    let mut rows_came = false;
    for entry in archive.entries().map_err(|error| BackupError::Foreign(error.to_string()))? {
        let mut entry = entry.map_err(|error| match summary {
            Some(_) => BackupError::Torn(error.to_string()),
            None => BackupError::Foreign(error.to_string()),
        })?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let size = entry.size();
        let Some(known) = &mut summary else {
            let bytes = if name == HEAD { small(&mut entry)? } else { Vec::new() };
            summary = Some(first(&bytes)?);
            sum.begin(&name, size);
            sum.add(&bytes);
            continue;
        };
        if name == SUM {
            let found = small(&mut entry)?;
            if found != sum.end().as_bytes() || !rows_came {
                return Err(BackupError::Torn("its sum is another one".to_owned()));
            }
            return Ok(*known);
        }
        sum.begin(&name, size);
        let mut content = Summed { content: entry.take(size), sum: &mut sum };
        if name == ROWS {
            rows_came = true;
            let mut content = BufReader::with_capacity(BLOCK, &mut content);
            take_rows(&mut content, known, into.as_mut())?;
        } else if let Some(key) = name.strip_prefix(FILES) {
            known.files += 1;
            take_file(&mut content, key, into.as_ref())?;
        } else {
            return Err(BackupError::Foreign(format!("there is `{name}` in it")));
        }
        if content.content.limit() > 0 {
            return Err(BackupError::Torn(format!("it ends in the middle of {name}")));
        }
    }
    match summary {
        Some(_) => Err(BackupError::Torn("its end is missing".to_owned())),
        None => Err(BackupError::Foreign("it is empty".to_owned())),
    }
}

fn first(bytes: &[u8]) -> Result<Summary, BackupError> {
    let head: Head = serde_json::from_slice(bytes)
        .map_err(|_| BackupError::Foreign(format!("it does not begin with {HEAD}")))?;
    if head.format != FORMAT {
        return Err(BackupError::TooNew(head.format));
    }
    Ok(Summary { revision: Revision(head.revision), rows: head.rows, files: 0 })
}

fn small(entry: &mut impl Read) -> Result<Vec<u8>, BackupError> {
    let mut bytes = Vec::new();
    entry.take(MAX_LINE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn take_rows(
    content: &mut impl BufRead,
    known: &Summary,
    mut into: Option<&mut Into<'_>>,
) -> Result<(), BackupError> {
    let torn = |why: &str| BackupError::Torn(why.to_owned());
    let (mut line, mut json) = (Vec::new(), Vec::new());
    let (mut changes, mut bytes, mut count, mut last) = (Vec::new(), 0, 0, Revision::ZERO);
    loop {
        line.clear();
        if content.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let head: RowHead<'_> =
            serde_json::from_slice(&line).map_err(|_| torn("an object is not described"))?;
        json.clear();
        content.take(head.length).read_to_end(&mut json)?;
        let revision = Revision(head.revision);
        if (json.len() as u64) < head.length || revision <= last || revision > known.revision {
            return Err(torn("an object is not as it is described"));
        }
        (last, count) = (revision, count + 1);
        let Some(into) = &mut into else { continue };
        let (resource, path, splice) = (&*head.resource, &*head.path, head.splice);
        let row = Row { revision, at: into.now, resource, path, splice, json: Some(json.as_slice()) };
        changes.push(Arc::new(Change::from(row)));
        bytes += head.length;
        if changes.len() >= BATCH || bytes >= BATCH_BYTES {
            into.log.append(&changes, &Forget::default())?;
            changes.clear();
            bytes = 0;
        }
    }
    if count != known.rows {
        return Err(torn(&format!("it has {count} objects instead of {}", known.rows)));
    }
    if let Some(into) = into {
        let ends = Forget { revisions: Vec::new(), compacted: known.revision, given: known.revision };
        into.log.append(&changes, &ends)?;
    }
    Ok(())
}

fn take_file(content: &mut impl Read, key: &str, into: Option<&Into<'_>>) -> Result<(), BackupError> {
    let key = BlobKey::new(key)?;
    match into {
        None => io::copy(content, &mut io::sink()).map(drop)?,
        Some(into) => {
            let mut writer = into.blobs.write(&key)?;
            io::copy(&mut BufReader::with_capacity(BLOCK, content), &mut writer)?;
            writer.finish()?;
        }
    }
    Ok(())
}
