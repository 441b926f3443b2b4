//! All tasks, in an order that pages are made of. Follows the store from the first time somebody looks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use muster_ports::clock::Clock;
use muster_ports::store::{Change, ResourceName, Revision, Store, Stored, WatchError, WatchScope};
use muster_types::{MilliTimestamp, State, TaskSpec};
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::entry::{Entry, Place, Words};
use crate::samples::{SAMPLE_SECONDS, Samples, Tally, place_of};
use crate::site::resource_of;

/// Changes that are taken in at once.
const SLICE: usize = 1024;
/// Failures that are remembered.
const FAILURES: usize = 20;

/// The tasks of a store, and what was seen of them lately.
pub struct Index {
    store: Store,
    clock: Arc<dyn Clock>,
    tasks: RwLock<Tasks>,
    /// True when all were read.
    is_read: OnceLock<watch::Receiver<bool>>,
}

/// The state of an [`Index`].
#[derive(Default)]
pub struct Tasks {
    /// Those of each state, newest first.
    by_state: [BTreeMap<Place, Entry>; 9],
    /// Where each is found.
    places: HashMap<Arc<str>, (State, Place)>,
    held: BTreeMap<Arc<str>, usize>,
    failures: VecDeque<Arc<str>>,
    words: Words,
    /// What was seen lately.
    pub samples: Samples,
}

impl Index {
    /// An index that knows nothing yet.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { store, clock, tasks: RwLock::default(), is_read: OnceLock::new() })
    }

    /// Begins to read all tasks, if that was not done yet.
    fn begin(self: &Arc<Self>) -> watch::Receiver<bool> {
        let begin = || {
            let (read, is_read) = watch::channel(false);
            tokio::spawn(follow(self.clone(), read));
            is_read
        };
        self.is_read.get_or_init(begin).clone()
    }

    /// The tasks; `None` if they are still being read after a while.
    pub async fn tasks(self: &Arc<Self>, patience: Duration) -> Option<RwLockReadGuard<'_, Tasks>> {
        let mut is_read = self.begin();
        // A sender that is gone says that the store was closed; then there is nothing to show.
        tokio::time::timeout(patience, is_read.wait_for(|is_read| *is_read)).await.ok()?.ok();
        Some(self.tasks.read())
    }

    fn read_all(&self, resource: &ResourceName) -> Revision {
        let snapshot = self.store.snapshot(resource);
        let mut tasks = Tasks::default();
        for stored in snapshot.range(None, None) {
            tasks.put(stored);
        }
        let mut kept = self.tasks.write();
        tasks.samples = std::mem::take(&mut kept.samples);
        if tasks.samples.all().len() == 0 {
            let tally = tasks.tally();
            tasks.samples.take(tally);
        }
        *kept = tasks;
        snapshot.revision
    }
}

async fn follow(index: Arc<Index>, is_read: watch::Sender<bool>) {
    let resource = resource_of::<TaskSpec>();
    loop {
        let (reader, what) = (index.clone(), resource.clone());
        let read = tokio::task::spawn_blocking(move || reader.read_all(&what)).await;
        // An error says that the server ends.
        let Ok(from) = read else { return };
        is_read.send_replace(true);
        let ended = take_in(&index, &resource, from).await;
        if ended == WatchError::Closed {
            return;
        }
        tracing::info!("the console fell behind and reads all tasks again");
    }
}

async fn take_in(index: &Index, resource: &ResourceName, from: Revision) -> WatchError {
    let mut watch = match index.store.watch(WatchScope::Resource(resource.clone()), from) {
        Ok(watch) => watch,
        Err(error) => return error,
    };
    let mut samples = tokio::time::interval(Duration::from_secs(SAMPLE_SECONDS));
    samples.set_missed_tick_behavior(MissedTickBehavior::Delay);
    samples.tick().await;
    loop {
        tokio::select! {
            changes = watch.next(SLICE) => match changes {
                Ok(changes) => {
                    let now = index.clock.now().to_timestamp();
                    let mut tasks = index.tasks.write();
                    for change in &changes {
                        tasks.observe(change, now);
                    }
                }
                Err(error) => return error,
            },
            _ = samples.tick() => {
                let mut tasks = index.tasks.write();
                let tally = tasks.tally();
                tasks.samples.take(tally);
            }
        }
    }
}

impl Tasks {
    fn observe(&mut self, change: &Change, now: muster_types::Timestamp) {
        let old = self.remove(&change.object.path);
        if change.deleted {
            return;
        }
        self.put(&change.object);
        let Some(new) = self.get(&change.object.path) else { return };
        let was = old.map(|old| old.state);
        let (state, created, started) = (new.state, new.created, new.started);
        if was.is_some_and(|was| was != state) {
            if state.is_terminal() {
                self.samples.note_end();
            }
            if state == State::Failed {
                self.failures.push_front(change.object.path.clone());
                self.failures.truncate(FAILURES);
            }
            let has_run = |state: State| state == State::Running || state.is_terminal();
            if was.is_some_and(|was| !has_run(was)) && has_run(state) && started.is_some() {
                self.samples.note_wait(
                    started.map_or(now.as_second(), MilliTimestamp::as_second) - created.as_second(),
                );
            }
        }
    }

    fn put(&mut self, stored: &Stored) {
        let Some(entry) = Entry::of(stored, &mut self.words) else { return };
        if !entry.held_by.is_empty() && !entry.state.is_terminal() {
            *self.held.entry(entry.held_by.clone()).or_default() += 1;
        }
        self.places.insert(entry.path.clone(), (entry.state, entry.place()));
        self.by_state[place_of(entry.state)].insert(entry.place(), entry);
    }

    fn get(&self, path: &str) -> Option<&Entry> {
        let (state, place) = self.places.get(path)?;
        self.by_state[place_of(*state)].get(place)
    }

    fn remove(&mut self, path: &str) -> Option<Entry> {
        let (state, place) = self.places.remove(path)?;
        let entry = self.by_state[place_of(state)].remove(&place)?;
        if !entry.held_by.is_empty()
            && !entry.state.is_terminal()
            && let Some(count) = self.held.get_mut(&entry.held_by)
        {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&entry.held_by);
            }
        }
        Some(entry)
    }

    /// How many are in each state.
    pub fn tally(&self) -> Tally {
        std::array::from_fn(|place| self.by_state[place].len())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// How many tasks each rule holds back.
    pub fn held(&self) -> impl Iterator<Item = (&str, usize)> {
        self.held.iter().map(|(rule, count)| (&**rule, *count))
    }

    /// Those that failed while somebody looked, newest first; before, the newest that failed.
    pub fn failures(&self, most: usize) -> Vec<&Entry> {
        let seen = self.failures.iter().filter_map(|path| self.get(path));
        let seen: Vec<_> = seen.filter(|entry| entry.state == State::Failed).collect();
        let older = self.by_state[place_of(State::Failed)].values();
        let is_new = |entry: &&Entry| !seen.iter().any(|known| known.path == entry.path);
        let older: Vec<_> = older.filter(is_new).take(most.saturating_sub(seen.len())).collect();
        seen.into_iter().chain(older).take(most).collect()
    }

    /// Those in some states, newest first.
    pub fn newest<'a>(&'a self, states: &[State]) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let mut heads: Vec<_> =
            states.iter().map(|state| self.by_state[place_of(*state)].iter().peekable()).collect();
        std::iter::from_fn(move || {
            let next = heads
                .iter_mut()
                .enumerate()
                .filter_map(|(at, head)| head.peek().map(|(place, _)| (*place, at)))
                .min()
                .map(|(_, at)| at)?;
            heads[next].next().map(|(_, entry)| entry)
        })
    }
}

#[cfg(test)]
mod tests {
    use muster_ports::clock::SystemClock;
    use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, Write};

    use super::*;

    #[test]
    fn a_page_that_will_not_wait_goes_without_tasks_and_a_patient_one_has_them_all() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().max_blocking_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            let store = Store::open(MemoryLog::default(), History::default(), SystemClock).expect("a store");
            let key = Key::new(&resource_of::<TaskSpec>(), "default", "one");
            let (before, after) =
                (r#"{"metadata":{"resourceVersion":""#, r#""},"status":{"state":"Failed"}}"#);
            let write = Write::Put { key, expect: Precondition::Absent, draft: Draft::joined(before, after) };
            store.commit(Batch::of(write)).await.expect("a commit");
            let index = Index::new(store, Arc::new(SystemClock));
            // The only thread that could read them is busy.
            let (go, gone) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || gone.recv().is_err());
            assert!(index.tasks(Duration::ZERO).await.is_none());
            drop(go);
            assert!(busy.await.expect("it ends"));
            let tasks = index.tasks(Duration::MAX).await.expect("whoever waits gets them");
            assert_eq!((tasks.len(), tasks.tally()[place_of(State::Failed)]), (1, 1));
        });
    }
}
