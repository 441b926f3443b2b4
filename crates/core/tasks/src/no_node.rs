//! Pods that find no node: tasks that need the same of a node wait, and nobody else does.
//!
//! Decides: while the pod of a task finds no node, tasks with the same placement needs are held back, so that priority keeps its
//! meaning and the cluster is not flooded. The needs are what the scheduler goes by: resources, selectors, tolerations, volumes, and
//! the addon or kind that may add to them. One task at a time is let through to see whether that has changed: at once if it ranks
//! above all that are stuck, and otherwise when the time limit is over. If a node takes it, all follow. If it is stuck too, or nothing
//! was heard of it for as long, the others wait for another limit. If it goes back to the queue, the next one is tried in its place.
//!
//! A group whose next task is held back is taken off the offers, so a pass does not look at it again until something changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::board::Board;
use crate::group::{GroupId, Rank, Slot};
use crate::plan::{Hold, TaskRef};

/// What a pod asks of a node; names by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlacementNeeds {
    pub placement: u32,
    pub kind: u32,
    pub addon: u32,
    pub cpu_millis: u64,
    pub memory: u64,
}

/// Number of the placement needs of a task, from 1; 0 for what is no pod.
pub(crate) type NeedsId = u32;

/// Pods that find no node, by what they need.
#[derive(Debug, Default)]
pub(crate) struct NoNode {
    by_needs: BTreeMap<NeedsId, Alike>,
    /// Tasks that are stuck or were let through to try, by uid.
    concerned: BTreeMap<u128, NeedsId>,
}

/// Tasks with the same placement needs, of which at least one has a pod that finds no node.
#[derive(Debug, Default)]
struct Alike {
    /// Tasks whose pod finds no node, by uid.
    stuck: BTreeMap<u128, StuckPod>,
    /// Tasks that were let through to try, with when, in seconds; whether a node takes them is not known yet.
    trying: BTreeMap<u128, i64>,
    /// Groups whose offer was taken back.
    withheld: BTreeSet<(Rank, GroupId)>,
}

#[derive(Debug)]
struct StuckPod {
    path: Arc<str>,
    /// Its effective priority when it got stuck.
    priority: i32,
    /// In seconds.
    since: i64,
}

impl Alike {
    /// When the next one is tried, if the limit is so many seconds.
    fn until(&self, limit: i64) -> i64 {
        let stuck = self.stuck.values().map(|stuck| stuck.since);
        let latest = stuck.chain(self.trying.values().copied()).max();
        latest.map_or(i64::MIN, |since| since.saturating_add(limit))
    }

    /// The stuck task of the highest priority, other than this one.
    fn culprit(&self, except: u128) -> Option<(u128, &StuckPod)> {
        let others = self.stuck.iter().filter(|(uid, _)| **uid != except);
        let stuck = others.max_by_key(|(uid, stuck)| (stuck.priority, std::cmp::Reverse(**uid)));
        stuck.map(|(uid, stuck)| (*uid, stuck))
    }
}

impl Board {
    /// The pod of a task finds no node.
    pub fn observe_unschedulable(&mut self, uid: u128, now: i64) {
        let Some(entry) = self.slot_of(uid).and_then(|slot| self.entry(slot)) else { return };
        let (needs, path) = (entry.needs, entry.path.clone());
        if needs == 0 {
            return;
        }
        let priority = entry.priority.max(self.groups[entry.group as usize].boost);
        let is_next_try = self.set_back_without_node(uid, now);
        let alike = self.no_node.by_needs.entry(needs).or_default();
        if is_next_try {
            alike.stuck.remove(&uid);
        }
        alike.stuck.entry(uid).or_insert(StuckPod { path, priority, since: now });
        alike.trying.remove(&uid);
        self.no_node.concerned.insert(uid, needs);
    }

    /// The pod of a task was taken by a node, whether it runs there or not. If it was let through to try, all others like it may follow.
    pub fn observe_on_node(&mut self, uid: u128) {
        if let Some(needs) = self.no_node.concerned.get(&uid).copied()
            && self.no_node.by_needs.get(&needs).is_some_and(|alike| alike.trying.contains_key(&uid))
        {
            self.end_hold(needs);
        }
        self.set_back.remove(&uid);
        self.observe_placed(uid);
    }

    /// The pod of a task is not stuck any more: it has a node, or is gone. One that was taken back found no node all the same: others
    /// like it are tried one at a time still.
    pub(crate) fn forget_stuck_pod(&mut self, uid: u128) {
        let Some(needs) = self.no_node.concerned.get(&uid).copied() else { return };
        let Some(alike) = self.no_node.by_needs.get_mut(&needs) else { return };
        if !self.set_back.contains_key(&uid) {
            self.no_node.concerned.remove(&uid);
            alike.stuck.remove(&uid);
        }
        let was_trying = alike.trying.remove(&uid).is_some();
        if alike.stuck.is_empty() {
            self.end_hold(needs);
        } else if was_trying {
            // Another one may try in its place.
            for (_, group) in std::mem::take(&mut alike.withheld) {
                self.refresh_offer(group);
            }
        }
    }

    /// Why a task that would start at this priority may not: the pod of another one like it finds no node.
    pub(crate) fn no_node_hold(&self, slot: Slot, priority: i32, now: i64) -> Option<Hold> {
        let entry = self.entry(slot)?;
        let alike = self.no_node.by_needs.get(&entry.needs)?;
        let (uid, stuck) = alike.culprit(entry.uid)?;
        let until = alike.until(self.settings.unschedulable_hold);
        let may_try = now >= until || alike.trying.is_empty() && priority > stuck.priority;
        (!may_try).then(|| Hold::NoNode { other: TaskRef { uid, path: stuck.path.clone() }, until })
    }

    /// A task starts: if others like it are stuck, it is the one that tries.
    pub(crate) fn note_try(&mut self, slot: Slot, now: i64) {
        let Some((uid, needs)) = self.entry(slot).map(|entry| (entry.uid, entry.needs)) else { return };
        if let Some(alike) = self.no_node.by_needs.get_mut(&needs) {
            alike.trying.insert(uid, now);
            self.no_node.concerned.insert(uid, needs);
        }
    }

    /// Takes the offer of a group back whose next task is held back.
    pub(crate) fn withhold(&mut self, slot: Slot, rank: Rank) {
        let Some((group, needs)) = self.entry(slot).map(|entry| (entry.group, entry.needs)) else { return };
        if let Some(alike) = self.no_node.by_needs.get_mut(&needs) {
            alike.withheld.insert((rank, group));
            self.withdraw_offer(group);
        }
    }

    /// Tasks that wait for a node, and when the first of them is tried.
    fn next_tries(&self) -> impl Iterator<Item = (NeedsId, i64)> {
        let limit = self.settings.unschedulable_hold;
        let waiting = self.no_node.by_needs.iter().filter(|(_, alike)| !alike.withheld.is_empty());
        waiting.map(move |(needs, alike)| (*needs, alike.until(limit)))
    }

    /// When the next of them is tried, after now.
    pub(crate) fn next_try(&self, now: i64) -> Option<i64> {
        self.next_tries().map(|(_, until)| until).filter(|until| *until > now).min()
    }

    /// Offers the first of those again whose time has come.
    pub(crate) fn try_nodes_again(&mut self, now: i64) {
        let due: Vec<NeedsId> =
            self.next_tries().filter(|(_, until)| *until <= now).map(|(needs, _)| needs).collect();
        for needs in due {
            while let Some((_, group)) = self.pop_withheld(needs) {
                self.refresh_offer(group);
                if self.groups[group as usize].offered.is_some() {
                    break;
                }
            }
        }
    }

    fn pop_withheld(&mut self, needs: NeedsId) -> Option<(Rank, GroupId)> {
        self.no_node.by_needs.get_mut(&needs)?.withheld.pop_first()
    }

    fn end_hold(&mut self, needs: NeedsId) {
        let Some(alike) = self.no_node.by_needs.remove(&needs) else { return };
        for (_, group) in alike.withheld {
            self.refresh_offer(group);
        }
    }
}
