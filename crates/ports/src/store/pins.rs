//! Objects that nothing may delete by itself yet, because something of theirs is not stored: the log of an attempt.
//!
//! A pin is of this process alone and names an attempt: it pins the attempt's task and the owners of that task. Loops that delete what
//! has been there for long enough ask for what they want to delete; whoever holds the pin then stores the log soon, and the pin is
//! dropped. A user's deletion does not wait for pins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::runtime::Handle;

/// The pins of a store. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Pins(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Uids of objects with the attempts that pin them, and how often each does. One flat map: there may be very many.
    by_uid: BTreeMap<(String, Handle), u32>,
    /// Attempts whose logs are wanted soon.
    asked: BTreeSet<Handle>,
}

/// Keeps some objects from being deleted by time, until it is dropped. A clone is a further pin.
#[derive(Debug)]
pub struct Pin {
    pins: Pins,
    handle: Handle,
    uids: Vec<String>,
}

impl Pins {
    /// Pins objects by their uids for an attempt whose log is not stored.
    pub fn pin(&self, handle: Handle, uids: Vec<String>) -> Pin {
        let mut state = self.0.state.lock();
        for uid in &uids {
            *state.by_uid.entry((uid.clone(), handle.clone())).or_default() += 1;
        }
        drop(state);
        Pin { pins: self.clone(), handle, uids }
    }

    /// True if an object may not be deleted yet.
    pub fn is_pinned(&self, uid: &str) -> bool {
        self.0.state.lock().of(uid).next().is_some()
    }

    /// The same, and asks for what it is pinned for to be stored soon.
    pub fn ask(&self, uid: &str) -> bool {
        let mut state = self.0.state.lock();
        let attempts: Vec<_> = state.of(uid).cloned().collect();
        if attempts.is_empty() {
            return false;
        }
        state.asked.extend(attempts);
        self.0.asked.notify_one();
        true
    }

    /// The attempts whose logs were asked for since this was called last.
    pub fn take_asked(&self) -> BTreeSet<Handle> {
        std::mem::take(&mut self.0.state.lock().asked)
    }

    /// Returns once something was asked for. For one caller.
    pub async fn asked(&self) {
        self.0.asked.notified().await;
    }
}

impl State {
    /// The attempts that pin an object.
    fn of(&self, uid: &str) -> impl Iterator<Item = &Handle> {
        let first = (uid.to_owned(), Handle { task: String::new(), attempt: 0 });
        let own = self.by_uid.range(first..).map(|(key, _)| key);
        own.take_while(move |(pinned, _)| pinned == uid).map(|(_, handle)| handle)
    }
}

impl Pin {
    /// The attempt whose log is not stored.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        self.pins.pin(self.handle.clone(), self.uids.clone())
    }
}

impl PartialEq for Pin {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle && self.uids == other.uids
    }
}

impl Eq for Pin {}

impl Drop for Pin {
    fn drop(&mut self) {
        let state = &mut *self.pins.0.state.lock();
        for uid in &self.uids {
            let key = (uid.clone(), self.handle.clone());
            if let Some(count) = state.by_uid.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    state.by_uid.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(attempt: u32) -> Handle {
        Handle { task: "task".to_owned(), attempt }
    }

    fn uids() -> Vec<String> {
        vec!["task".to_owned(), "group".to_owned()]
    }

    #[test]
    fn an_object_is_pinned_until_the_last_of_its_pins_is_dropped() {
        let pins = Pins::default();
        let (first, second) = (pins.pin(handle(1), uids()), pins.pin(handle(2), uids()));
        let again = first.clone();
        for dropped in [first, second] {
            drop(dropped);
            assert!(pins.is_pinned("task") && pins.is_pinned("group") && !pins.is_pinned("other"));
        }
        drop(again);
        assert!(!pins.is_pinned("task") && !pins.is_pinned("group"));
    }

    #[test]
    fn asking_for_an_object_names_the_attempts_that_pin_it_once() {
        let pins = Pins::default();
        let _held = [pins.pin(handle(1), uids()), pins.pin(handle(2), uids())];
        assert!(pins.ask("group") && !pins.ask("other"));
        assert_eq!(pins.take_asked(), BTreeSet::from([handle(1), handle(2)]));
        assert_eq!(pins.take_asked(), BTreeSet::new());
    }
}
