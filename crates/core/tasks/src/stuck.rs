//! Room for attempts that were made and find no place: their tasks may preempt too.
//!
//! Decides: whether a task whose attempt a runtime took in and cannot place makes others leave. Never for what nobody can free,
//! such as a label that no node has: only what a place is short of, and only tasks that use some of it, make a difference. After
//! each time it waits again: whoever left may be enough.

use crate::board::{Board, Phase};
use crate::capacity::{Lack, Usage};
use crate::group::Slot;
use crate::plan::{Decision, Plan, earliest};
use crate::preemption::Right;
use crate::settings::Rule;

/// An attempt that finds no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// Since when, or since the last time that others left for it, in seconds.
    since: i64,
    lack: Lack,
}

/// What places are short of, in the words of a cluster's scheduler; `None` if it is nothing that others could free.
pub fn read_shortage(message: &str) -> Option<Lack> {
    let lack = Lack {
        slots: message.contains("Too many pods"),
        cpu: message.contains("Insufficient cpu"),
        memory: message.contains("Insufficient memory"),
        guard: None,
        usage: Usage::default(),
    };
    lack.any().then_some(lack)
}

impl Board {
    /// The attempt of a task finds no place for lack of something.
    pub fn observe_stuck(&mut self, uid: u128, lack: Lack, now: i64) {
        self.stuck.entry(uid).or_insert(Stuck { since: now, lack }).lack = lack;
    }

    /// The attempt of a task found a place, or is gone.
    pub fn observe_placed(&mut self, uid: u128) {
        self.stuck.remove(&uid);
        self.forget_stuck_pod(uid);
    }

    /// Makes others leave for the first attempt that has waited long enough for a place.
    pub(crate) fn preempt_for_stuck(&mut self, now: i64, plan: &mut Plan) {
        let mut waiting: Vec<(Right, u128, Stuck)> = self
            .stuck
            .iter()
            .filter_map(|(uid, stuck)| {
                let slot = self.slot_of(*uid)?;
                let entry = self.entry(slot)?;
                let right = self.right_to_preempt(slot)?;
                (entry.phase == Phase::Pending && !entry.stopping).then_some((right, *uid, *stuck))
            })
            .collect();
        waiting.sort_by_key(|(right, uid, _)| (std::cmp::Reverse(right.priority), *uid));
        for (right, uid, stuck) in waiting {
            let due = self.preempts_at(right.lent_since.max(stuck.since));
            if due > now {
                plan.wake_at = earliest(plan.wake_at, Some(due));
                continue;
            }
            if self.make_leave(uid, right.priority, stuck.lack, plan) {
                self.stuck.insert(uid, Stuck { since: now, ..stuck });
                plan.wake_at = earliest(plan.wake_at, Some(self.preempts_at(now)));
                return;
            }
        }
    }

    /// True if somebody leaves who has some of what is lacking.
    fn make_leave(&mut self, uid: u128, priority: i32, lack: Lack, plan: &mut Plan) -> bool {
        let Some(slot) = self.slot_of(uid) else { return false };
        let Some(runtime) = self.entry(slot).map(|entry| entry.runtime) else { return false };
        let only_lower = self.settings.keeps(Rule::Preemption);
        let helps = |slot: &Slot| {
            self.entry(*slot).is_some_and(|entry| entry.runtime == runtime && lack.concerns(entry.need))
        };
        // Whoever leaves already may be enough.
        if self.leaving.iter().any(helps) {
            return false;
        }
        let lower = self.victims.iter().take_while(|(other, ..)| *other < priority || !only_lower);
        let candidates: Vec<Slot> = lower.map(|(.., slot)| *slot).filter(helps).collect();
        let share = candidates.len().saturating_mul(self.settings.preempt_rate as usize).div_ceil(100).max(1);
        let by = self.reference(slot);
        for victim in candidates.iter().copied().take(share) {
            let task = self.reference(victim);
            self.mark_stopping(victim);
            plan.decisions.push(Decision::Preempt { task, by: by.clone() });
        }
        !candidates.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_could_free_is_a_shortage() {
        let read = |message: &str| read_shortage(message).map(|lack| (lack.slots, lack.cpu, lack.memory));
        let said = "0/3 nodes are available: 1 Insufficient memory, 2 Insufficient cpu. preemption: 0/3 nodes are available";
        assert_eq!(read(said), Some((false, true, true)));
        assert_eq!(read("0/1 nodes are available: 1 Too many pods."), Some((true, false, false)));
        assert_eq!(
            read("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."),
            None
        );
        assert_eq!(read(""), None);
    }
}
