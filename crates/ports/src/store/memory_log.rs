//! The in-memory fake of a log. Its rows outlive the store that wrote them, so a restart can be played.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::log::{Forget, Header, Log, LogError, Row};
use super::object::{Change, Revision};

/// Changes in memory, shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    changes: BTreeMap<Revision, Arc<Change>>,
    header: Header,
    fail_next: Option<LogError>,
}

impl MemoryLog {
    /// Makes the next append fail.
    pub fn fail_next(&self, error: LogError) {
        self.0.lock().fail_next = Some(error);
    }

    /// How many rows are kept.
    pub fn rows(&self) -> usize {
        self.0.lock().changes.len()
    }
}

impl Log for MemoryLog {
    fn header(&mut self) -> Result<Header, LogError> {
        Ok(self.0.lock().header)
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.0.lock().changes.values().for_each(|change| sink(Row::from(&**change)));
        Ok(())
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        let mut inner = self.0.lock();
        if let Some(error) = inner.fail_next.take() {
            return Err(error);
        }
        for change in changes {
            inner.header.revision = change.revision();
            inner.changes.insert(change.revision(), change.clone());
        }
        for revision in &forget.revisions {
            inner.changes.remove(revision);
        }
        inner.header.revision = inner.header.revision.max(forget.given);
        inner.header.compacted = inner.header.compacted.max(forget.compacted);
        Ok(())
    }
}
