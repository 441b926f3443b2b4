//! What a caller asks the store to do, and how it is refused.

use std::sync::Arc;

use super::key::Key;
use super::log::LogError;
use super::object::{Draft, Revision, Stored};

/// What must be true of an object for a batch to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// There is no such object.
    Absent,
    /// There is one, at any revision.
    Exists,
    /// There is one, last changed at this revision.
    At(Revision),
    /// There is no object of its kind at all, whatever its name and namespace.
    NoneOfKind,
}

/// One write of a batch.
#[derive(Debug, Clone)]
pub enum Write {
    /// Stores a new version.
    Put {
        /// Which object.
        key: Key,
        /// What must be there before.
        expect: Precondition,
        /// The new version.
        draft: Draft,
    },
    /// Removes the object.
    Delete {
        /// Which object.
        key: Key,
        /// What must be there before; `Absent` never holds.
        expect: Precondition,
    },
}

impl Write {
    /// The object this write is about.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key, .. } => key,
        }
    }
}

/// A condition on an object that the batch does not write, for example a lease that must still be held.
#[derive(Debug, Clone)]
pub struct Check {
    /// Which object.
    pub key: Key,
    /// What must be there.
    pub expect: Precondition,
}

/// Writes that happen together or not at all. An object may be written once in a batch.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Conditions on objects that are not written.
    pub checks: Vec<Check>,
    /// The writes, in order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// A batch of one write.
    pub fn of(write: Write) -> Self {
        Self { checks: Vec::new(), writes: vec![write] }
    }

    /// The bytes of its new versions.
    pub(super) fn bytes(&self) -> usize {
        self.writes
            .iter()
            .map(|write| if let Write::Put { draft, .. } = write { draft.len() } else { 0 })
            .sum()
    }
}

/// What a batch became.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The revision of the last change; the store's revision at that point.
    pub revision: Revision,
    /// The new versions, one per write; for a deletion the last version at the revision of the deletion.
    pub objects: Vec<Stored>,
}

/// Why a batch did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A precondition did not hold.
    #[error("{key}: expected {expected:?}, found {}", .found.as_ref().map_or_else(|| "nothing".to_owned(), |stored| format!("revision {}", stored.revision)))]
    Conflict {
        /// Which object.
        key: Key,
        /// What the batch expected.
        expected: Precondition,
        /// What was there.
        found: Option<Stored>,
    },
    /// An object occurs twice in the batch.
    #[error("{0} is written twice in one batch")]
    WrittenTwice(Key),
    /// The log refused the rows; nothing happened and later batches may work.
    #[error("the store could not take the change: {0}")]
    Refused(Arc<LogError>),
    /// The log went away in the middle of the write. It happened or it did not, and nothing of it will happen later than that is
    /// found out: look, and try again.
    #[error("it is not known whether the change was made; look before trying again: {0}")]
    Unknown(Arc<LogError>),
    /// The log failed in a way that leaves open what is on disk; the store takes no more writes until a restart.
    #[error("the store is read-only after a failed write; restart the server: {0}")]
    Broken(Arc<LogError>),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
