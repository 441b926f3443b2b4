//! What callers hold of a store: a way to its writer, and its memory.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, oneshot, watch};

use super::batch::{Batch, CommitError, Committed};
use super::fence::Fence;
use super::key::{Key, ResourceName};
use super::log::{Log, LogError};
use super::object::{Revision, Stored};
use super::pins::Pins;
use super::snapshot::Snapshot;
use super::standing::Standing;
use super::state::{History, Hold, State};
use super::watch::{Page, Watch, WatchError, WatchScope};
use super::writer::{Command, Group, Submission, Writer};
use crate::clock::Clock;

/// Batches that may wait for the writer; callers beyond that wait to be let in.
const QUEUE: usize = 4096;

/// A durable, watchable collection of objects. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    /// What every batch of this clone depends on.
    fence: Option<Fence>,
}

struct Shared {
    state: Arc<RwLock<State>>,
    room: Arc<Semaphore>,
    standing: watch::Sender<Standing>,
    /// Others write to the log too.
    with_others: bool,
    pins: Pins,
    door: Door,
}

/// How batches reach the writer.
enum Door {
    /// A thread of its own.
    Thread(mpsc::Sender<Command>, Mutex<Option<JoinHandle<()>>>),
    /// The caller's thread; for simulation and tests, where nothing may happen by itself.
    Inline(Mutex<Option<Writer>>),
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl Store {
    /// Loads the log and starts a writer thread.
    pub fn open(log: impl Log, history: History, clock: impl Clock) -> Result<Self, LogError> {
        Self::open_holding(log, history, clock, None)
    }

    /// The same; from the first moment on, everything that is remembered is held under a name. Whoever knows better what is
    /// needed says so and lets go of it.
    pub fn open_holding(
        log: impl Log,
        history: History,
        clock: impl Clock,
        hold: Option<(&str, Hold)>,
    ) -> Result<Self, LogError> {
        let standing = watch::Sender::new(Standing::Good);
        let (mut state, mut writer) =
            Writer::load(Box::new(log), history, Box::new(clock), standing.clone())?;
        if let Some((name, hold)) = hold {
            state.hold(name, Some(Hold { after: state.compacted, ..hold }));
        }
        let state = Arc::new(RwLock::new(state));
        let room = Arc::new(Semaphore::new(QUEUE));
        let (sender, receiver) = mpsc::channel();
        let with_others = writer.listen(news(sender.clone()));
        let farewell = Farewell { state: state.clone(), room: room.clone() };
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.run(&receiver, &farewell.state))
            .map_err(|error| LogError::Io(format!("cannot start the writer thread: {error}")))?;
        let door = Door::Thread(sender, Mutex::new(Some(thread)));
        let (pins, fence) = (Pins::default(), None);
        Ok(Self { shared: Arc::new(Shared { state, room, standing, with_others, pins, door }), fence })
    }

    /// Loads the log; every commit happens on the caller's thread.
    pub fn open_inline(log: impl Log, history: History, clock: impl Clock) -> Result<Self, LogError> {
        let standing = watch::Sender::new(Standing::Good);
        let (state, mut writer) = Writer::load(Box::new(log), history, Box::new(clock), standing.clone())?;
        let state = Arc::new(RwLock::new(state));
        let room = Arc::new(Semaphore::new(QUEUE));
        // What others wrote is seen by the next commit.
        let with_others = writer.listen(Box::new(|| {}));
        let door = Door::Inline(Mutex::new(Some(writer)));
        let (pins, fence) = (Pins::default(), None);
        Ok(Self { shared: Arc::new(Shared { state, room, standing, with_others, pins, door }), fence })
    }

    /// The same store for somebody who may act only as long as a fence stands: each of its batches happens while it does, or
    /// not at all. Once it fell, and after a commit of which nobody can tell whether it happened, commits never return:
    /// whoever put up the fence sees that and ends what acts behind it.
    #[must_use]
    pub fn fenced(&self, fence: Fence) -> Self {
        Self { shared: self.shared.clone(), fence: Some(fence) }
    }

    /// Makes a batch happen. When this returns `Ok`, it is durable and visible. When it is dropped before, the
    /// batch may still happen.
    pub async fn commit(&self, mut batch: Batch) -> Result<Committed, CommitError> {
        let Some(fence) = &self.fence else { return self.submit(batch).await };
        batch.checks.push(fence.check());
        let outcome = self.submit(batch).await;
        if fence.fell_by(&outcome) {
            fence.fall();
            return std::future::pending().await;
        }
        outcome
    }

    async fn submit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let room = self.shared.room.clone().acquire_owned().await.map_err(|_| CommitError::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.send(Command::Commit(Submission { batch, reply, _room: room }))?;
        answer.await.unwrap_or(Err(CommitError::Closed))
    }

    fn send(&self, command: Command) -> Result<(), CommitError> {
        match &self.shared.door {
            Door::Thread(sender, _) => sender.send(command).map_err(|_| CommitError::Closed),
            Door::Inline(slot) => {
                let mut slot = slot.lock();
                // Out of its place meanwhile: a writer that panics is not used again.
                let mut writer = slot.take().ok_or(CommitError::Closed)?;
                writer.serve(Group::of(command), &self.shared.state);
                *slot = Some(writer);
                Ok(())
            }
        }
    }

    /// Waits until this memory is at least what the log was when this was called. Returns at once if nobody else writes.
    pub async fn catch_up(&self) -> Result<(), CommitError> {
        if !self.shared.with_others {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        self.send(Command::CatchUp(Some(reply)))?;
        answer.await.unwrap_or(Err(CommitError::Closed))
    }

    /// True if other processes write to the same log.
    pub fn is_shared(&self) -> bool {
        self.shared.with_others
    }

    /// Whether the log takes writes, as of the last time somebody tried.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.shared.standing.subscribe()
    }

    /// The newest revision.
    pub fn revision(&self) -> Revision {
        self.shared.state.read().revision
    }

    /// The oldest revision from which everything can be watched. A kind that changed less can be watched from
    /// further back.
    pub fn compacted(&self) -> Revision {
        self.shared.state.read().compacted
    }

    /// Begins or moves a hold: no change behind it is forgotten, within its limits. `None` ends it.
    pub fn hold(&self, name: &str, hold: Option<Hold>) {
        self.shared.state.write().hold(name, hold);
    }

    /// True if there is a hold of this name.
    pub fn has_hold(&self, name: &str) -> bool {
        self.shared.state.read().has_hold(name)
    }

    /// What may not be deleted by time yet.
    pub fn pins(&self) -> &Pins {
        &self.shared.pins
    }

    /// Behind this nothing may be forgotten, if anybody holds anything.
    pub fn held_after(&self) -> Option<Revision> {
        self.shared.state.read().held_after()
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<Stored> {
        self.shared.state.read().get(key).cloned()
    }

    /// All objects of a kind at the newest revision.
    pub fn snapshot(&self, resource: &ResourceName) -> Snapshot {
        self.shared.state.read().snapshot(resource)
    }

    /// All objects of some kinds at one and the same revision.
    pub fn snapshots(&self, resources: &[ResourceName]) -> Vec<Snapshot> {
        let state = self.shared.state.read();
        resources.iter().map(|resource| state.snapshot(resource)).collect()
    }

    /// All objects of some kinds as they were at a revision. Fails where a watch from there would: if what was there is forgotten.
    pub fn snapshots_at(
        &self,
        resources: &[ResourceName],
        revision: Revision,
    ) -> Result<Vec<Snapshot>, WatchError> {
        let now_and_since: Vec<_> = {
            let state = self.shared.state.read();
            let page = |resource: &ResourceName| {
                state.page(&WatchScope::Resource(resource.clone()), revision, usize::MAX)
            };
            let parts = resources.iter().map(|resource| Ok((state.snapshot(resource), page(resource)?)));
            parts.collect::<Result<_, WatchError>>()?
        };
        let undone = now_and_since.into_iter().map(|(now, since)| now.before(&since.changes, revision));
        Ok(undone.collect())
    }

    /// How many objects there are of each kind, in order of kind.
    pub fn counts(&self) -> Vec<(ResourceName, usize)> {
        self.shared.state.read().counts()
    }

    /// Follows the changes behind a revision.
    pub fn watch(&self, scope: WatchScope, from: Revision) -> Result<Watch, WatchError> {
        let wake = {
            let mut state = self.shared.state.write();
            if state.is_closed() {
                return Err(WatchError::Closed);
            }
            state.check_watchable(&scope, from)?;
            state.listen(&scope)
        };
        Ok(Watch::new(self.clone(), scope, from, wake))
    }

    pub(super) fn page(&self, scope: &WatchScope, after: Revision, most: usize) -> Result<Page, WatchError> {
        self.shared.state.read().page(scope, after, most)
    }

    /// Stops the writer after the batches that are already in its queue, and closes the log. Blocks until then.
    /// What was read so far can still be read.
    pub fn close(&self) {
        self.shared.close();
    }
}

impl Shared {
    fn close(&self) {
        self.room.close();
        match &self.door {
            Door::Thread(sender, thread) => {
                // Nobody receives it if the writer died; then there is nothing to stop.
                drop(sender.send(Command::Close));
                join(&mut thread.lock());
            }
            Door::Inline(slot) => *slot.lock() = None,
        }
        self.state.write().close();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

fn join(thread: &mut Option<JoinHandle<()>>) {
    // A reply can wake, and so drop, a future that owns the last store: then this is the writer itself.
    let itself = thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id());
    if let Some(thread) = thread.take()
        && !itself
        && thread.join().is_err()
    {
        tracing::error!("the store's writer panicked");
    }
}

/// What the log calls when somebody else wrote.
fn news(sender: mpsc::Sender<Command>) -> Box<dyn Fn() + Send + Sync> {
    Box::new(move || drop(sender.send(Command::CatchUp(None))))
}

/// Tells everybody who waits that the writer is gone, however it went.
struct Farewell {
    state: Arc<RwLock<State>>,
    room: Arc<Semaphore>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.room.close();
        self.state.write().close();
    }
}
