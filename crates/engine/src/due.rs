//! What must happen at a time: tasks whose time is over, and what ended attempts left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_ports::runtime::Handle;
use muster_ports::store::Pin;

/// Times to act at, in seconds.
#[derive(Debug, Default)]
pub struct Due {
    tasks: BTreeMap<(i64, u128), Arc<str>>,
    by_task: BTreeMap<u128, i64>,
    attempts: BTreeSet<(i64, Handle)>,
    /// Until when what an attempt left is kept, and what keeps its task until then.
    left: BTreeMap<Handle, (i64, Pin)>,
}

impl Due {
    /// The time of a task is over then, or never; replaces what was said of it before.
    pub fn set(&mut self, uid: u128, path: &Arc<str>, at: Option<i64>) {
        let old = match at {
            Some(at) => self.by_task.insert(uid, at),
            None => self.by_task.remove(&uid),
        };
        if let Some(old) = old {
            self.tasks.remove(&(old, uid));
        }
        if let Some(at) = at {
            self.tasks.insert((at, uid), path.clone());
        }
    }

    /// What an attempt left is kept until then; replaces what was said of it before.
    pub fn keep(&mut self, pin: Pin, until: i64) {
        let handle = pin.handle().clone();
        if let Some((old, _)) = self.left.insert(handle.clone(), (until, pin)) {
            self.attempts.remove(&(old, handle.clone()));
        }
        self.attempts.insert((until, handle));
    }

    /// What an attempt left is kept no longer.
    pub fn take_attempt(&mut self, handle: &Handle) -> Option<Pin> {
        let (until, pin) = self.left.remove(handle)?;
        self.attempts.remove(&(until, handle.clone()));
        Some(pin)
    }

    /// What the attempts of a task left is kept no longer.
    pub fn forget_attempts(&mut self, task: &str) {
        let first = Handle { task: task.to_owned(), attempt: 0 };
        let own =
            self.left.range(first..).map_while(|(handle, _)| (handle.task == task).then(|| handle.clone()));
        for handle in own.collect::<Vec<_>>() {
            self.take_attempt(&handle);
        }
    }

    /// The next task whose time is over.
    pub fn next_task(&mut self, now: i64) -> Option<Arc<str>> {
        let (&(at, uid), _) = self.tasks.first_key_value().filter(|((at, _), _)| *at <= now)?;
        self.by_task.remove(&uid);
        self.tasks.remove(&(at, uid))
    }

    /// The next attempt whose files are kept no longer.
    pub fn next_attempt(&mut self, now: i64) -> Option<Pin> {
        let (_, handle) = self.attempts.first().filter(|(at, _)| *at <= now)?.clone();
        self.take_attempt(&handle)
    }

    /// Where a task is stored whose time will be over.
    pub fn path_of(&self, uid: u128) -> Option<&Arc<str>> {
        self.tasks.get(&(*self.by_task.get(&uid)?, uid))
    }

    /// When there is something to do.
    pub fn first(&self) -> Option<i64> {
        let task = self.tasks.first_key_value().map(|((at, _), _)| *at);
        let attempt = self.attempts.first().map(|(at, _)| *at);
        task.into_iter().chain(attempt).min()
    }
}
