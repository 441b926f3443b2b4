//! Deleted tasks whose attempt has not ended.
//!
//! Leaving is a state: such a task keeps its place on the board, in every rule and at its robot, until the last fact of its
//! attempt. Nothing of it is stored any more, so it is known here alone; what outlives the server is kept from being deleted
//! before its attempt has ended by a finalizer instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_ports::runtime::{Fact, Handle};
use muster_ports::store::Key;
use muster_tasks::brief::Brief;
use muster_tasks::view::parse_uid;

use super::news::ends;
use super::{Engine, Uid};
use crate::files::Order;

impl Engine {
    /// A task is gone: its attempt is told to end, and its files go when it has.
    pub(super) fn vanish(&mut self, brief: &Brief) {
        let (uid, path) = (brief.view.uid, &brief.view.path);
        self.due.set(uid, path, None);
        self.held.remove(path);
        let task = uid_text(uid);
        self.due.forget_attempts(&task);
        let own = self.pods_left.range(Handle { task: task.clone(), attempt: 0 }..);
        let own: Vec<Handle> =
            own.map_while(|(handle, _)| (handle.task == task).then(|| handle.clone())).collect();
        for handle in &own {
            self.pods_left.remove(handle);
        }
        self.waits_for_logs.remove(&task);
        self.hear_waiting(&task);
        // An attempt that this engine never heard of will never be heard of.
        let is_known = self.attempts.remove(&uid).is_some();
        if brief.has_attempt() {
            self.outside.runtime.stop(&handle_of(brief), self.grace(brief.kill_timeout));
        }
        if brief.has_attempt() && is_known {
            self.keep_place(brief.clone());
            return;
        }
        self.board.forget(uid);
        self.robots.forget(uid, path);
        self.files.order(Order::Forget { task, attempts: brief.attempts });
    }

    /// What is deleted stays on the board as a task whose attempt is about to end.
    fn keep_place(&mut self, mut brief: Brief) {
        (brief.view.stopping, brief.view.deleted) = (true, true);
        brief.view.awaited = None;
        self.show(&brief.view);
        self.orphans.insert(brief.view.uid, brief);
    }

    /// Takes in news of an attempt whose task is gone: the last of it frees its place. True if it was such news.
    pub(super) fn observe_orphan(&mut self, fact: &Fact) -> bool {
        let Some(uid) = parse_uid(&fact.handle.task) else { return false };
        let Some(orphan) = self.orphans.get(&uid) else { return false };
        self.ran.remove(&fact.handle);
        if ends(&fact.what) && orphan.attempt == fact.handle.attempt {
            let attempts = orphan.attempts;
            self.orphans.remove(&uid);
            self.board.forget(uid);
            self.robots.fleet.release(uid);
            self.files.order(Order::Forget { task: fact.handle.task.clone(), attempts });
        }
        true
    }

    /// After starting over: what was deleted before has its place on the new board, and so has what was deleted meanwhile, which
    /// is told to end.
    pub(super) fn keep_places(&mut self, before: BTreeMap<u128, Brief>) {
        for orphan in std::mem::take(&mut self.orphans).into_values() {
            self.keep_place(orphan);
        }
        for (uid, brief) in before {
            if self.is_gone(&brief.view.path, uid) {
                self.attempts.insert(uid, brief.clone());
                self.vanish(&brief);
            }
        }
    }

    /// True if a task is not stored any more. Another one may have its name.
    pub(super) fn is_gone(&self, path: &Arc<str>, uid: u128) -> bool {
        let key = Key { resource: self.tasks.clone(), path: path.clone() };
        let stored = self.outside.store.get(&key).and_then(|stored| stored.metadata::<Uid>());
        stored.is_none_or(|stored| parse_uid(&stored.uid) != Some(uid))
    }
}

pub(super) fn handle_of(brief: &Brief) -> Handle {
    Handle { task: uid_text(brief.view.uid), attempt: brief.attempt }
}

/// A uid as it is written.
pub(super) fn uid_text(uid: u128) -> String {
    let hex = format!("{uid:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
