//! Who makes room for a task that has waited long enough.
//!
//! Decides: whether a task may preempt, and which running tasks leave for it. Priorities are effective ones on both sides. Only
//! tasks leave that give back something that is lacking, no more of them than are needed, the lowest first, and only if that
//! makes enough room. What leaves already counts as gone.

use std::cmp::Reverse;

use muster_types::State;

use crate::board::{Board, Entry, Phase};
use crate::capacity::{Load, Room};
use crate::group::Slot;
use crate::plan::{Decision, Plan, earliest};
use crate::settings::Rule;
use crate::view::Need;

/// The right of a task to preempt others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Right {
    /// Tasks of lower effective priority give way.
    pub priority: i32,
    /// Since when a task that depends on it has lent it the right, in seconds; its own has always been there.
    pub lent_since: i64,
}

/// The tasks that make room for another one.
#[derive(Debug, Default)]
pub(crate) struct Victims {
    /// All of them, in the order in which they leave.
    pub needed: Vec<Slot>,
    /// How many of them leave in one pass at most.
    pub share: usize,
}

impl Board {
    /// The right of a task to preempt: its own, or that of a waiting task that depends on it, with that one's priority.
    pub(crate) fn right_to_preempt(&self, slot: Slot) -> Option<Right> {
        let entry = self.entry(slot)?;
        if entry.preempt_enabled {
            return Some(Right { priority: self.effective_priority(entry), lent_since: i64::MIN });
        }
        if !self.settings.keeps(Rule::Escalation) {
            return None;
        }
        let lenders = self.dependents_of(entry.group).into_iter();
        let first = |group: u32| self.groups[group as usize].preempting.first().copied();
        let (Reverse(priority), lender) = lenders.filter_map(first).min()?;
        let lent_since = self.entry(lender)?.since;
        Some(Right { priority: priority.max(entry.priority), lent_since })
    }

    /// When something that waits since some second may preempt: not a moment before the whole delay is over.
    pub(crate) fn preempts_at(&self, since: i64) -> i64 {
        since.saturating_add(self.settings.preempt_delay).saturating_add(1)
    }

    /// Makes room for a task that has waited long enough. True if it did.
    pub(crate) fn preempt(&mut self, slot: Slot, now: i64, plan: &mut Plan) -> bool {
        let Some(entry) = self.entry(slot).filter(|entry| entry.phase == Phase::Waiting(State::QuotaBlocked))
        else {
            return false;
        };
        let Some(right) = self.right_to_preempt(slot) else { return false };
        let due = self.preempts_at(entry.since.max(right.lent_since));
        if due > now {
            plan.wake_at = earliest(plan.wake_at, Some(due));
            return false;
        }
        let Victims { needed: mut victims, share } = self.find_victims(slot, right);
        victims.truncate(share);
        let by = self.reference(slot);
        for victim in &victims {
            let task = self.reference(*victim);
            self.mark_stopping(*victim);
            plan.decisions.push(Decision::Preempt { task, by: by.clone() });
        }
        !victims.is_empty()
    }

    /// The tasks that leave; none if there is no need, or if all that may leave would not make enough room.
    pub(crate) fn find_victims(&self, slot: Slot, right: Right) -> Victims {
        let Some(entry) = self.entry(slot) else { return Victims::default() };
        let (runtime, need) = (entry.runtime, entry.need);
        let load_of = |slot: Slot| self.entry(slot).filter(|other| other.runtime == runtime).map(Entry::load);
        let mut room = self.room_for(entry);
        // What waits here for a slot is taken back for a task that makes others leave.
        room.prefetched = 0;
        self.leaving.iter().filter_map(|slot| load_of(*slot)).for_each(|other| room.leave(other));
        let lack = room.lack_for(need);
        if !lack.any() {
            return Victims::default();
        }
        let only_lower = self.settings.keeps(Rule::Preemption);
        let candidates: Vec<(Slot, Load)> = self
            .victims
            .iter()
            .take_while(|(priority, ..)| *priority < right.priority || !only_lower)
            .filter_map(|(.., slot)| Some((*slot, load_of(*slot)?)))
            .filter(|(_, other)| room.gives_back(lack, *other))
            .collect();
        let share = candidates.len().saturating_mul(self.settings.preempt_rate as usize).div_ceil(100).max(1);
        Victims { needed: enough_of(candidates, room, need), share }
    }
}

/// As many of the candidates, in their order, as make room for a need; nothing if all of them do not.
fn enough_of(candidates: Vec<(Slot, Load)>, mut room: Room, need: Need) -> Vec<Slot> {
    let mut chosen = Vec::new();
    for (slot, other) in candidates {
        let lack = room.lack_for(need);
        if !lack.any() {
            break;
        }
        if room.gives_back(lack, other) {
            room.leave(other);
            chosen.push((slot, other));
        }
    }
    if room.lack_for(need).any() {
        return Vec::new();
    }
    // A later one may have given back what an earlier one left for.
    let mut needed = Vec::new();
    for (slot, other) in chosen.into_iter().rev() {
        let mut with = room;
        with.enter(other);
        if with.lack_for(need).any() {
            needed.push(slot);
        } else {
            room = with;
        }
    }
    needed.reverse();
    needed
}
