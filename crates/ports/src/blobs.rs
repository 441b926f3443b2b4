//! Files kept with tasks: logs of ended attempts, attachments and buckets.
//!
//! Keys are paths of plain segments. All keys of a task begin with `tasks/<uid>`, so letting go of a task's files is one
//! call. Calls block; callers on an executor use a thread for them.
//!
//! There are no directories of their own: one is there as long as a file is below it, and a name is never both.

pub mod conformance;
mod copy;
mod memory_blobs;

use std::fmt;
use std::io;
use std::path::Path;

use muster_types::name_rules::path_below;
use thiserror::Error;

pub use copy::{CopiedFiles, copy_files};
pub use memory_blobs::MemoryBlobs;

/// Names a file, or all files below a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey(String);

impl BlobKey {
    /// Everything that belongs to a task.
    pub fn of_task(uid: &str) -> Result<Self, BlobError> {
        Self::new(&format!("tasks/{uid}"))
    }

    /// Everything that is kept of a Kubernetes Job.
    pub fn of_kube_job(uid: &str) -> Result<Self, BlobError> {
        Self::of_kube_jobs().join(uid)
    }

    /// Everything that is kept of all Kubernetes Jobs.
    pub fn of_kube_jobs() -> Self {
        Self("kubejobs".to_owned())
    }

    /// A key from its text, which is a path as [`path_below`] has it.
    pub fn new(text: &str) -> Result<Self, BlobError> {
        path_below(text).map_err(|why| BlobError::BadKey { key: text.to_owned(), why })?;
        Ok(Self(text.to_owned()))
    }

    /// The key of something below this one.
    pub fn join(&self, below: &str) -> Result<Self, BlobError> {
        Self::new(&format!("{}/{below}", self.0))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why files cannot be read or kept.
#[derive(Debug, Error)]
pub enum BlobError {
    /// The key names nothing that could exist.
    #[error("`{key}` cannot name a file: {why}")]
    BadKey {
        /// The text.
        key: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// There is no such file.
    #[error("there is no file `{0}`")]
    NotFound(BlobKey),
    /// A file stands where a directory is needed, or the other way round.
    #[error("`{0}` is both a file and a directory; delete one of them first")]
    Clash(BlobKey),
    /// The disk or the service refused.
    #[error("cannot use the file `{key}`: {error}")]
    Io {
        /// Which file.
        key: BlobKey,
        /// What it said.
        error: io::Error,
    },
}

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobEntry {
    /// Path below what was listed.
    pub path: String,
    /// Bytes.
    pub size: u64,
}

/// A file being written. Nobody sees it before [`BlobWriter::finish`]; dropping it leaves what was there before.
pub trait BlobWriter: io::Write + Send {
    /// Puts the file in its place and returns its size. It survives a crash from then on.
    fn finish(self: Box<Self>) -> Result<u64, BlobError>;
}

/// Where files are kept.
pub trait Blobs: Send + Sync + 'static {
    /// Begins to write a file, in place of one of the same name.
    fn write(&self, key: &BlobKey) -> Result<Box<dyn BlobWriter>, BlobError>;

    /// Keeps a file of this machine, which is gone from its old place afterwards. What must survive a power cut is
    /// written to disk by the caller before; a kill of this process loses nothing.
    fn take(&self, key: &BlobKey, file: &Path) -> Result<(), BlobError>;

    /// At most `max` bytes of a file from `offset` on; none at its end.
    fn read(&self, key: &BlobKey, offset: u64, max: usize) -> Result<Vec<u8>, BlobError>;

    /// Size of a file.
    fn size(&self, key: &BlobKey) -> Result<u64, BlobError>;

    /// All files below a key, by path; none if there is nothing.
    fn list(&self, below: &BlobKey) -> Result<Vec<BlobEntry>, BlobError>;

    /// Deletes a file, or everything below a key. Deleting what is not there does nothing.
    fn delete(&self, key: &BlobKey) -> Result<(), BlobError>;

    /// Uids of all tasks that have files, for tidying up after a crash.
    fn tasks(&self) -> Result<Vec<String>, BlobError>;
}
