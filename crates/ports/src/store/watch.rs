//! Following the changes of a store.

use std::sync::Arc;

use tokio::sync::watch;

use super::key::ResourceName;
use super::object::{Change, Revision};
use super::store_handle::Store;

/// Which changes are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchScope {
    /// Changes of every kind, in one order.
    All,
    /// Changes of one kind.
    Resource(ResourceName),
}

/// Some changes, in order.
#[derive(Debug)]
pub struct Page {
    /// The changes.
    pub changes: Vec<Arc<Change>>,
    /// Nothing was left out up to this revision.
    pub upto: Revision,
}

/// Why a watch cannot go on from where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The changes since then were forgotten; list again.
    #[error("too old resource version: {asked} ({oldest})")]
    Gone {
        /// Where the watch is.
        asked: Revision,
        /// The oldest revision that can be watched from.
        oldest: Revision,
    },
    /// The revision does not exist yet; it is of another store.
    #[error("too large resource version: {asked}, current: {newest}")]
    Future {
        /// Where the watch wants to start.
        asked: Revision,
        /// The newest revision.
        newest: Revision,
    },
    /// The store was closed, and everything before that was delivered.
    #[error("the store is closed")]
    Closed,
}

/// A position in the changes of a store. Cancel-safe: a dropped `next` loses nothing.
///
/// A watch that does not keep up with compaction says [`WatchError::Gone`]. One that waits for changes of a quiet
/// kind is never behind, however much of other kinds is forgotten meanwhile.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    scope: WatchScope,
    position: Revision,
    wake: watch::Receiver<Revision>,
}

impl Watch {
    pub(super) fn new(
        store: Store,
        scope: WatchScope,
        from: Revision,
        wake: watch::Receiver<Revision>,
    ) -> Self {
        Self { store, scope, position: from, wake }
    }

    /// Everything up to here was delivered.
    pub fn position(&self) -> Revision {
        self.position
    }

    /// What there is now, possibly nothing; at most `most` changes.
    pub fn poll_page(&mut self, most: usize) -> Result<Vec<Arc<Change>>, WatchError> {
        let page = self.store.page(&self.scope, self.position, most)?;
        self.position = page.upto;
        Ok(page.changes)
    }

    /// Waits for changes; at least one, at most `most`, which must not be zero.
    pub async fn next(&mut self, most: usize) -> Result<Vec<Arc<Change>>, WatchError> {
        loop {
            self.wake.borrow_and_update();
            let changes = self.poll_page(most)?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            // Closing wakes too; the channel lives as long as the store this watch holds.
            self.wake.changed().await.map_err(|_| WatchError::Closed)?;
        }
    }
}
