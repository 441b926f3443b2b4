//! The store itself: one writer that orders, persists and publishes, and many readers of its memory.
//!
//! Group commit: while one group is on its way to disk, the next one gathers. Nobody waits for company, and many
//! callers share one fsync.
//!
//! Compaction: a change that no longer fits the history is first forgotten in memory; the rows that only it needed
//! are removed from the log afterwards, in slices, oldest first, in the transaction of other writes or when nobody
//! writes. The log learns the compaction point no later than it loses the first row below it. So a crash between
//! any two slices leaves a log in which everything above the compaction point is whole.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::batch::{Batch, CommitError, Committed};
use super::key::{Key, ResourceName};
use super::loader;
use super::log::{Forget, Log, LogError};
use super::object::{Change, Revision, Stored};
use super::order::Pending;
use super::snapshot::Snapshot;
use super::state::{History, Hold, State};
use super::watch::{Page, Watch, WatchError, WatchScope};
use crate::clock::{Clock, Millis};

/// Batches that may wait for the writer; callers beyond that wait to be let in.
const QUEUE: usize = 4096;
/// A transaction takes no further batch once it has this many writes,
const GROUP_WRITES: usize = 1024;
/// or this many bytes.
const GROUP_BYTES: usize = 8 << 20;
/// Old rows removed in one transaction, beyond twice the rows that are added. Fewer are left for later: rows that
/// were written together lie together, and removing them one by one writes the same page many times.
const FORGET_SLICE: usize = 256;
/// How often an idle writer looks for something to forget.
const IDLE: Duration = Duration::from_secs(1);

/// A durable, watchable collection of objects. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    state: Arc<RwLock<State>>,
    room: Arc<Semaphore>,
    door: Door,
}

/// How batches reach the writer.
enum Door {
    /// A thread of its own.
    Thread(mpsc::Sender<Command>, Mutex<Option<JoinHandle<()>>>),
    /// The caller's thread; for simulation and tests, where nothing may happen by itself.
    Inline(Mutex<Option<Writer>>),
}

enum Command {
    Commit(Submission),
    Close,
}

struct Submission {
    batch: Batch,
    reply: Reply,
    _room: OwnedSemaphorePermit,
}

type Reply = oneshot::Sender<Result<Committed, CommitError>>;

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
        let (mut state, writer) = Writer::load(Box::new(log), history, Box::new(clock))?;
        if let Some((name, hold)) = hold {
            state.hold(name, Some(Hold { after: state.compacted, ..hold }));
        }
        let state = Arc::new(RwLock::new(state));
        let room = Arc::new(Semaphore::new(QUEUE));
        let (sender, receiver) = mpsc::channel();
        let farewell = Farewell { state: state.clone(), room: room.clone() };
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.run(&receiver, &farewell.state))
            .map_err(|error| LogError::Io(format!("cannot start the writer thread: {error}")))?;
        let door = Door::Thread(sender, Mutex::new(Some(thread)));
        Ok(Self { shared: Arc::new(Shared { state, room, door }) })
    }

    /// Loads the log; every commit happens on the caller's thread.
    pub fn open_inline(log: impl Log, history: History, clock: impl Clock) -> Result<Self, LogError> {
        let (state, writer) = Writer::load(Box::new(log), history, Box::new(clock))?;
        let state = Arc::new(RwLock::new(state));
        let room = Arc::new(Semaphore::new(QUEUE));
        let door = Door::Inline(Mutex::new(Some(writer)));
        Ok(Self { shared: Arc::new(Shared { state, room, door }) })
    }

    /// Makes a batch happen. When this returns `Ok`, it is durable and visible. When it is dropped before, the
    /// batch may still happen.
    pub async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let room = self.shared.room.clone().acquire_owned().await.map_err(|_| CommitError::Closed)?;
        let (reply, answer) = oneshot::channel();
        let submission = Submission { batch, reply, _room: room };
        match &self.shared.door {
            Door::Thread(sender, _) => {
                sender.send(Command::Commit(submission)).map_err(|_| CommitError::Closed)?;
            }
            Door::Inline(slot) => {
                let mut slot = slot.lock();
                // Out of its place meanwhile: a writer that panics is not used again.
                let mut writer = slot.take().ok_or(CommitError::Closed)?;
                writer.commit_group(&self.shared.state, vec![submission]);
                *slot = Some(writer);
            }
        }
        answer.await.unwrap_or(Err(CommitError::Closed))
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

    /// Behind this nothing may be forgotten, if anybody holds anything.
    pub fn held_after(&self) -> Option<Revision> {
        self.shared.state.read().held_after()
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<Arc<Stored>> {
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

/// Batches to commit together.
#[derive(Default)]
struct Group {
    submissions: Vec<Submission>,
    /// Nothing comes after it.
    last: bool,
}

impl Group {
    /// What is in the queue, or what comes first if nothing is. Empty if nothing comes in time.
    fn receive(receiver: &mpsc::Receiver<Command>, patience: Duration) -> Self {
        let mut group = Self::default();
        let mut next = match receiver.recv_timeout(patience) {
            Ok(command) => Some(command),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => Some(Command::Close),
        };
        let (mut writes, mut bytes) = (0, 0);
        while let Some(command) = next {
            let Command::Commit(submission) = command else {
                group.last = true;
                break;
            };
            writes += submission.batch.writes.len();
            bytes += submission.batch.bytes();
            group.submissions.push(submission);
            let full = writes >= GROUP_WRITES || bytes >= GROUP_BYTES;
            next = if full { None } else { receiver.try_recv().ok() };
        }
        group
    }
}

/// Orders batches, writes them to the log and publishes them.
struct Writer {
    log: Box<dyn Log>,
    clock: Box<dyn Clock>,
    history: History,
    /// Rows to remove from the log. Any first part can be removed safely: a version comes before its deletion.
    forget: VecDeque<Revision>,
    compacted: Revision,
    health: Health,
}

enum Health {
    Good,
    /// The last write was refused, the next one may work.
    Refused,
    /// What is on disk is not known.
    Broken(Arc<LogError>),
}

impl Writer {
    fn load(
        mut log: Box<dyn Log>,
        history: History,
        clock: Box<dyn Clock>,
    ) -> Result<(State, Self), LogError> {
        let (state, leftovers) = loader::load(log.as_mut())?;
        let compacted = state.compacted;
        Ok((state, Self { log, clock, history, forget: leftovers.into(), compacted, health: Health::Good }))
    }

    fn run(mut self, receiver: &mpsc::Receiver<Command>, state: &RwLock<State>) {
        loop {
            let group = Group::receive(receiver, self.patience());
            self.commit_group(state, group.submissions);
            if group.last {
                break;
            }
        }
    }

    /// How long to wait for batches before doing something about the rows to forget.
    fn patience(&self) -> Duration {
        let busy = matches!(self.health, Health::Good) && self.forget.len() >= FORGET_SLICE;
        if busy { Duration::ZERO } else { IDLE }
    }

    fn commit_group(&mut self, state: &RwLock<State>, group: Vec<Submission>) {
        let now = self.clock.now();
        let (changes, outcomes) = order_group(&state.read(), now, group);
        match self.persist(&changes) {
            Ok(()) => {
                self.publish(state, &changes, now);
                for (reply, outcome) in outcomes {
                    answer(reply, outcome);
                }
            }
            Err(error) => {
                // Even a refusal may rest on a change of this group that never happened.
                for (reply, _) in outcomes {
                    answer(reply, Err(error.clone()));
                }
            }
        }
    }

    fn persist(&mut self, changes: &[Arc<Change>]) -> Result<(), CommitError> {
        if let Health::Broken(error) = &self.health {
            return Err(CommitError::Broken(error.clone()));
        }
        let forget = self.next_forget(changes.len());
        if changes.is_empty() && forget.revisions.is_empty() {
            return Ok(());
        }
        match self.log.append(changes, &forget) {
            Ok(()) => {
                self.health = Health::Good;
                self.forget.drain(..forget.revisions.len());
                Ok(())
            }
            Err(error) if error.is_refusal() => {
                if !matches!(self.health, Health::Refused) {
                    tracing::warn!(%error, "the store's log refused a write");
                }
                self.health = Health::Refused;
                Err(CommitError::Refused(Arc::new(error)))
            }
            Err(error) => {
                tracing::error!(%error, "the store's log failed; no more writes until a restart");
                let error = Arc::new(error);
                self.health = Health::Broken(error.clone());
                Err(CommitError::Broken(error))
            }
        }
    }

    /// The rows to remove along with `added` new ones.
    fn next_forget(&self, added: usize) -> Forget {
        let worth_it = added == 0 || self.forget.len() >= FORGET_SLICE;
        let most = if worth_it { FORGET_SLICE + 2 * added } else { 0 };
        Forget { revisions: self.forget.iter().take(most).copied().collect(), compacted: self.compacted }
    }

    fn publish(&mut self, state: &RwLock<State>, changes: &[Arc<Change>], now: Millis) {
        let (wakers, revision, dropped) = {
            let mut state = state.write();
            let before = state.revision;
            for change in changes {
                state.apply(change.clone());
            }
            let wakers = if changes.is_empty() { Vec::new() } else { state.wakers(before) };
            let dropped = state.trim(self.history, now, FORGET_SLICE + 2 * changes.len());
            (wakers, state.revision, dropped)
        };
        for wake in wakers {
            wake.send_replace(revision);
        }
        for change in dropped {
            self.forget.extend(change.previous.as_ref().map(|previous| previous.revision));
            self.forget.extend(change.deleted.then(|| change.revision()));
            self.compacted = change.revision();
        }
    }
}

type Outcome = (Reply, Result<Committed, CommitError>);

/// A caller that went away no longer wants its answer.
fn answer(reply: Reply, outcome: Result<Committed, CommitError>) {
    drop(reply.send(outcome));
}

fn order_group(state: &State, now: Millis, group: Vec<Submission>) -> (Vec<Arc<Change>>, Vec<Outcome>) {
    let mut pending = Pending::new(state);
    let judge = |submission: Submission| (submission.reply, pending.order(state, now, submission.batch));
    let outcomes = group.into_iter().map(judge).collect();
    (pending.changes, outcomes)
}
