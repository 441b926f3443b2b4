//! Attempts that wait for a slot, and how many have one: known to the executor and to the threads that start programs for it.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use muster_types::attempt::{Handle, Launch, Limits};

use crate::waiting::Waiting;

/// Shared by all who start attempts. Whoever takes one takes a slot with it, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Waiting,
    /// Taken by a thread, and not yet known to the executor.
    begun: HashSet<Handle>,
    /// Slots that are in use, and how many there are.
    running: usize,
    max: Option<usize>,
    /// Threads that wait for something to start.
    idle: usize,
    /// Threads are to start nothing for now.
    on_hold: bool,
    /// Nor ever again.
    closed: bool,
}

impl Queue {
    /// With so many slots; none means any number.
    pub(crate) fn new(max: Option<usize>) -> Self {
        Self { state: Mutex::new(State { max, ..State::default() }), changed: Condvar::new() }
    }

    /// Puts one in its place, unless it is known here.
    pub(crate) fn push(&self, launch: Launch) {
        let mut state = self.lock();
        if !state.waiting.contains(&launch.handle) && !state.begun.contains(&launch.handle) {
            state.waiting.push(launch);
            self.wake_one(&state);
        }
    }

    /// Takes one out of the row, if it waits.
    pub(crate) fn remove(&self, handle: &Handle) -> Option<Launch> {
        self.lock().waiting.remove(handle)
    }

    /// Takes everything out of the row.
    pub(crate) fn remove_all(&self) -> Vec<Launch> {
        let mut state = self.lock();
        std::iter::from_fn(|| state.waiting.pop()).collect()
    }

    pub(crate) fn waits(&self, handle: &Handle) -> bool {
        self.lock().waiting.contains(handle)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Slots in use.
    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }

    /// The next one, for the executor: one that threads cannot start, that nobody else is there to start, or that would run alone.
    pub(crate) fn take(&self, has_threads: bool) -> Option<Launch> {
        let mut state = self.lock();
        let is_alone = state.running == 0 && state.waiting.len() == 1;
        let next = state.waiting.first().filter(|_| state.has_room())?;
        if has_threads && is_plain(next) && !is_alone {
            return None;
        }
        state.running += 1;
        state.waiting.pop()
    }

    /// Whether the next one could be started by a thread, and would not run alone.
    pub(crate) fn wants_threads(&self) -> bool {
        let state = self.lock();
        let is_alone = state.running == 0 && state.waiting.len() == 1;
        !is_alone && state.waiting.first().is_some_and(is_plain)
    }

    /// A slot is free again.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.running = state.running.saturating_sub(1);
        self.wake_one(&state);
    }

    /// The next one, for a thread that gives back the slot it had, if there is one right now.
    pub(crate) fn take_plain(&self, gives_back: bool) -> Option<Launch> {
        let mut state = self.lock();
        state.running = state.running.saturating_sub(usize::from(gives_back));
        state.take_plain()
    }

    /// The same, when there is one. None when nothing comes any more.
    pub(crate) fn wait_plain(&self) -> Option<Launch> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(launch) = state.take_plain() {
                return Some(launch);
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle = state.idle.saturating_sub(1);
        }
    }

    /// The executor knows of one that a thread began.
    pub(crate) fn take_in(&self, handle: &Handle) {
        self.lock().begun.remove(handle);
    }

    /// Whether a thread began this one and the executor does not know.
    pub(crate) fn is_begun(&self, handle: &Handle) -> bool {
        self.lock().begun.contains(handle)
    }

    /// Whether there is anything that threads began and the executor does not know.
    pub(crate) fn has_begun(&self) -> bool {
        !self.lock().begun.is_empty()
    }

    /// Threads start nothing more, or go on.
    pub(crate) fn hold(&self, on_hold: bool) {
        let mut state = self.lock();
        state.on_hold = on_hold;
        if !on_hold && state.idle > 0 {
            self.changed.notify_all();
        }
    }

    /// Threads end.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn wake_one(&self, state: &State) {
        // Waking nobody would still be a call.
        if state.idle > 0 && state.waiting.len() > 0 {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.max.is_none_or(|max| self.running < max)
    }

    fn take_plain(&mut self) -> Option<Launch> {
        let next = self.waiting.first().filter(|_| self.has_room() && !self.on_hold && !self.closed)?;
        if !is_plain(next) {
            return None;
        }
        let launch = self.waiting.pop()?;
        self.running += 1;
        self.begun.insert(launch.handle.clone());
        Some(launch)
    }
}

/// Whether any thread can start it: one program, for whoever runs this, in a directory of its own, with nothing in it before.
fn is_plain(launch: &Launch) -> bool {
    let for_another = |user: &str, files: bool| !user.is_empty() || files;
    launch.containers.len() == 1
        && launch.limits == Limits::default()
        && launch.image.is_none()
        && launch.data.is_none()
        && launch.robot.as_ref().is_none_or(|robot| !for_another(&robot.user, !robot.artifacts.is_empty()))
}
