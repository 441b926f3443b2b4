//! Tasks that exclude each other: those of one subject and kind.
//!
//! At most one task of a group runs at a time, so only the first of each group can be the next to start. That is what
//! makes a pass independent of the backlog: it looks at heads of groups, never at what stands behind them.
//!
//! Tasks without a subject exclude nobody. They share groups that are not exclusive, one for each sort of need: what is
//! refused to the first of such a group is refused to all behind it, so the first still speaks for them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::lanes::Lane;
use crate::quota::NamespaceId;

/// Number of a task on the board.
pub type Slot = u32;
/// Number of a group on the board.
pub type GroupId = u32;

/// What makes tasks exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// Tasks about one subject, of one kind or, without a kind, with one addon.
    Exclusive {
        /// Number of the namespace and subject.
        subject: u32,
        /// Number of the kind.
        kind: Option<u32>,
        /// Number of the addon of kindless tasks.
        addon: Option<u32>,
    },
    /// Tasks without a subject.
    Free {
        /// Number of the runtime.
        runtime: u8,
        /// They ask for cpu.
        cpu: bool,
        /// They ask for memory.
        memory: bool,
        /// Number of what they ask of a robot; 0 if they run on none.
        demand: u32,
        /// Number of what they ask of a node; 0 if they are no pods.
        needs: u32,
        /// The namespace of their pods: its quota may refuse one.
        namespace: Option<NamespaceId>,
        /// They run alone: the first of them speaks for no other.
        isolated: bool,
    },
}

/// Where a task stands in the order of starting: higher priority first, then older.
pub type Rank = (Reverse<i32>, u128, Slot);

/// Tasks of a group.
#[derive(Debug)]
pub struct Group {
    /// What they have in common.
    pub key: GroupKey,
    /// Waiting tasks by their own priority, then age.
    by_priority: BTreeSet<Rank>,
    /// The same by age alone.
    by_age: BTreeSet<(u128, Slot)>,
    /// Tasks with an attempt.
    pub active: u32,
    /// Tasks with an attempt, and tasks that rest or are set aside.
    pub elsewhere: BTreeSet<Slot>,
    /// Tasks that rest or are set aside, by their own priority: they do not start, but what they need is needed.
    pub aside: BTreeSet<(Reverse<i32>, Slot)>,
    /// Waiting tasks that may preempt, by their own priority: what they depend on may preempt for them.
    pub preempting: BTreeSet<(Reverse<i32>, Slot)>,
    /// Tasks that were submitted and have not ended, resting ones included.
    pub members: u32,
    /// The priority that what depends on these tasks lends them.
    pub boost: i32,
    /// The task of this group that may start next, if the rules let it.
    pub offered: Option<Rank>,
    /// The lane in which it is offered.
    pub offered_on: Option<Lane>,
    /// It runs alone.
    pub offers_isolated: bool,
}

impl Group {
    /// An empty group.
    pub fn new(key: GroupKey) -> Self {
        Self {
            key,
            by_priority: BTreeSet::new(),
            by_age: BTreeSet::new(),
            active: 0,
            elsewhere: BTreeSet::new(),
            aside: BTreeSet::new(),
            preempting: BTreeSet::new(),
            members: 0,
            boost: i32::MIN,
            offered: None,
            offered_on: None,
            offers_isolated: false,
        }
    }

    /// A task waits.
    pub fn add(&mut self, priority: i32, age: u128, slot: Slot) {
        self.by_priority.insert((Reverse(priority), age, slot));
        self.by_age.insert((age, slot));
    }

    /// A task no longer waits.
    pub fn remove(&mut self, priority: i32, age: u128, slot: Slot) {
        self.by_priority.remove(&(Reverse(priority), age, slot));
        self.by_age.remove(&(age, slot));
    }

    /// The highest priority that a task without an attempt asks for, and that task.
    pub fn highest(&self) -> Option<(i32, Slot)> {
        let waiting = self.by_priority.first().map(|(Reverse(priority), _, slot)| (*priority, *slot));
        let aside = self.aside.first().map(|(Reverse(priority), slot)| (*priority, *slot));
        match (waiting, aside) {
            (Some(waiting), Some(aside)) if aside.0 > waiting.0 => Some(aside),
            (Some(waiting), _) => Some(waiting),
            (None, aside) => aside,
        }
    }

    /// The first waiting task in order of effective priority, then age.
    pub fn head(&self) -> Option<Rank> {
        let first = self.by_priority.first()?;
        if first.0.0 > self.boost {
            return Some(*first);
        }
        // All of them are raised to the same priority: the oldest is first.
        self.by_age.first().map(|(age, slot)| (Reverse(self.boost), *age, *slot))
    }

    /// Waiting tasks, by their own priority.
    pub fn waiting(&self) -> impl Iterator<Item = Slot> {
        self.by_priority.iter().map(|(.., slot)| *slot)
    }

    /// Waiting tasks that are before this place, in order of effective priority and age.
    pub fn ranked_before(&self, rank: Rank) -> impl Iterator<Item = Slot> {
        // Those that are raised are all of one priority; the others are in order.
        let boost = self.boost;
        let is_raised = boost >= rank.0.0;
        let last = if is_raised { None } else { Some(rank) };
        let near = self.by_priority.iter().take_while(move |other| last.is_none_or(|last| **other < last));
        near.filter(move |(own, age, slot)| (Reverse(own.0.max(boost)), *age, *slot) < rank)
            .map(|(.., slot)| *slot)
    }

    /// Its tasks exclude each other.
    pub fn is_exclusive(&self) -> bool {
        matches!(self.key, GroupKey::Exclusive { .. })
    }

    /// True if a running task of the group keeps the others waiting.
    pub fn is_taken(&self) -> bool {
        self.active > 0 && self.is_exclusive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(boost: i32) -> Group {
        let mut group = Group::new(GroupKey::Free {
            runtime: 0,
            cpu: false,
            memory: false,
            demand: 0,
            needs: 0,
            namespace: None,
            isolated: false,
        });
        group.add(1, 10, 0);
        group.add(3, 20, 1);
        group.add(2, 5, 2);
        group.boost = boost;
        group
    }

    #[test]
    fn the_highest_priority_is_first() {
        assert_eq!(group(i32::MIN).head(), Some((Reverse(3), 20, 1)));
        assert_eq!(group(2).head(), Some((Reverse(3), 20, 1)));
    }

    #[test]
    fn tasks_that_are_raised_alike_go_by_age() {
        assert_eq!(group(3).head(), Some((Reverse(3), 5, 2)));
        assert_eq!(group(50).head(), Some((Reverse(50), 5, 2)));
    }
}
