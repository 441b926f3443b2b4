//! The one who writes: orders batches, persists and publishes them, and takes in what others wrote to the same log.
//!
//! Group commit: while one group is on its way to disk, the next one gathers. Nobody waits for company, and many
//! callers share one fsync.
//!
//! Shared logs: an append happens only on top of exactly what this memory is. If somebody else was quicker, the log says
//! [`LogError::Behind`]; then their changes are taken in, and the group is judged again. So every precondition holds at the
//! revision its batch got, whoever wrote before. A refusal is checked against the log too before it is answered.
//!
//! Compaction: a change that no longer fits the history is first forgotten in memory; the rows that only it needed
//! are removed from the log afterwards, in slices, oldest first, in the transaction of other writes or when nobody
//! writes. The log learns the compaction point no later than it loses the first row below it. So a crash between
//! any two slices leaves a log in which everything above the compaction point is whole.

use std::collections::VecDeque;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::batch::{Batch, CommitError, Committed};
use super::loader;
use super::log::{Forget, Log, LogError};
use super::object::{Change, Revision};
use super::order::{Foreign, Pending};
use super::standing::Standing;
use super::state::{History, State};
use crate::clock::{Clock, Millis};

/// A transaction takes no further batch once it has this many writes,
const GROUP_WRITES: usize = 1024;
/// or this many bytes.
const GROUP_BYTES: usize = 8 << 20;
/// Old rows removed in one transaction, beyond twice the rows that are added. Fewer are left for later: rows that
/// were written together lie together, and removing them one by one writes the same page many times.
const FORGET_SLICE: usize = 256;
/// How often an idle writer looks for something to forget, and for what others wrote.
const IDLE: Duration = Duration::from_secs(1);

/// What the writer is asked for.
pub(super) enum Command {
    Commit(Submission),
    /// To take in what others wrote. Whoever waits for it is told when that is done.
    CatchUp(Option<Waiter>),
    Close,
}

pub(super) struct Submission {
    pub batch: Batch,
    pub reply: Reply,
    pub _room: OwnedSemaphorePermit,
}

type Reply = oneshot::Sender<Result<Committed, CommitError>>;
type Waiter = oneshot::Sender<Result<(), CommitError>>;

/// Batches to commit together.
#[derive(Default)]
pub(super) struct Group {
    submissions: Vec<Submission>,
    /// Others may have written.
    news: bool,
    /// Who waits until that was taken in.
    waiters: Vec<Waiter>,
    /// Nothing comes after it.
    last: bool,
}

impl Group {
    /// A group of one command.
    pub fn of(command: Command) -> Self {
        let mut group = Self::default();
        group.take(command);
        group
    }

    /// What is in the queue, or what comes first if nothing is. Empty if nothing comes in time.
    fn receive(receiver: &mpsc::Receiver<Command>, patience: Duration) -> Self {
        let mut group = Self::default();
        let mut next = match receiver.recv_timeout(patience) {
            Ok(command) => Some(command),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                group.news = true;
                None
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Some(Command::Close),
        };
        let (mut writes, mut bytes) = (0, 0);
        while let Some(command) = next {
            if let Command::Commit(submission) = &command {
                writes += submission.batch.writes.len();
                bytes += submission.batch.bytes();
            }
            group.take(command);
            let full = group.last || writes >= GROUP_WRITES || bytes >= GROUP_BYTES;
            next = if full { None } else { receiver.try_recv().ok() };
        }
        group
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Commit(submission) => self.submissions.push(submission),
            Command::CatchUp(waiter) => {
                self.news = true;
                self.waiters.extend(waiter);
            }
            Command::Close => self.last = true,
        }
    }
}

/// Orders batches, writes them to the log and publishes them.
pub(super) struct Writer {
    log: Box<dyn Log>,
    is_shared: bool,
    standing: watch::Sender<Standing>,
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
    pub fn load(
        mut log: Box<dyn Log>,
        history: History,
        clock: Box<dyn Clock>,
        standing: watch::Sender<Standing>,
    ) -> Result<(State, Self), LogError> {
        let (state, leftovers) = loader::load(log.as_mut())?;
        let (compacted, forget) = (state.compacted, leftovers.into());
        let health = Health::Good;
        Ok((state, Self { log, is_shared: false, standing, clock, history, forget, compacted, health }))
    }

    /// Has the log call `news` when others write. True if others may.
    pub fn listen(&mut self, news: Box<dyn Fn() + Send + Sync>) -> bool {
        self.is_shared = self.log.listen(news);
        self.is_shared
    }

    pub fn run(mut self, receiver: &mpsc::Receiver<Command>, state: &RwLock<State>) {
        loop {
            let group = Group::receive(receiver, self.patience());
            let last = group.last;
            self.serve(group, state);
            if last {
                break;
            }
        }
    }

    /// Does what a group asks for.
    pub fn serve(&mut self, group: Group, state: &RwLock<State>) {
        if self.is_shared && group.news {
            let caught_up = self.catch_up(state).map(drop);
            for waiter in group.waiters {
                // Whoever waited may be gone.
                drop(waiter.send(caught_up.clone()));
            }
        }
        self.commit_group(state, group.submissions);
    }

    /// How long to wait for batches before doing something about the rows to forget.
    fn patience(&self) -> Duration {
        let busy = matches!(self.health, Health::Good) && self.forget.len() >= FORGET_SLICE;
        if busy { Duration::ZERO } else { IDLE }
    }

    fn commit_group(&mut self, state: &RwLock<State>, group: Vec<Submission>) {
        let (batches, replies): (Vec<_>, Vec<_>) =
            group.into_iter().map(|submission| (submission.batch, submission.reply)).unzip();
        let outcomes = match self.commit_batches(state, &batches) {
            Ok(outcomes) => outcomes,
            // Even a refusal may rest on a change of this group that never happened.
            Err(error) => batches.iter().map(|_| Err(error.clone())).collect(),
        };
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // A caller that went away no longer wants its answer.
            drop(reply.send(outcome));
        }
    }

    fn commit_batches(
        &mut self,
        state: &RwLock<State>,
        batches: &[Batch],
    ) -> Result<Vec<Outcome>, CommitError> {
        // If nobody else writes, this memory is always what the log is.
        let mut is_exact = !self.is_shared;
        loop {
            let now = self.clock.now();
            let (changes, outcomes) = order_group(&state.read(), now, batches);
            if !is_exact && outcomes.iter().any(Result::is_err) && self.catch_up(state)? {
                continue;
            }
            match self.persist(&changes) {
                Ok(()) => {
                    self.publish(state, &changes, now);
                    return Ok(outcomes);
                }
                Err(Failure::Behind) => {
                    self.catch_up(state)?;
                    // Nobody else can write until the next append.
                    is_exact = true;
                }
                Err(Failure::Failed(error)) => return Err(error),
            }
        }
    }

    /// Takes in what others wrote. True if there was anything.
    fn catch_up(&mut self, state: &RwLock<State>) -> Result<bool, CommitError> {
        if let Health::Broken(error) = &self.health {
            return Err(CommitError::Broken(error.clone()));
        }
        // Nobody who reads waits for the log.
        let mut rows = Vec::new();
        match self.log.follow(&mut |row| rows.push(Foreign::from(row))) {
            Ok(()) => {
                self.tell(Standing::Good);
                if rows.is_empty() {
                    return Ok(false);
                }
                let changes = {
                    let known = state.read();
                    let mut pending = Pending::new(&known);
                    for row in rows {
                        pending.take_in(&known, row);
                    }
                    pending.changes
                };
                self.publish(state, &changes, self.clock.now());
                Ok(true)
            }
            Err(LogError::Forgotten) => self.load_again(state).map(|()| true),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Reads everything anew: what happened meanwhile is no longer known in detail.
    fn load_again(&mut self, state: &RwLock<State>) -> Result<(), CommitError> {
        tracing::warn!("the log no longer remembers all that was written meanwhile; everything is read anew");
        let (fresh, leftovers) = loader::load(self.log.as_mut()).map_err(|error| self.failed(error))?;
        self.compacted = fresh.compacted;
        self.forget = leftovers.into();
        state.write().replace(fresh);
        Ok(())
    }

    fn persist(&mut self, changes: &[Arc<Change>]) -> Result<(), Failure> {
        if let Health::Broken(error) = &self.health {
            return Err(Failure::Failed(CommitError::Broken(error.clone())));
        }
        let forget = self.next_forget(changes.len());
        // A log that was behind waits for the next append, even if there is nothing left to append.
        if changes.is_empty() && forget.revisions.is_empty() && !self.log.is_waiting() {
            return Ok(());
        }
        match self.log.append(changes, &forget) {
            Ok(()) => {
                self.health = Health::Good;
                self.tell(Standing::Good);
                self.forget.drain(..forget.revisions.len());
                Ok(())
            }
            Err(LogError::Behind) => Err(Failure::Behind),
            Err(error) => Err(Failure::Failed(self.failed(error))),
        }
    }

    fn failed(&mut self, error: LogError) -> CommitError {
        self.tell(Standing::of(&error));
        if error.is_unknown() {
            tracing::error!(%error, "it is not known whether a group of changes was written");
            self.health = Health::Refused;
            return CommitError::Unknown(Arc::new(error));
        }
        if error.is_refusal() {
            if !matches!(self.health, Health::Refused) {
                tracing::warn!(%error, "the store's log refused a write");
            }
            self.health = Health::Refused;
            return CommitError::Refused(Arc::new(error));
        }
        tracing::error!(%error, "the store's log failed; no more writes until a restart");
        let error = Arc::new(error);
        self.health = Health::Broken(error.clone());
        CommitError::Broken(error)
    }

    fn tell(&self, standing: Standing) {
        self.standing.send_if_modified(|known| {
            let differs = *known != standing;
            *known = standing;
            differs
        });
    }

    /// The rows to remove along with `added` new ones.
    fn next_forget(&self, added: usize) -> Forget {
        let worth_it = added == 0 || self.forget.len() >= FORGET_SLICE;
        let most = if worth_it { FORGET_SLICE + 2 * added } else { 0 };
        let revisions = self.forget.iter().take(most).copied().collect();
        Forget { revisions, compacted: self.compacted, ..Forget::default() }
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

type Outcome = Result<Committed, CommitError>;

/// Why a group was not persisted.
enum Failure {
    /// Somebody else wrote first.
    Behind,
    Failed(CommitError),
}

fn order_group(state: &State, now: Millis, group: &[Batch]) -> (Vec<Arc<Change>>, Vec<Outcome>) {
    let mut pending = Pending::new(state);
    let outcomes = group.iter().map(|batch| pending.order(state, now, batch)).collect();
    (pending.changes, outcomes)
}
