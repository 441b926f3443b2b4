//! After a start: what a former process left.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::runtime::{EXECUTOR_LOST, Fact, Handle, Observation};
use muster_ports::store::{Key, Stored};
use muster_tasks::brief::has_attempt;
use muster_tasks::reap::retention;
use muster_tasks::reconcile::leaving_of;
use muster_tasks::view::{other_attempt, parse_uid, state_of};
use muster_types::task::Runtime;
use muster_types::{State, Task};

use super::intake::Releasable;
use super::leaving::uid_text;
use super::{Engine, Uid, handle_of, read};
use crate::files::Order;
use crate::start::{Place, render_again, render_awaited, runtime_of};

impl Engine {
    /// After a start: attempts that are not alive any more are lost, and what is left of others is seen to.
    pub(super) fn sweep(&mut self) {
        let now = self.now();
        for path in self.board.active_paths() {
            self.lose(&path, now);
        }
        self.adopt_awaited();
        self.forget_left();
    }

    /// What ended attempts left has its time, and what belongs to no task and no group is let go.
    pub(super) fn forget_left(&mut self) {
        let now = self.now();
        let left = self.outside.runtime.stored().unwrap_or_else(|error| {
            tracing::warn!(%error, "what attempts left cannot be listed; it stays");
            Vec::new()
        });
        let kept = self.outside.blobs.tasks().unwrap_or_else(|error| {
            tracing::warn!(%error, "kept files cannot be listed; they stay");
            Vec::new()
        });
        let mut left_by: BTreeMap<String, Vec<Handle>> =
            kept.into_iter().map(|uid| (uid, Vec::new())).collect();
        for handle in left {
            left_by.entry(handle.task.clone()).or_default().push(handle);
        }
        // An attempt that still runs is let go when it has ended.
        for uid in self.orphans.keys() {
            left_by.remove(&uid_text(*uid));
        }
        self.keep_known(&mut left_by, now);
        for (task, handles) in left_by {
            let attempts = handles.iter().map(|handle| handle.attempt).max().unwrap_or(0);
            self.files.order(Order::Forget { task, attempts });
        }
    }

    /// The attempt of a task is not alive any more, unless it is a pod or on a robot: that is taken over.
    fn lose(&mut self, path: &Arc<str>, now: Millis) {
        if let Some(task) = self.fetch(path) {
            if self.take_over(&task) {
                return;
            }
            let what = Observation::Lost {
                reason: EXECUTOR_LOST.to_owned(),
                message: "the server was restarted".to_owned(),
            };
            self.facts.push(Fact { handle: handle_of(&task), at: now, what });
        }
    }

    /// True if the attempt of a task outlived the server that started it.
    fn take_over(&self, task: &Task) -> bool {
        let attempt = task.status.attempts.iter().find(|attempt| attempt.number == task.status.attempt);
        let ran_on = attempt.and_then(|attempt| attempt.runtime).or(task.spec.stated_runtime());
        let outlives = match runtime_of(&self.settings, ran_on) {
            Runtime::Process => false,
            Runtime::Pod => self.settings.pods.is_some(),
            Runtime::Robot => self.settings.robots.is_some(),
        };
        if !outlives {
            return false;
        }
        let traceparent = self.spans.traceparent(task, task.status.attempt);
        let place = Place { settings: &self.settings, catalogs: &self.catalogs, traceparent };
        let Some(launch) = render_again(&place, task) else { return false };
        let handle = launch.handle.clone();
        self.outside.runtime.adopt(launch, state_of(task) == State::Running);
        if task.status.stopping.is_some() {
            self.outside.runtime.stop(&handle, self.grace(task.spec.kill_timeout));
        }
        true
    }

    /// Attempts that counted as lost and may come back are heard of again, and so are those that are leaving.
    fn adopt_awaited(&mut self) {
        for path in self.robots.awaiting.clone() {
            let Some(task) = self.fetch(&path) else { continue };
            let Some(other) = other_attempt(&task) else { continue };
            let traceparent = self.spans.traceparent(&task, other);
            let place = Place { settings: &self.settings, catalogs: &self.catalogs, traceparent };
            let launch = render_awaited(&place, &task);
            let is_found = launch.is_some();
            if let Some(launch) = launch {
                self.outside.runtime.adopt(launch, true);
            }
            match leaving_of(&task) {
                Some(leaving) if is_found => {
                    self.outside.runtime.stop(&leaving, self.grace(task.spec.kill_timeout));
                }
                Some(leaving) => self.push_lost(leaving, "what it was made from is gone"),
                None => {}
            }
        }
    }

    /// Takes out whatever belongs to a task, and sees to its time.
    fn keep_known(&mut self, left_by: &mut BTreeMap<String, Vec<Handle>>, now: Millis) {
        let find = |uid: &String| {
            let uid = parse_uid(uid)?;
            self.board.path_of(uid).or_else(|| self.due.path_of(uid)).cloned()
        };
        let known: Vec<_> = left_by.keys().filter_map(find).collect();
        let mut found: Vec<Task> = known.iter().filter_map(|path| self.fetch(path)).collect();
        if found.len() < left_by.len() {
            // Groups are on no list, nor are tasks that stay for ever.
            found.clear();
            let tasks = self.outside.store.snapshot(&self.tasks);
            let groups = self.outside.store.snapshot(&self.groups);
            let groups = groups.range(None, None).filter(|stored| !is_released(stored));
            let mut unread: Vec<_> = groups.collect();
            for stored in tasks.range(None, None) {
                match read(stored.json()) {
                    Some(task) => found.push(task),
                    // What cannot be read is there all the same.
                    None => unread.push(stored),
                }
            }
            for Uid { uid } in unread.into_iter().filter_map(Stored::metadata) {
                left_by.remove(&uid);
            }
        }
        for task in found {
            if task.status.released.is_some() && !has_attempt(&task) {
                // Its files were to be let go, and perhaps were not yet.
                continue;
            }
            for handle in left_by.remove(&task.metadata.uid).unwrap_or_default() {
                self.keep_left(&task, handle, now);
            }
        }
    }

    pub(super) fn fetch(&self, path: &Arc<str>) -> Option<Task> {
        let key = Key { resource: self.tasks.clone(), path: path.clone() };
        read(self.outside.store.get(&key)?.json())
    }

    /// What an attempt of a former process left is kept as long as that of any other.
    fn keep_left(&mut self, task: &Task, handle: Handle, now: Millis) {
        let is_awaited = other_attempt(task) == Some(handle.attempt);
        if is_awaited || has_attempt(task) && task.status.current_attempt() == handle.attempt {
            return;
        }
        let attempt = task.status.attempts.iter().find(|attempt| attempt.number == handle.attempt);
        let succeeded = state_of(task) == State::Succeeded && task.status.attempt == handle.attempt;
        let finished = attempt.and_then(|attempt| attempt.finished_at).unwrap_or(now.to_milli_timestamp());
        let until = finished.next_second().saturating_add(retention(task, succeeded, &self.settings.reap));
        self.note_pod(task, &handle);
        let pin = self.pin(task, handle);
        self.due.keep(pin, until);
    }
}

/// True if the files of a group were let go.
fn is_released(stored: &Stored) -> bool {
    serde_json::from_slice::<Releasable>(stored.json()).is_ok_and(|group| group.status.released.is_some())
}
