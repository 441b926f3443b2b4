//! The loop of schedules: it makes their runs and writes down how they stand.
//!
//! It has no runtime: all it does is write to the store. A run is written in one batch with the status that says it was made,
//! under a name that follows from its time or its trigger, so no stop of the server can make it twice or lose it. Decisions
//! are those of `muster-workflows`.
//!
//! A schedule costs nothing until it is due: times lie in an index, and only what is due or changed is looked at. Times are
//! those of the wall clock; when it jumps, every schedule is looked at.

mod entry;
mod intake;
mod live;
mod making;
mod run_brief;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::join_all;
use muster_ports::clock::{Clock, Millis};
use muster_ports::store::{Batch, CommitError, Key, ResourceName, Store, Watch, WatchError, WatchScope};
use muster_types::Timestamp;

use crate::intake::Intake as _;
use crate::refusals::Refusals;
use entry::{Entry, Place, RunKey};
pub use live::run;
use making::{Made, make};

/// Schedules looked at in one cycle.
const SLICE: usize = 4096;
/// Time after which what the store refused is tried again.
const REFUSED_PAUSE: i64 = 1000;

/// A smaller difference between the clocks is no jump: they are not read in the same instant.
const JUMP: i64 = 1000;

/// The time, on both clocks.
#[derive(Debug, Clone, Copy)]
struct Now {
    /// Occurrences and what is due follow it.
    wall: Millis,
    /// Objects are written with it.
    steady: Millis,
}

impl Now {
    /// Seconds by which the wall clock is ahead.
    fn wall_lead(self) -> i64 {
        self.wall.to_timestamp().as_second() - self.steady.to_timestamp().as_second()
    }
}

/// Where things are kept.
struct Names {
    schedules: ResourceName,
    tasks: ResourceName,
    jobs: ResourceName,
    templates: ResourceName,
}

/// The loop's state.
pub struct Schedules {
    store: Store,
    clock: Arc<dyn Clock>,
    names: Names,
    watch: Watch,
    /// How far the wall clock was ahead when it was last read.
    wall_lead: i64,
    /// By `namespace/name`.
    entries: HashMap<Arc<str>, Entry>,
    by_uid: HashMap<String, Arc<str>>,
    /// Runs that are known, and the schedule each belongs to.
    runs: HashMap<RunKey, Place>,
    /// Schedules that wait for the end of other work, by namespace.
    triggered: BTreeMap<String, BTreeSet<Arc<str>>>,
    /// Schedules that wait for a TaskTemplate, by its path.
    without_template: BTreeMap<String, BTreeSet<Arc<str>>>,
    due: BTreeSet<(Millis, Arc<str>)>,
    dirty: BTreeSet<Arc<str>>,
    refusals: Refusals,
}

impl Schedules {
    /// Reads what is stored.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Result<Self, WatchError> {
        let name = |plural: &str| ResourceName::new(&format!("{plural}.muster.dev"));
        let names = Names {
            schedules: name("schedules"),
            tasks: name("tasks"),
            jobs: name("jobs"),
            templates: name("tasktemplates"),
        };
        let mut schedules = Self {
            watch: store.watch(WatchScope::All, store.revision())?,
            store,
            wall_lead: clock.wall_lead(),
            clock,
            names,
            entries: HashMap::new(),
            by_uid: HashMap::new(),
            runs: HashMap::new(),
            triggered: BTreeMap::new(),
            without_template: BTreeMap::new(),
            due: BTreeSet::new(),
            dirty: BTreeSet::new(),
            refusals: Refusals::of("schedules"),
        };
        schedules.read_all();
        Ok(schedules)
    }

    /// One whole cycle. Returns when to look again even if nothing happens.
    pub async fn step(&mut self) -> Result<Option<Millis>, WatchError> {
        self.take_in()?;
        self.observe_jump();
        let now = self.now();
        self.take_due(now.wall);
        let slice: Vec<_> = self.dirty.iter().take(SLICE).cloned().collect();
        let mut made = Vec::new();
        for path in slice {
            self.dirty.remove(&path);
            made.extend(self.look_at(&path, now));
        }
        self.commit(made, now).await;
        self.refusals.tell(now.steady);
        let due = if self.dirty.is_empty() { self.due.first().map(|(at, _)| *at) } else { Some(now.wall) };
        // Whoever waits goes by the steady clock.
        Ok(due.map(|at| Millis(at.0.saturating_sub(now.wall.0).saturating_add(now.steady.0))))
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.wall(), steady: self.clock.now() }
    }

    /// What was due at a time of the old clock is due at another of the new one.
    fn observe_jump(&mut self) {
        let lead = self.clock.wall_lead();
        let jump = lead - self.wall_lead;
        if jump.abs() >= JUMP {
            tracing::warn!(seconds = jump / 1000, "the wall clock jumped; all schedules are looked at");
            self.wall_lead = lead;
            self.dirty.extend(self.entries.keys().cloned());
        }
    }

    fn take_due(&mut self, now: Millis) {
        while let Some((at, path)) = self.due.pop_first() {
            if at > now {
                self.due.insert((at, path));
                break;
            }
            if let Some(entry) = self.entries.get_mut(&path) {
                entry.due = None;
            }
            self.dirty.insert(path);
        }
    }

    /// Decides for one schedule; what is to be written, if anything is.
    fn look_at(&mut self, path: &Arc<str>, now: Now) -> Option<Made> {
        let key = Key { resource: self.names.schedules.clone(), path: path.clone() };
        let stored = self.store.get(&key)?;
        let entry = self.entries.get_mut(path)?;
        let made = match make(&self.store, &self.names, &stored, entry, now) {
            Ok(made) => made,
            Err(error) => {
                tracing::error!(%key, %error, "a stored schedule cannot be read; it is left alone");
                return None;
            }
        };
        if let Some(template) = &made.waits_for {
            self.without_template.entry(template.clone()).or_default().insert(path.clone());
        }
        self.set_due(path, made.wake_at);
        Some(made).filter(|made| !made.batches.is_empty())
    }

    fn set_due(&mut self, path: &Arc<str>, at: Option<Timestamp>) {
        let Some(entry) = self.entries.get_mut(path) else { return };
        if let Some(old) = entry.due.take() {
            self.due.remove(&(old, path.clone()));
        }
        if let Some(at) = at {
            let at = Millis(at.as_second().saturating_mul(1000));
            entry.due = Some(at);
            self.due.insert((at, path.clone()));
        }
    }

    /// Commits what was decided. Schedules are independent of each other, so one that fails harms only itself.
    async fn commit(&mut self, made: Vec<Made>, now: Now) {
        let commits = made.into_iter().map(|made| {
            let store = self.store.clone();
            async move {
                let mut outcome = Ok(());
                for batch in &made.batches {
                    outcome = commit_one(&store, batch).await;
                    if outcome.is_err() {
                        break;
                    }
                }
                (made, outcome)
            }
        });
        for (made, outcome) in join_all(commits).await {
            self.refusals.observe(&outcome);
            match outcome {
                Ok(()) => self.follow_up(made),
                Err(CommitError::Conflict { .. }) => drop(self.dirty.insert(made.path)),
                Err(error) => {
                    tracing::debug!(path = &*made.path, %error, "a run could not be committed");
                    let again = Millis(now.wall.0 + REFUSED_PAUSE).to_timestamp();
                    self.set_due(&made.path, Some(again));
                }
            }
        }
    }

    /// Runs that were made are known at once, so that their changes bring no news.
    fn follow_up(&mut self, made: Made) {
        let Some(entry) = self.entries.get_mut(&made.path) else { return };
        for (run, shown) in made.runs {
            entry.active.insert(run.clone(), shown);
            self.runs.insert(run, Place { schedule: made.path.clone(), ended: None });
        }
    }
}

async fn commit_one(store: &Store, batch: &Batch) -> Result<(), CommitError> {
    store.commit(batch.clone()).await.map(drop)
}
