//! What the guarantees are told with: a store that can be restarted, a clock, and short words for writes.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::timeout;

use super::Subject;
use crate::clock::ManualClock;
use crate::store::{
    Batch, Change, CommitError, Committed, Draft, History, Hold, Key, Log, Precondition, ResourceName,
    Revision, Row, Store, Watch, WatchError, WatchScope, Write,
};

/// A test that takes longer hangs.
const DEADLINE: Duration = Duration::from_mins(2);

/// Runs a test to its end.
pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { timeout(DEADLINE, test).await.expect("the test hangs") })
}

pub(super) struct World<'a, S> {
    subject: &'a S,
    pub clock: ManualClock,
    pub history: History,
}

impl<'a, S: Subject> World<'a, S> {
    /// Nothing is ever forgotten.
    pub fn new(subject: &'a S) -> Self {
        let history = History {
            max_changes: usize::MAX,
            max_age: Duration::MAX,
            max_bytes: usize::MAX,
            fresh: Duration::MAX,
        };
        Self { subject, clock: ManualClock::default(), history }
    }

    /// Only so many changes are remembered.
    pub fn remembering(subject: &'a S, max_changes: usize) -> Self {
        let world = Self::new(subject);
        Self { history: History { max_changes, ..world.history }, ..world }
    }

    /// Opens the store. The one before is gone.
    pub fn open(&self) -> Store {
        Store::open(self.subject.open().unwrap(), self.history, self.clock.clone()).unwrap()
    }

    /// Opens the store with everything held.
    pub fn open_holding(&self, name: &str, hold: Hold) -> Store {
        let log = self.subject.open().unwrap();
        Store::open_holding(log, self.history, self.clock.clone(), Some((name, hold))).unwrap()
    }

    pub fn open_inline(&self) -> Store {
        Store::open_inline(self.subject.open().unwrap(), self.history, self.clock.clone()).unwrap()
    }

    /// The revisions of the rows in the log. No store is open.
    pub fn rows(&self) -> Vec<Revision> {
        let mut revisions = Vec::new();
        self.each_row(|row| revisions.push(row.revision));
        revisions
    }

    pub fn each_row(&self, mut sink: impl FnMut(Row<'_>)) {
        let mut log = self.subject.open().unwrap();
        log.header().unwrap();
        log.load(&mut sink).unwrap();
    }
}

pub(super) fn tasks() -> ResourceName {
    ResourceName::new("tasks.example.dev")
}

pub(super) fn jobs() -> ResourceName {
    ResourceName::new("jobs.example.dev")
}

pub(super) fn task(name: &str) -> Key {
    Key::new(&tasks(), "default", name)
}

pub(super) fn job(name: &str) -> Key {
    Key::new(&jobs(), "default", name)
}

/// The JSON of an object at a revision.
pub(super) fn json(text: &str, revision: Revision) -> Vec<u8> {
    format!("{{\"revision\":\"{revision}\",\"text\":\"{text}\"}}").into_bytes()
}

pub(super) fn draft(text: &str) -> Draft {
    Draft::joined("{\"revision\":\"", &format!("\",\"text\":\"{text}\"}}"))
}

pub(super) fn create(key: &Key, text: &str) -> Write {
    Write::Put { key: key.clone(), expect: Precondition::Absent, draft: draft(text) }
}

pub(super) fn update(key: &Key, text: &str) -> Write {
    Write::Put { key: key.clone(), expect: Precondition::Exists, draft: draft(text) }
}

pub(super) fn delete(key: &Key) -> Write {
    Write::Delete { key: key.clone(), expect: Precondition::Exists }
}

pub(super) fn all(writes: impl IntoIterator<Item = Write>) -> Batch {
    Batch { checks: Vec::new(), writes: writes.into_iter().collect() }
}

pub(super) async fn commit(store: &Store, write: Write) -> Committed {
    store.commit(Batch::of(write)).await.unwrap()
}

pub(super) async fn refusal(store: &Store, batch: Batch) -> CommitError {
    store.commit(batch).await.unwrap_err()
}

/// Gives compaction, which works in slices, as many turns as it needs at most.
pub(super) async fn compact(store: &Store) {
    for _ in 0..32 {
        store.commit(Batch::default()).await.unwrap();
    }
}

/// What a watch has to say now, taken in pages of `page`.
pub(super) fn drain(watch: &mut Watch, page: usize) -> Result<Vec<String>, WatchError> {
    let mut seen = Vec::new();
    loop {
        let changes = watch.poll_page(page)?;
        if changes.is_empty() {
            return Ok(seen);
        }
        seen.extend(changes.iter().map(|change| describe(change)));
    }
}

/// What a watch from a revision has to say now.
pub(super) fn watched(store: &Store, scope: &WatchScope, from: Revision) -> Result<Vec<String>, WatchError> {
    drain(&mut store.watch(scope.clone(), from)?, usize::MAX)
}

/// A change as a line: everything a watcher can see of it.
pub(super) fn describe(change: &Change) -> String {
    let previous =
        change.previous.as_ref().map_or_else(|| "nothing".to_owned(), |object| object.revision.to_string());
    let verb = if change.deleted { "deleted" } else { "put" };
    let json = String::from_utf8_lossy(change.object.json());
    format!("{}: {verb} {} after {previous} at {}: {json}", change.revision(), change.key(), change.at.0)
}

/// The objects of a kind as lines.
pub(super) fn listed(store: &Store, resource: &ResourceName) -> Vec<String> {
    let snapshot = store.snapshot(resource);
    let line = |path: &str, json: &[u8]| format!("{path} {}", String::from_utf8_lossy(json));
    snapshot.range(None, None).map(|object| line(&object.path, object.json())).collect()
}
