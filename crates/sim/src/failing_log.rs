//! A log that takes no more when the dice say so: for one commit, as a full disk does, or for good, as a server that is killed
//! in the middle of its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use muster_ports::store::{Change, Forget, Header, Log, LogError, MemoryLog, Row};

/// What becomes of commits. Clones are the same fate.
#[derive(Clone, Default)]
pub struct Fate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Commits until the server is killed; negative if it is not.
    left: AtomicI64,
    counts: AtomicBool,
    dead: AtomicBool,
    /// The disk is full: every commit is refused.
    full: AtomicBool,
    /// Commits that are to be refused.
    refused: AtomicI64,
    /// Commits that were.
    refusals: AtomicI64,
}

impl Fate {
    /// The server is killed after so many more commits.
    pub fn kill_after(&self, commits: i64) {
        self.0.left.store(commits, Ordering::Relaxed);
        self.0.counts.store(true, Ordering::Relaxed);
    }

    /// So many of the next commits are refused.
    pub fn refuse(&self, commits: i64) {
        self.0.refused.store(commits, Ordering::Relaxed);
    }

    /// Whether the disk is full.
    pub fn set_full(&self, full: bool) {
        self.0.full.store(full, Ordering::Relaxed);
    }

    /// How many commits were refused so far.
    pub fn refusals(&self) -> i64 {
        self.0.refusals.load(Ordering::Relaxed)
    }

    /// The server was killed: nothing it does has any effect.
    pub fn is_dead(&self) -> bool {
        self.0.dead.load(Ordering::Relaxed)
    }

    /// All is well again.
    pub fn revive(&self) {
        self.0.counts.store(false, Ordering::Relaxed);
        self.0.dead.store(false, Ordering::Relaxed);
    }

    fn takes_one(&self) -> bool {
        if self.is_dead() {
            return false;
        }
        if self.0.full.load(Ordering::Relaxed) {
            self.0.refusals.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if self.0.refused.load(Ordering::Relaxed) > 0 {
            self.0.refused.fetch_sub(1, Ordering::Relaxed);
            self.0.refusals.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if self.0.counts.load(Ordering::Relaxed) && self.0.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            self.0.dead.store(true, Ordering::Relaxed);
            return false;
        }
        true
    }
}

/// A log in memory with a fate.
pub struct FailingLog {
    /// What is kept.
    pub kept: MemoryLog,
    /// What becomes of commits.
    pub fate: Fate,
}

impl Log for FailingLog {
    fn header(&mut self) -> Result<Header, LogError> {
        self.kept.header()
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.kept.load(sink)
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        if changes.is_empty() || self.fate.takes_one() {
            return self.kept.append(changes, forget);
        }
        Err(LogError::Full("the dice say no".to_owned()))
    }
}
