//! The durable part of a store, which is all that a database adapter implements.

use std::sync::Arc;

use super::key::ResourceName;
use super::object::{Change, Revision, Stored};
use crate::clock::Millis;

/// One change as it is kept. Borrowed, because a start reads millions of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Position in the global order; the primary key.
    pub revision: Revision,
    /// When it was committed.
    pub at: Millis,
    /// Kind.
    pub resource: &'a str,
    /// `namespace/name`.
    pub path: &'a str,
    /// Where the digits of the revision start in the JSON.
    pub splice: u32,
    /// The object; `None` is a deletion.
    pub json: Option<&'a [u8]>,
}

impl<'a> From<&'a Change> for Row<'a> {
    fn from(change: &'a Change) -> Self {
        Self {
            revision: change.revision(),
            at: change.at,
            resource: change.resource.as_str(),
            path: &change.object.path,
            splice: change.object.splice(),
            json: (!change.deleted).then(|| change.object.json()),
        }
    }
}

impl From<Row<'_>> for Change {
    /// The change as far as a row tells: what was there before is in another one.
    fn from(row: Row<'_>) -> Self {
        let json = row.json.unwrap_or_default();
        let object = Stored::from_row(row.path.into(), row.revision, row.splice, json);
        Self {
            at: row.at,
            resource: ResourceName::new(row.resource),
            object,
            previous: None,
            deleted: row.json.is_none(),
        }
    }
}

/// What the log knows besides its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The highest revision ever given out, even if its row was forgotten since.
    pub revision: Revision,
    /// Changes up to this one can no longer be watched.
    pub compacted: Revision,
}

/// Rows that are no longer needed.
#[derive(Debug, Clone, Default)]
pub struct Forget {
    /// Rows to remove.
    pub revisions: Vec<Revision>,
    /// The compaction point, which is never below a change that these rows were part of. It only grows.
    pub compacted: Revision,
    /// Revisions up to this one were given out, whatever rows there are.
    pub given: Revision,
}

/// Why the log did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no room; nothing was written.
    #[error("no space left: {0}")]
    Full(String),
    /// What is stored cannot be read or is not what was written.
    #[error("{0}")]
    Corrupt(String),
    /// Another process has the log open.
    #[error("{0}")]
    InUse(String),
    /// The log was written by a newer version.
    #[error("{0}")]
    TooNew(String),
    /// Somebody else wrote first; nothing was written. What they wrote is to be followed, and then the append tried again.
    #[error("others wrote meanwhile")]
    Behind,
    /// Others wrote more than the log remembers; everything is to be loaded again.
    #[error("others wrote more than the log remembers")]
    Forgotten,
    /// The database cannot be reached or takes no writes now; nothing was written.
    #[error("{0}")]
    Away(String),
    /// The database went away in the middle of a write. Whether it was written is found out when it is back.
    #[error("{0}")]
    Unknown(String),
    /// Anything else; what is on disk is not known.
    #[error("{0}")]
    Io(String),
}

impl LogError {
    /// True if nothing was written and a later try may work.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Full(_) | Self::Behind | Self::Forgotten | Self::Away(_) => true,
            Self::Corrupt(_) | Self::InUse(_) | Self::TooNew(_) | Self::Unknown(_) | Self::Io(_) => false,
        }
    }

    /// True if it is not known whether something was written, and a later try may work all the same.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

/// An append-only log of rows; dropping it closes it.
///
/// A log that one process has for itself needs no more than the first three. One that several processes share appends only on
/// top of what was loaded, followed and appended so far: then nobody else wrote in between.
///
/// What comes back from [`Log::load`] is what went into [`Log::append`], or the load fails with
/// [`LogError::Corrupt`]: an adapter checks what it reads, rows that are missing included.
pub trait Log: Send + 'static {
    /// What is known besides the rows. Called before each load.
    fn header(&mut self) -> Result<Header, LogError>;

    /// Feeds every row to `sink`, in growing order of revision.
    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError>;

    /// Appends and forgets in one transaction. When it returns, the rows are on disk; when it fails with a
    /// refusal, nothing changed.
    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError>;

    /// Calls `news` whenever somebody else may have written. False if nobody else can.
    fn listen(&mut self, news: Box<dyn Fn() + Send + Sync>) -> bool {
        drop(news);
        false
    }

    /// Feeds the rows that others wrote since to `sink`, in growing order of revision and without a gap. After
    /// [`LogError::Behind`] nobody else writes until the next append.
    fn follow(&mut self, _sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        Ok(())
    }

    /// True if others are kept from writing until the next append, even an empty one.
    fn is_waiting(&self) -> bool {
        false
    }
}
