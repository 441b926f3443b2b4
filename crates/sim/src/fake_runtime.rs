//! A machine whose programs live and die by the dice. A program is started at once while there is a slot, else when one is free:
//! the one of highest priority first, then that of the oldest task. Until then it can be taken back.

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
use crate::failing_log::Fate;
use crate::judge::history::What;
use crate::recorder::{Recorder, program};

/// A program that never ends well.
pub const ALWAYS_FAILS: &str = "false";
/// A program that does not end by itself.
pub const NEVER_ENDS: &str = "sleep";
/// Slots of a machine.
pub const SLOTS: usize = 3;
/// Milliseconds that a program has to end.
const GRACE: i64 = 10_000;
/// Memory of a machine.
pub const MEMORY: u64 = 10;

/// One machine. Clones are the same.
#[derive(Clone)]
pub struct FakeRuntime(Arc<Mutex<Inner>>);

struct Inner {
    place: String,
    recorder: Recorder,
    /// A server that was killed reaches nothing any more.
    fate: Fate,
    dice: Dice,
    running: BTreeMap<Handle, Life>,
    /// Attempts that wait for a slot, and how often each was handed over ahead of one. The first is the next.
    waiting: BTreeMap<(Reverse<i32>, Handle), u32>,
    /// What happened and was not fetched.
    facts: Vec<Fact>,
    /// Attempts that left a directory.
    left: BTreeSet<Handle>,
    /// Attempts whose program never ends well.
    hopeless: BTreeSet<Handle>,
    /// Attempts whose program does not end by itself.
    endless: BTreeSet<Handle>,
    /// Where logs are kept cannot be reached until then.
    away_until: Millis,
    /// Nothing goes wrong any more.
    is_quiet: bool,
    now: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Runs,
    /// Told to end, and killed after this time.
    Stopping(Millis),
}

impl Inner {
    fn happened(&mut self, handle: &Handle, what: Observation) {
        self.facts.push(Fact { handle: handle.clone(), at: self.recorder.wall(), what });
    }

    /// Starts what waits while there is a slot.
    fn fill(&mut self) {
        while self.running.len() < SLOTS
            && let Some(((_, handle), _)) = self.waiting.pop_first()
        {
            if !self.is_quiet && self.dice.once_in(15) {
                let transient = self.dice.once_in(2);
                let (reason, message) = ("CommandNotFound".to_owned(), "no such command".to_owned());
                self.happened(&handle, Observation::StartFailed { reason, message, transient });
                continue;
            }
            self.recorder.note(What::Started(program(&handle, &self.place)));
            self.running.insert(handle.clone(), Life::Runs);
            // News that it runs may get lost; that it ended may not.
            if !self.dice.once_in(8) {
                self.happened(&handle, Observation::Started);
            }
        }
    }

    fn end(&mut self, handle: &Handle, exit: Option<i32>) {
        if self.running.remove(handle).is_some() {
            self.recorder.note(What::Ended(program(handle, &self.place), exit));
        }
    }

    fn is_known(&self, handle: &Handle) -> bool {
        self.running.contains_key(handle) || self.place_of(handle).is_some()
    }

    fn place_of(&self, handle: &Handle) -> Option<(Reverse<i32>, Handle)> {
        self.waiting.keys().find(|(_, waiting)| waiting == handle).cloned()
    }
}

impl Runtime for FakeRuntime {
    fn start(&self, launch: Launch) {
        let mut inner = self.0.lock();
        if inner.fate.is_dead() || inner.is_known(&launch.handle) {
            return;
        }
        inner.left.insert(launch.handle.clone());
        let command = launch.containers.first().and_then(|container| container.command.first());
        match command.map(String::as_str) {
            Some(ALWAYS_FAILS) => drop(inner.hopeless.insert(launch.handle.clone())),
            Some(NEVER_ENDS) => drop(inner.endless.insert(launch.handle.clone())),
            _ => {}
        }
        inner.waiting.insert((Reverse(launch.priority), launch.handle), launch.prefetch);
        inner.fill();
    }

    fn recall(&self, handle: &Handle) {
        let mut inner = self.0.lock();
        if inner.fate.is_dead() {
            return;
        }
        if let Some(place) = inner.place_of(handle)
            && let Some(prefetch) = inner.waiting.remove(&place)
        {
            inner.left.remove(handle);
            inner.happened(handle, Observation::Returned { prefetch });
        } else if inner.running.contains_key(handle) {
            // A recall is always answered: with what became of the attempt.
            inner.happened(handle, Observation::Started);
        }
    }

    fn stop(&self, handle: &Handle, _grace: Duration) {
        let mut inner = self.0.lock();
        if inner.fate.is_dead() {
            return;
        }
        let until = Millis(inner.now.0 + GRACE);
        if let Some(life) = inner.running.get_mut(handle)
            && *life == Life::Runs
        {
            *life = Life::Stopping(until);
        } else if let Some(place) = inner.place_of(handle) {
            inner.waiting.remove(&place);
            // Nothing of it ever ran.
            let (cause, at) = (Cause::Stopped, inner.now);
            let (containers, files) = (Vec::new(), Vec::new());
            let ending = Ending { containers, cause, at, message: None, reason: None, files };
            inner.happened(handle, Observation::Ended(ending));
        }
    }

    fn keep_logs(&self, handle: &Handle, _blobs: &dyn Blobs) -> Result<(), FilesError> {
        let inner = self.0.lock();
        if inner.now < inner.away_until {
            return Err(std::io::Error::other("the place of logs cannot be reached").into());
        }
        if inner.left.contains(handle) && !inner.fate.is_dead() {
            inner.recorder.note(What::Kept(program(handle, &inner.place)));
        }
        Ok(())
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        let mut inner = self.0.lock();
        if inner.is_known(handle) {
            return Err(FilesError::Running);
        }
        if !inner.fate.is_dead() && inner.left.remove(handle) {
            inner.recorder.note(What::Removed(program(handle, &inner.place)));
        }
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(self.0.lock().left.iter().cloned().collect())
    }
}

impl FakeRuntime {
    /// A machine on which nothing runs.
    pub fn new(name: &str, recorder: Recorder, fate: Fate, dice: Dice) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            place: format!("server/{name}"),
            recorder,
            fate,
            dice,
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            facts: Vec::new(),
            left: BTreeSet::new(),
            hopeless: BTreeSet::new(),
            endless: BTreeSet::new(),
            away_until: Millis(0),
            is_quiet: false,
            now: Millis(0),
        })))
    }

    /// True if nothing runs or waits.
    pub fn is_idle(&self) -> bool {
        let inner = self.0.lock();
        inner.running.is_empty() && inner.waiting.is_empty() && inner.facts.is_empty()
    }

    /// Everything that runs is killed; whether anybody hears of it.
    pub fn kill_all(&self, is_heard: bool) {
        let mut inner = self.0.lock();
        let running: Vec<Handle> = inner.running.keys().cloned().collect();
        let waiting: Vec<Handle> = std::mem::take(&mut inner.waiting).into_keys().map(|(_, it)| it).collect();
        for handle in running.iter().chain(&waiting) {
            inner.end(handle, None);
            inner.happened(handle, lost());
        }
        if !is_heard {
            inner.facts.clear();
        }
    }

    /// Some programs move on. In a quiet world all of them end soon, and well.
    pub fn move_on(&self, now: Millis, is_quiet: bool) {
        let mut inner = self.0.lock();
        (inner.now, inner.is_quiet) = (now, is_quiet);
        let running: Vec<_> = inner.running.iter().map(|(handle, life)| (handle.clone(), *life)).collect();
        for (handle, life) in running {
            let ends = match life {
                Life::Runs if inner.endless.contains(&handle) => false,
                Life::Runs => inner.dice.once_in(if is_quiet { 3 } else { 10 }),
                Life::Stopping(until) => now > until || inner.dice.once_in(3),
            };
            let (exit, what) = match life {
                Life::Runs if !is_quiet && inner.dice.once_in(300) => (None, lost()),
                Life::Runs if ends && inner.hopeless.contains(&handle) => failed(now),
                Life::Runs if ends => ended(&mut inner.dice, Cause::Itself, now, is_quiet),
                Life::Stopping(_) if ends => ended(&mut inner.dice, Cause::Stopped, now, is_quiet),
                Life::Runs | Life::Stopping(_) => continue,
            };
            inner.end(&handle, exit);
            inner.happened(&handle, what);
        }
        inner.fill();
    }

    /// The place where logs are kept cannot be reached for a while.
    pub fn cut_off_logs(&self, until: Millis) {
        self.0.lock().away_until = until;
    }

    /// Something happened that was not fetched.
    pub fn has_news(&self) -> bool {
        !self.0.lock().facts.is_empty()
    }

    /// What happened since.
    pub fn take_facts(&self) -> Vec<Fact> {
        std::mem::take(&mut self.0.lock().facts)
    }
}

fn lost() -> Observation {
    Observation::Lost { reason: EXECUTOR_LOST.to_owned(), message: "the executor is gone".to_owned() }
}

/// It failed, as always.
fn failed(now: Millis) -> (Option<i32>, Observation) {
    (Some(1), Observation::Ended(Ending::of_leader(1, Cause::Itself, now)))
}

fn ended(dice: &mut Dice, cause: Cause, now: Millis, is_quiet: bool) -> (Option<i32>, Observation) {
    let cause = if cause == Cause::Itself && !is_quiet && dice.once_in(10) { Cause::Timeout } else { cause };
    let codes: &[i32] = if is_quiet { &[0] } else { &[0, 0, 0, 0, 1, 137] };
    let exit_code = match cause {
        Cause::Timeout | Cause::Stopped => 143,
        Cause::Itself | Cause::LogFailed => dice.pick(codes).copied().unwrap_or(0),
    };
    let container = ContainerEnding {
        name: "addon".to_owned(),
        exit_code,
        signal: (exit_code > 128).then_some(exit_code - 128),
        killed_as_leftover: false,
        log_bytes: 1,
    };
    let ending =
        Ending { containers: vec![container], cause, at: now, message: None, reason: None, files: vec![] };
    (Some(exit_code), Observation::Ended(ending))
}
