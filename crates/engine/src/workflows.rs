//! The loop of task groups and jobs: it makes what they ask for and writes down how they stand.
//!
//! It has no runtime: all it does is write to the store. What is made is written together with the note that it was made,
//! so nothing is made twice and nothing is forgotten, wherever the server stops. Decisions are those of `muster-workflows`.
//!
//! Work is done in slices: a group of ten thousand members is made a thousand at a time, and others have their turn in
//! between. A status whose numbers alone changed is written a few times a second at most.

mod departures;
pub(crate) mod edits;
mod entries;
mod groups;
mod intake;
mod jobs;
mod member_brief;
mod queue;
mod release;
mod run;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use muster_ports::clock::{Clock, Millis};
use muster_ports::store::{Batch, CommitError, ResourceName, Store, Watch, WatchError, WatchScope};
use muster_types::job::JobSpec;
use muster_types::task_group::TaskGroupSpec;
use muster_workflows::lifetime::{EndOfLife, Lifetimes};

use edits::deletion;
use entries::{GroupEntry, JobEntry};
use queue::Queue;

use crate::intake::Intake as _;
use crate::refusals::Refusals;
use crate::writes::must_stay;
pub use run::run;

/// Members that are made, submitted or ended at once for one group.
const SLICE: u32 = 1024;
/// Writes of one look at all groups, about.
const MOST_WRITES: usize = 2048;
/// Jobs looked at in one cycle.
const MOST_JOBS: usize = 256;
/// Time after which what the store refused is tried again.
const REFUSED_PAUSE: i64 = 1000;

/// Where things are kept.
struct Names {
    tasks: ResourceName,
    groups: ResourceName,
    jobs: ResourceName,
}

/// What is to be done at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    LookAtGroup(String),
    LookAtJob(String),
    GroupEndOfLife(String, EndOfLife),
    JobEndOfLife(String, EndOfLife),
    /// The members of a group are released from this place on.
    ReleaseGroup(String, u32),
    /// A task that left a group which no longer counts, by its path.
    LetGo(Arc<str>),
}

/// The loop's state.
pub struct Workflows {
    store: Store,
    clock: Arc<dyn Clock>,
    names: Names,
    watch: Watch,
    /// By uid, as everything that belongs to them names them.
    groups: HashMap<String, GroupEntry>,
    group_uids: HashMap<Arc<str>, String>,
    jobs: HashMap<String, JobEntry>,
    job_uids: HashMap<Arc<str>, String>,
    dirty_groups: Queue,
    dirty_jobs: Queue,
    due: BTreeSet<(Millis, Due)>,
    refusals: Refusals,
    lifetimes: Lifetimes,
}

impl Workflows {
    /// Reads what is stored. Groups and jobs are kept as long as by default.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Result<Self, WatchError> {
        Self::with_lifetimes(store, clock, Lifetimes::default())
    }

    /// Reads what is stored.
    pub fn with_lifetimes(
        store: Store,
        clock: Arc<dyn Clock>,
        lifetimes: Lifetimes,
    ) -> Result<Self, WatchError> {
        let name = |plural: &str| ResourceName::new(&format!("{plural}.muster.dev"));
        let names = Names { tasks: name("tasks"), groups: name("taskgroups"), jobs: name("jobs") };
        let mut workflows = Self {
            watch: store.watch(WatchScope::All, store.revision())?,
            store,
            clock,
            names,
            groups: HashMap::new(),
            group_uids: HashMap::new(),
            jobs: HashMap::new(),
            job_uids: HashMap::new(),
            dirty_groups: Queue::default(),
            dirty_jobs: Queue::default(),
            due: BTreeSet::new(),
            refusals: Refusals::of("groups and jobs"),
            lifetimes,
        };
        workflows.read_all();
        Ok(workflows)
    }

    /// One whole cycle. Returns when to look again even if nothing happens.
    pub async fn step(&mut self) -> Result<Option<Millis>, WatchError> {
        self.take_in()?;
        let now = self.clock.now();
        self.take_due(now).await;
        self.step_groups(now).await;
        self.take_in()?;
        self.step_jobs(now).await;
        self.refusals.tell(now);
        let more = !self.dirty_groups.is_empty() || !self.dirty_jobs.is_empty();
        Ok(if more { Some(now) } else { self.due.first().map(|(at, _)| *at) })
    }

    async fn take_due(&mut self, now: Millis) {
        let mut let_go = Vec::new();
        while let Some((at, due)) = self.due.pop_first() {
            if at > now {
                self.due.insert((at, due));
                break;
            }
            if self.must_stay(&due) {
                self.due.insert((Millis(now.0 + REFUSED_PAUSE), due));
                continue;
            }
            match due {
                Due::LookAtGroup(uid) => self.dirty_groups.push(&uid),
                Due::LookAtJob(uid) => self.dirty_jobs.push(&uid),
                Due::GroupEndOfLife(uid, EndOfLife::Delete) => {
                    let key = self.groups.get(&uid).map(|entry| entry.key.clone());
                    let batch = key.and_then(|key| deletion::<TaskGroupSpec>(&self.store, &key, now));
                    self.remove(batch, Due::GroupEndOfLife(uid, EndOfLife::Delete), now).await;
                }
                Due::JobEndOfLife(uid, EndOfLife::Delete) => {
                    let key = self.jobs.get(&uid).map(|entry| entry.key.clone());
                    let batch = key.and_then(|key| deletion::<JobSpec>(&self.store, &key, now));
                    self.remove(batch, Due::JobEndOfLife(uid, EndOfLife::Delete), now).await;
                }
                Due::GroupEndOfLife(uid, EndOfLife::Release) => self.release_group(&uid, 0, now).await,
                Due::ReleaseGroup(uid, from) => self.release_group(&uid, from, now).await,
                Due::JobEndOfLife(uid, EndOfLife::Release) => self.release_job(&uid, now).await,
                Due::LetGo(path) => let_go.push(path),
            }
        }
        self.let_go(let_go, now).await;
    }

    /// True if something is to be deleted that a sink has not confirmed yet, or of which a log is not stored.
    fn must_stay(&self, due: &Due) -> bool {
        let (uid, key) = match due {
            Due::LookAtGroup(_) | Due::LookAtJob(_) | Due::LetGo(_) | Due::ReleaseGroup(..) => return false,
            Due::GroupEndOfLife(uid, _) => (uid, self.groups.get(uid).map(|entry| &entry.key)),
            Due::JobEndOfLife(uid, _) => (uid, self.jobs.get(uid).map(|entry| &entry.key)),
        };
        let stored = key.and_then(|key| self.store.get(key));
        stored.is_some_and(|stored| must_stay(&self.store, stored.revision, uid))
    }

    /// Deletes something whose time is over. What belongs to it is collected as garbage.
    async fn remove(&mut self, batch: Option<Batch>, due: Due, now: Millis) {
        let Some(batch) = batch else { return };
        if let Err(error) = self.store.commit(batch).await {
            tracing::debug!(%error, ?due, "something whose time is over could not be deleted; it is tried again");
            self.due.insert((Millis(now.0 + REFUSED_PAUSE), due));
        }
    }

    /// Something could not be committed: it is looked at again, at once if it was only late.
    fn try_again(&mut self, error: &CommitError, look: Due, now: Millis) {
        if matches!(error, CommitError::Conflict { .. }) {
            self.due.insert((now, look));
        } else {
            tracing::debug!(%error, ?look, "a decision could not be committed");
            self.refusals.observe_error(error);
            self.due.insert((Millis(now.0 + REFUSED_PAUSE), look));
        }
    }
}
