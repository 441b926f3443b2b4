//! Isolated tasks whose pod found no place in the cluster: they hold back no other task.
//!
//! Decides: an isolated task is set back if a quota refused it, or if no node took its pod for as long as a task is blocked before it
//! preempts. While others wait, such a pod is taken back, and its task rests for as long as any pod that finds no node holds back
//! those like it. A task that is set back starts only when no other task is active, and holds back no other task until then.
//! When a node takes its pod, the task is no longer set back.
//!
//! Nothing of this is written down: the next server learns it with the next try.

use crate::board::{Board, Phase};
use crate::plan::{Decision, Plan, earliest};

/// Since when no node takes the pod of its present attempt, in seconds; `None` if it has none, or that is not known.
pub(crate) type NoNodeSince = Option<i64>;

impl Board {
    /// A quota refused the attempt of a task.
    pub fn observe_refusal(&mut self, uid: u128) {
        if self.is_isolated(uid) {
            self.set_back.insert(uid, None);
        }
    }

    /// No node takes the pod of a task. True if that is new of this attempt and the task is isolated.
    pub(crate) fn set_back_without_node(&mut self, uid: u128, now: i64) -> bool {
        if !self.is_isolated(uid) {
            return false;
        }
        let since = self.set_back.entry(uid).or_default();
        let is_new = since.is_none();
        since.get_or_insert(now);
        is_new
    }

    /// Takes back an isolated pod that has found no node for long enough, if others wait.
    pub(crate) fn take_back_isolated(&mut self, now: i64, plan: &mut Plan) {
        if self.isolated_active == 0 || self.offered.is_empty() {
            return;
        }
        let waits = self.set_back.iter().filter_map(|(uid, since)| Some((self.slot_of(*uid)?, (*since)?)));
        let pending = waits.filter(|(slot, _)| {
            self.entry(*slot).is_some_and(|entry| entry.phase == Phase::Pending && !entry.stopping)
        });
        for (slot, since) in pending.collect::<Vec<_>>() {
            let due = self.preempts_at(since);
            if due > now {
                plan.wake_at = earliest(plan.wake_at, Some(due));
                continue;
            }
            plan.decisions.push(Decision::TakeBack { task: self.reference(slot) });
            self.mark_stopping(slot);
        }
    }

    fn is_isolated(&self, uid: u128) -> bool {
        self.slot_of(uid).and_then(|slot| self.entry(slot)).is_some_and(|entry| entry.isolated)
    }
}
