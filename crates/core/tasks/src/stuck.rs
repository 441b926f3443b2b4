//! Room for attempts that were made and find no place: their tasks may preempt too.
//!
//! Decides: which tasks are preempted for a pod that was created and finds no node. Only tasks that use some of what nodes are short
//! of are preempted; a label that no node has is no shortage. If all tasks that may be preempted have less than the pod asks for, none
//! is. After each preemption the pod waits again, because what was freed may be enough. Once as much was freed as it asks for and it
//! still finds no node, room is not what it lacks, and no more tasks are preempted for that attempt. If the pod does not say how much
//! it asks for, each task of lower priority is preempted for it once at most.

use std::collections::BTreeMap;

use crate::board::{Board, Phase};
use crate::capacity::{Lack, Usage};
use crate::group::Slot;
use crate::plan::{Decision, Plan, earliest};
use crate::preemption::Right;
use crate::settings::Rule;
use crate::view::Need;

/// An attempt that finds no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// Since when, or since the last time that others left for it, in seconds.
    since: i64,
    /// What places were short of when that was last said; it may be nothing.
    lack: Lack,
    /// The tasks that left for it, by uid, with what they needed.
    left: BTreeMap<u128, Need>,
}

/// How much still has to leave for an attempt, of what places are short of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Missing {
    slots: u64,
    cpu_millis: u64,
    memory: u64,
}

impl Missing {
    /// Everything that an attempt asks for; `None` if that is not known.
    fn of(lack: Lack, asked: Need) -> Option<Self> {
        let is_known = !(lack.cpu && asked.cpu_millis == 0 || lack.memory && asked.memory == 0);
        is_known.then_some(Self {
            slots: u64::from(lack.slots),
            cpu_millis: if lack.cpu { asked.cpu_millis } else { 0 },
            memory: if lack.memory { asked.memory } else { 0 },
        })
    }

    fn without(self, left: Need) -> Self {
        Self {
            slots: self.slots.saturating_sub(1),
            cpu_millis: self.cpu_millis.saturating_sub(left.cpu_millis),
            memory: self.memory.saturating_sub(left.memory),
        }
    }

    fn is_nothing(self) -> bool {
        self == Self { slots: 0, cpu_millis: 0, memory: 0 }
    }
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
    /// The attempt of a task finds no place, for lack of something or for another reason.
    pub fn observe_stuck(&mut self, uid: u128, lack: Lack, now: i64) {
        self.stuck.entry(uid).or_insert(Stuck { since: now, lack, left: BTreeMap::new() }).lack = lack;
    }

    /// A task that was told to end was not: that could not be committed.
    pub(crate) fn observe_stays(&mut self, uid: u128) {
        for stuck in self.stuck.values_mut() {
            stuck.left.remove(&uid);
        }
    }

    /// The attempt of a task found a place, or is gone.
    pub fn observe_placed(&mut self, uid: u128) {
        self.stuck.remove(&uid);
        self.forget_stuck_pod(uid);
    }

    /// Makes others leave for the first attempt that has waited long enough for a place.
    pub(crate) fn preempt_for_stuck(&mut self, now: i64, plan: &mut Plan) {
        let mut waiting: Vec<(Right, u128, i64)> = self
            .stuck
            .iter()
            .filter(|(_, stuck)| stuck.lack.any())
            .filter_map(|(uid, stuck)| {
                let slot = self.slot_of(*uid)?;
                let entry = self.entry(slot)?;
                let right = self.right_to_preempt(slot)?;
                (entry.phase == Phase::Pending && !entry.stopping).then_some((right, *uid, stuck.since))
            })
            .collect();
        waiting.sort_by_key(|(right, uid, _)| (std::cmp::Reverse(right.priority), *uid));
        for (right, uid, since) in waiting {
            let due = self.preempts_at(right.lent_since.max(since));
            if due > now {
                plan.wake_at = earliest(plan.wake_at, Some(due));
                continue;
            }
            let leave = self.who_leaves(uid, right.priority);
            if leave.is_empty() {
                continue;
            }
            self.make_leave(uid, &leave, now, plan);
            plan.wake_at = earliest(plan.wake_at, Some(self.preempts_at(now)));
            return;
        }
    }

    /// The tasks that leave next for an attempt: none if that cannot help, or if some leave already, who may be enough.
    fn who_leaves(&self, uid: u128, priority: i32) -> Vec<Slot> {
        let Some(entry) = self.slot_of(uid).and_then(|slot| self.entry(slot)) else { return Vec::new() };
        let Some(Stuck { lack, left, .. }) = self.stuck.get(&uid) else { return Vec::new() };
        let runtime = entry.runtime;
        let helps =
            |slot: &Slot| self.entry(*slot).filter(|it| it.runtime == runtime && lack.concerns(it.need));
        if self.leaving.iter().any(|slot| helps(slot).is_some()) {
            return Vec::new();
        }
        let only_lower = self.settings.keeps(Rule::Preemption);
        let lower = self.victims.iter().take_while(|(other, ..)| *other < priority || !only_lower);
        let candidates: Vec<(Slot, Need)> = lower
            .filter_map(|(.., slot)| helps(slot).map(|it| (*slot, it)))
            .filter(|(_, it)| !left.contains_key(&it.uid))
            .map(|(slot, it)| (slot, it.need))
            .collect();
        let share = candidates.len().saturating_mul(self.settings.preempt_rate as usize).div_ceil(100).max(1);
        let Some(asked) = Missing::of(*lack, entry.need) else {
            return candidates.into_iter().map(|(slot, _)| slot).take(share).collect();
        };
        let mut missing = left.values().fold(asked, |missing, need| missing.without(*need));
        let mut leave = Vec::new();
        for (slot, need) in candidates {
            let then = missing.without(need);
            if then != missing {
                leave.push(slot);
                missing = then;
            }
        }
        if !missing.is_nothing() {
            return Vec::new();
        }
        leave.truncate(share);
        leave
    }

    /// Tells tasks to end for an attempt that finds no place.
    fn make_leave(&mut self, uid: u128, leave: &[Slot], now: i64, plan: &mut Plan) {
        let Some(by) = self.slot_of(uid).map(|slot| self.reference(slot)) else { return };
        for victim in leave.iter().copied() {
            let Some(need) = self.entry(victim).map(|entry| entry.need) else { continue };
            let task = self.reference(victim);
            self.mark_stopping(victim);
            if let Some(stuck) = self.stuck.get_mut(&uid) {
                stuck.left.insert(task.uid, need);
                stuck.since = now;
            }
            plan.decisions.push(Decision::Preempt { task, by: by.clone() });
        }
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
