//! A runtime whose attempts live and die by the dice.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use muster_ports::blobs::Blobs;
use muster_ports::clock::Millis;
use muster_ports::runtime::{
    Cause, ContainerEnding, EXECUTOR_LOST, Ending, Fact, FilesError, Handle, Launch, Observation, Runtime,
};
use parking_lot::Mutex;

use crate::dice::Dice;
use crate::watchers::SLOTS;

/// Attempts that are alive, and what was asked for since somebody looked.
#[derive(Clone, Default)]
pub struct FakeRuntime(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    live: BTreeMap<Handle, Life>,
    /// Priority of each attempt, and how often it was handed over.
    ranks: BTreeMap<Handle, (i32, u32)>,
    started: Vec<Handle>,
    /// Attempts that were taken back and are not reported yet.
    returned: Vec<(Handle, u32)>,
    twice: Vec<Handle>,
    /// Attempts that left a directory.
    left: BTreeSet<Handle>,
    /// Attempts whose logs were kept.
    kept: BTreeSet<Handle>,
    /// Attempts whose directory was removed since somebody looked.
    removed: Vec<Handle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Accepted, nothing reported yet.
    New,
    /// Reported as running.
    Runs,
    /// Told to end; whether it ran.
    Stopping(bool),
}

/// Attempts that run at once; the others wait.
const RUNNING: usize = SLOTS;

impl Inner {
    /// True if no attempt of higher rank waits.
    fn is_next(&self, handle: &Handle) -> bool {
        let rank = |handle: &Handle| {
            (Reverse(self.ranks.get(handle).map(|(priority, _)| *priority)), handle.clone())
        };
        let waiting =
            self.live.iter().filter(|(_, life)| **life == Life::New).map(|(handle, _)| rank(handle));
        waiting.min() == Some(rank(handle))
    }

    fn running(&self) -> usize {
        self.live.values().filter(|life| matches!(life, Life::Runs | Life::Stopping(true))).count()
    }
}

impl Runtime for FakeRuntime {
    fn start(&self, launch: Launch) {
        let mut inner = self.0.lock();
        if inner.live.contains_key(&launch.handle) {
            inner.twice.push(launch.handle.clone());
        }
        inner.live.entry(launch.handle.clone()).or_insert(Life::New);
        inner.left.insert(launch.handle.clone());
        inner.ranks.insert(launch.handle.clone(), (launch.priority, launch.prefetch));
        inner.started.push(launch.handle);
    }

    fn recall(&self, handle: &Handle) {
        let mut inner = self.0.lock();
        if inner.live.get(handle) == Some(&Life::New) {
            inner.live.remove(handle);
            inner.left.remove(handle);
            let prefetch = inner.ranks.get(handle).map_or(0, |(_, prefetch)| *prefetch);
            inner.returned.push((handle.clone(), prefetch));
        }
    }

    fn stop(&self, handle: &Handle, _grace: Duration) {
        if let Some(life) = self.0.lock().live.get_mut(handle) {
            *life = Life::Stopping(*life == Life::Runs || *life == Life::Stopping(true));
        }
    }

    fn keep_logs(&self, handle: &Handle, _blobs: &dyn Blobs) -> Result<(), FilesError> {
        self.0.lock().kept.insert(handle.clone());
        Ok(())
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        let mut inner = self.0.lock();
        if inner.live.contains_key(handle) {
            return Err(FilesError::Running);
        }
        if inner.left.remove(handle) {
            inner.removed.push(handle.clone());
        }
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        let inner = self.0.lock();
        Ok(inner.left.iter().cloned().collect())
    }
}

impl FakeRuntime {
    /// Attempts that are alive.
    pub fn live(&self) -> Vec<Handle> {
        self.0.lock().live.keys().cloned().collect()
    }

    /// Attempts started since the last call, in order.
    pub fn take_started(&self) -> Vec<Handle> {
        std::mem::take(&mut self.0.lock().started)
    }

    /// Attempts that were started while they were alive.
    pub fn started_twice(&self) -> Vec<Handle> {
        self.0.lock().twice.clone()
    }

    /// Attempts whose directory was removed since the last call, and whether their logs were kept before.
    pub fn take_removed(&self) -> Vec<(Handle, bool)> {
        let mut inner = self.0.lock();
        let removed = std::mem::take(&mut inner.removed);
        removed.into_iter().map(|handle| (handle.clone(), inner.kept.contains(&handle))).collect()
    }

    /// The server died, and every attempt with it.
    pub fn die(&self) {
        let mut inner = self.0.lock();
        inner.live.clear();
        inner.returned.clear();
        inner.started.clear();
    }

    /// Some attempts move on; what is reported of it.
    pub fn move_on(&self, dice: &mut Dice, now: Millis) -> Vec<Fact> {
        let mut inner = self.0.lock();
        let mut facts: Vec<Fact> = std::mem::take(&mut inner.returned)
            .into_iter()
            .map(|(handle, prefetch)| Fact { handle, at: now, what: Observation::Returned { prefetch } })
            .collect();
        let handles: Vec<_> = inner.live.iter().map(|(handle, life)| (handle.clone(), *life)).collect();
        for (handle, life) in handles {
            let fact = |what| Fact { handle: handle.clone(), at: now, what };
            match life {
                Life::New if dice.once_in(12) => {
                    inner.live.remove(&handle);
                    let transient = dice.once_in(2);
                    let (reason, message) = ("CommandNotFound".to_owned(), "no such command".to_owned());
                    facts.push(fact(Observation::StartFailed { reason, message, transient }));
                }
                Life::New if dice.once_in(2) && inner.running() < RUNNING && inner.is_next(&handle) => {
                    inner.live.insert(handle.clone(), Life::Runs);
                    // News that it runs may get lost; that it ended may not.
                    if !dice.once_in(8) {
                        facts.push(fact(Observation::Started));
                    }
                }
                Life::Runs if dice.once_in(4) => {
                    inner.live.remove(&handle);
                    facts.push(fact(ended(dice, Cause::Itself, now)));
                }
                Life::Runs if dice.once_in(60) => {
                    inner.live.remove(&handle);
                    facts.push(fact(Observation::Lost {
                        reason: EXECUTOR_LOST.to_owned(),
                        message: "the executor is gone".to_owned(),
                    }));
                }
                Life::Stopping(_) if dice.once_in(2) => {
                    inner.live.remove(&handle);
                    facts.push(fact(ended(dice, Cause::Stopped, now)));
                }
                Life::New | Life::Runs | Life::Stopping(_) => {}
            }
        }
        facts
    }
}

fn ended(dice: &mut Dice, cause: Cause, now: Millis) -> Observation {
    let cause = if cause == Cause::Itself && dice.once_in(10) { Cause::Timeout } else { cause };
    let exit_code = match cause {
        Cause::Timeout | Cause::Stopped => 143,
        Cause::Itself | Cause::LogFailed => [0, 0, 0, 0, 1, 137][usize::try_from(dice.below(6)).unwrap_or(0)],
    };
    let container = ContainerEnding {
        name: "addon".to_owned(),
        exit_code,
        signal: (exit_code > 128).then_some(exit_code - 128),
        killed_as_leftover: false,
        log_bytes: 1,
    };
    Observation::Ended(Ending {
        containers: vec![container],
        cause,
        at: now,
        message: None,
        reason: None,
        files: vec![],
    })
}
