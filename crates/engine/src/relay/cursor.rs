//! How far a sink was told, written down in the store.

use muster_ports::store::{
    Batch, Check, CommitError, Draft, Key, Precondition, ResourceName, Revision, Store, Stored, Write,
};
use muster_types::EventSink;
use serde::{Deserialize, Serialize};

/// Where cursors are kept, by the uid of their sink.
pub const CURSORS: &str = "relaycursors.internal";

/// How far a sink was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cursor {
    /// Every change up to here was told, and that was confirmed.
    pub upto: u64,
    /// Messages that were confirmed.
    pub confirmed: u64,
    /// Messages that were set aside.
    pub dead: u64,
    /// How often changes were forgotten before they were told.
    pub resyncs: u64,
}

fn key(uid: &str) -> Key {
    Key::new(&ResourceName::new(CURSORS), "", uid)
}

fn parse(stored: &Stored) -> Option<Cursor> {
    serde_json::from_slice(stored.json()).ok()
}

impl Cursor {
    /// Where a sink begins that was told nothing yet: it is told what comes after it. One that was changed since says where it
    /// began.
    pub fn first(sink: &EventSink, revision: Revision) -> Self {
        Self { upto: sink.status.confirmed_revision.unwrap_or(revision.0), ..Self::default() }
    }

    /// What is written down; `None` if nothing is, or if it cannot be read.
    pub fn read(store: &Store, uid: &str) -> Option<Self> {
        parse(&store.get(&key(uid))?)
    }

    /// Writes it down, if a condition holds.
    pub async fn write(&self, store: &Store, uid: &str, guard: Check) -> Result<(), CommitError> {
        let key = key(uid);
        let expect = match store.get(&key) {
            Some(stored) => Precondition::At(stored.revision),
            None => Precondition::Absent,
        };
        let fields = serde_json::to_string(self).unwrap_or_default();
        // The revision goes into a field of its own, before the others.
        let draft = Draft::joined("{\"revision\":", &fields.replacen('{', ",", 1));
        let writes = vec![Write::Put { key, expect, draft }];
        store.commit(Batch { checks: vec![guard], writes }).await.map(drop)
    }

    /// Forgets it.
    pub async fn remove(store: &Store, uid: &str) -> Result<(), CommitError> {
        let key = key(uid);
        if store.get(&key).is_none() {
            return Ok(());
        }
        store.commit(Batch::of(Write::Delete { key, expect: Precondition::Exists })).await.map(drop)
    }
}
