//! Writes the history of a seed: what was committed, as a watch shows it, and what happened outside, each at its place.

use std::sync::Arc;

use muster_ports::clock::{Clock, ManualClock, Millis};
use muster_ports::runtime::Handle;
use muster_ports::store::{Change, Store, Watch, WatchScope};
use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::failing_log::Fate;
use crate::judge::history::{Commit, Entry, Program, What};

/// A history in the making. Clones write the same.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Inner>>);

struct Inner {
    entries: Vec<Entry>,
    watch: Option<Watch>,
    clock: ManualClock,
    fate: Fate,
    /// Commits that the disk refused, as far as they were written down.
    refused: i64,
    /// The steady clock.
    at: i64,
    wrong: Option<String>,
}

impl Recorder {
    /// Nothing happened yet.
    pub fn new(clock: ManualClock, fate: Fate) -> Self {
        let (entries, watch, refused, at, wrong) = (Vec::new(), None, 0, 0, None);
        Self(Arc::new(Mutex::new(Inner { entries, watch, clock, fate, refused, at, wrong })))
    }

    /// From here on, what is committed to this store is written down. What was committed to the last one was, before.
    pub fn follow(&self, store: &Store) -> Result<(), String> {
        self.look();
        let watch = store.watch(WatchScope::All, store.revision()).map_err(|error| error.to_string())?;
        self.0.lock().watch = Some(watch);
        Ok(())
    }

    /// What was committed is written down, and nothing more of that store.
    pub fn leave(&self) {
        self.look();
        self.0.lock().watch = None;
    }

    /// Time passes.
    pub fn pass(&self, millis: i64) {
        let mut inner = self.0.lock();
        inner.look();
        inner.at += millis;
    }

    /// The steady clock.
    pub fn at(&self) -> i64 {
        self.0.lock().at
    }

    /// What clocks on the wall show.
    pub fn wall(&self) -> Millis {
        self.0.lock().clock.wall()
    }

    /// Writes down what was committed, and that something was refused.
    pub fn look(&self) {
        self.0.lock().look();
    }

    /// Something happened.
    pub fn note(&self, what: What) {
        let mut inner = self.0.lock();
        inner.look();
        inner.push(what);
    }

    /// Everything that happened, and whether it could be written down.
    pub fn take(&self) -> Result<Vec<Entry>, String> {
        let mut inner = self.0.lock();
        inner.look();
        match inner.wrong.take() {
            Some(wrong) => Err(wrong),
            None => Ok(std::mem::take(&mut inner.entries)),
        }
    }
}

impl Inner {
    fn look(&mut self) {
        let refused = self.fate.refusals();
        if refused > std::mem::replace(&mut self.refused, refused) {
            self.push(What::StoreRefused);
        }
        let Some(watch) = &mut self.watch else { return };
        match watch.poll_page(usize::MAX) {
            Ok(changes) => {
                for change in changes {
                    if let Some(commit) = commit_of(&change) {
                        self.push(What::Change(commit));
                    }
                }
            }
            Err(error) => self.wrong = Some(format!("the history has a gap: {error}")),
        }
    }

    fn push(&mut self, what: What) {
        self.entries.push(Entry { at: self.at, wall: self.clock.wall().0, late: 0, what });
    }
}

/// The change as an entry. Notes that servers keep for themselves are no objects.
fn commit_of(change: &Change) -> Option<Commit> {
    let resource = change.resource.as_str();
    if !resource.ends_with("muster.dev") {
        return None;
    }
    let json = std::str::from_utf8(change.object.json()).ok()?;
    Some(Commit {
        revision: change.revision().0,
        resource: resource.to_owned(),
        path: change.object.path.to_string(),
        deleted: change.deleted,
        object: RawValue::from_string(json.to_owned()).ok()?,
    })
}

/// The program of an attempt.
pub fn program(handle: &Handle, place: &str) -> Program {
    Program { task: handle.task.clone(), attempt: handle.attempt, place: place.to_owned() }
}
