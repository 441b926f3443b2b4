//! Decides the order and the outcome of the batches of a group, before any of it is durable.
//!
//! Batches are judged one after the other, each on top of what the ones before it would make. A batch that is
//! refused leaves no trace: it takes no revision.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::batch::{Batch, CommitError, Committed, Precondition, Write};
use super::key::{Key, ResourceName};
use super::log::Row;
use super::object::{Change, Revision, Stored};
use super::state::State;
use crate::clock::Millis;

/// The changes of a group so far.
#[derive(Default)]
pub(super) struct Pending {
    revision: Revision,
    pub changes: Vec<Arc<Change>>,
    /// What the changes made of each object; `None` is deleted.
    objects: HashMap<Key, Option<Stored>>,
}

impl Pending {
    pub fn new(state: &State) -> Self {
        Self { revision: state.revision, ..Self::default() }
    }

    /// Puts a batch behind those before it. `state` is the one this was made from, all along.
    pub fn order(&mut self, state: &State, now: Millis, batch: &Batch) -> Result<Committed, CommitError> {
        for check in &batch.checks {
            self.check(state, &check.key, check.expect)?;
        }
        let mut written = HashSet::with_capacity(batch.writes.len());
        for write in &batch.writes {
            if !written.insert(write.key()) {
                return Err(CommitError::WrittenTwice(write.key().clone()));
            }
            let expect = match write {
                // A deletion needs something to delete.
                Write::Delete { expect: Precondition::Absent, .. } => Precondition::Exists,
                Write::Put { expect, .. } | Write::Delete { expect, .. } => *expect,
            };
            self.check(state, write.key(), expect)?;
        }
        let objects = batch.writes.iter().filter_map(|write| self.write(state, now, write)).collect();
        Ok(Committed { revision: self.revision, objects })
    }

    fn find(&self, state: &State, key: &Key) -> Option<Stored> {
        match self.objects.get(key) {
            Some(pending) => pending.clone(),
            None => state.get(key).cloned(),
        }
    }

    /// Some object of a kind. Looks at those that the group deletes, and at all that it touches; both are few.
    fn find_any(&self, state: &State, resource: &ResourceName) -> Option<Stored> {
        let mut made = self.objects.iter().filter(|(key, _)| key.resource == *resource);
        if let Some(made) = made.find_map(|(_, object)| object.clone()) {
            return Some(made);
        }
        let snapshot = state.snapshot(resource);
        let left = |stored: &&Stored| {
            let key = Key { resource: resource.clone(), path: stored.path.clone() };
            !self.objects.contains_key(&key)
        };
        snapshot.range(None, None).find(left).cloned()
    }

    fn check(&self, state: &State, key: &Key, expected: Precondition) -> Result<(), CommitError> {
        let found = match expected {
            Precondition::NoneOfKind => self.find_any(state, &key.resource),
            Precondition::Absent | Precondition::Exists | Precondition::At(_) => self.find(state, key),
        };
        let holds = match (expected, &found) {
            (Precondition::Absent | Precondition::NoneOfKind, None) | (Precondition::Exists, Some(_)) => true,
            (Precondition::At(revision), Some(stored)) => stored.revision == revision,
            (Precondition::Absent | Precondition::NoneOfKind, Some(_))
            | (Precondition::Exists | Precondition::At(_), None) => false,
        };
        if holds { Ok(()) } else { Err(CommitError::Conflict { key: key.clone(), expected, found }) }
    }

    /// `None` only for a deletion of nothing, which the checks refused before.
    fn write(&mut self, state: &State, now: Millis, write: &Write) -> Option<Stored> {
        let previous = self.find(state, write.key());
        let revision = self.revision.next();
        let (key, object, deleted) = match write {
            Write::Put { key, draft, .. } => {
                // One path text per object, however often it is written.
                let path =
                    previous.as_ref().map_or_else(|| key.path.clone(), |previous| previous.path.clone());
                let object = Stored::from_draft(path, draft, revision);
                (key, object, false)
            }
            Write::Delete { key, .. } => (key, previous.as_ref()?.restamped(revision), true),
        };
        self.revision = revision;
        let resource = state.shared_name(&key.resource);
        self.objects.insert(key.clone(), (!deleted).then(|| object.clone()));
        let change = Change { at: now, resource, object: object.clone(), previous, deleted };
        self.changes.push(Arc::new(change));
        Some(object)
    }

    /// Puts a row that somebody else wrote behind what there is. The state, as above.
    pub fn take_in(&mut self, state: &State, row: Foreign) {
        let key = Key { resource: state.shared_name(&row.resource), path: row.path };
        let previous = self.find(state, &key);
        let path = previous.as_ref().map_or_else(|| key.path.clone(), |previous| previous.path.clone());
        let deleted = row.json.is_none();
        let object = match (row.json, &previous) {
            (Some(json), _) => Stored::from_row(path, row.revision, row.splice, &json),
            (None, Some(previous)) => previous.restamped(row.revision),
            // Whoever wrote it saw something to delete. The revision is taken all the same.
            (None, None) => Stored::from_row(path, row.revision, 0, &[]),
        };
        self.revision = row.revision;
        let resource = key.resource.clone();
        self.objects.insert(key, (!deleted).then(|| object.clone()));
        self.changes.push(Arc::new(Change { at: row.at, resource, object, previous, deleted }));
    }
}

/// A row that somebody else wrote.
pub(super) struct Foreign {
    revision: Revision,
    at: Millis,
    resource: ResourceName,
    path: Arc<str>,
    splice: u32,
    json: Option<Box<[u8]>>,
}

impl From<Row<'_>> for Foreign {
    fn from(row: Row<'_>) -> Self {
        Self {
            revision: row.revision,
            at: row.at,
            resource: ResourceName::new(row.resource),
            path: row.path.into(),
            splice: row.splice,
            json: row.json.map(Box::from),
        }
    }
}
