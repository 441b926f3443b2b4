//! The offers of the board by lane, and the way of a pass through them.
//!
//! A lane holds the offers that one refusal can hold back together: those of one runtime and, for pods, of one namespace. When the
//! quota of a namespace refuses a pod, a pass closes its lane and skips all offers in it, however many there are, without a look
//! at them. Offers of all lanes are looked at in one order of rank. A pass costs in proportion to the number of lanes and to the
//! offers that it looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::board::Board;
use crate::group::{GroupId, Rank};
use crate::quota::NamespaceId;

/// The number of a runtime, and the namespace of pods.
pub(crate) type Lane = (usize, Option<NamespaceId>);

/// What is offered, by lane.
#[derive(Debug, Default)]
pub(crate) struct Lanes(BTreeMap<Lane, BTreeSet<Rank>>);

impl Lanes {
    pub fn insert(&mut self, lane: Lane, rank: Rank) {
        self.0.entry(lane).or_default().insert(rank);
    }

    pub fn remove(&mut self, lane: Lane, rank: Rank) {
        if let Some(ranks) = self.0.get_mut(&lane) {
            ranks.remove(&rank);
            if ranks.is_empty() {
                self.0.remove(&lane);
            }
        }
    }

    /// The number of offers in all lanes.
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    pub fn contains(&self, lane: Lane, rank: Rank) -> bool {
        self.0.get(&lane).is_some_and(|ranks| ranks.contains(&rank))
    }

    fn next(&self, lane: Lane, after: Rank) -> Option<Rank> {
        self.0.get(&lane)?.range((Excluded(after), Unbounded)).next().copied()
    }
}

/// The way of one pass through the offers.
#[derive(Debug)]
pub(crate) struct Course {
    /// The next offer of each lane that is not closed, by runtime; the current one included.
    ahead: [BTreeSet<(Rank, Lane)>; 3],
    current: Option<(Rank, Lane, GroupId)>,
    closed: BTreeSet<Lane>,
}

impl Course {
    /// The way from the first offer on.
    pub fn new(lanes: &Lanes) -> Self {
        let mut ahead = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        for (lane, ranks) in &lanes.0 {
            ahead[lane.0].extend(ranks.first().map(|rank| (*rank, *lane)));
        }
        Self { ahead, current: None, closed: BTreeSet::new() }
    }

    /// The next offer in order of rank. The group of the one before may offer its next task by now, perhaps in another lane.
    pub fn next(&mut self, board: &Board) -> Option<Rank> {
        if let Some((rank, lane, group)) = self.current.take() {
            self.ahead[lane.0].remove(&(rank, lane));
            self.enter(lane, board.lanes.next(lane, rank));
            if let Some((offered, on)) = board.offer_of(group).filter(|(offered, _)| *offered > rank) {
                self.enter(on, Some(offered));
            }
        }
        let firsts = self.ahead.iter().filter_map(BTreeSet::first);
        let (rank, lane) = *firsts.min()?;
        let group = *board.offered.get(&rank)?;
        self.current = Some((rank, lane, group));
        Some(rank)
    }

    /// Skips all offers in the lane of the current one.
    pub fn close_lane(&mut self) {
        self.closed.extend(self.current.map(|(_, lane, _)| lane));
    }

    /// The runtimes for which something is still to be looked at, the current offer included.
    pub fn left(&self) -> [bool; 3] {
        self.ahead.each_ref().map(|ahead| !ahead.is_empty())
    }

    fn enter(&mut self, lane: Lane, next: Option<Rank>) {
        if !self.closed.contains(&lane) {
            self.ahead[lane.0].extend(next.map(|rank| (rank, lane)));
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_types::State;
    use muster_types::task::Runtime;

    use super::*;
    use crate::capacity::Capacity;
    use crate::settings::Settings;
    use crate::view::{Need, TaskView};

    /// A pod or a process of a namespace, about a subject of its own.
    fn waiting(uid: u128, namespace: &str, runtime: Runtime) -> TaskView {
        TaskView {
            uid,
            path: format!("{namespace}/t{uid}").into(),
            state: State::Ready,
            since: 0,
            priority: None,
            kind: String::new(),
            addon: String::new(),
            subject: format!("s/{uid}"),
            runtime: Some(runtime),
            need: Need::default(),
            isolated: false,
            preempt_enabled: false,
            preempt_exempt: false,
            stopping: false,
            deleted: false,
            prefetched: false,
            is_first: true,
            rest_until: 0,
            demand: None,
            placement: String::new(),
            robot: None,
            awaited: None,
        }
    }

    #[test]
    fn the_offers_of_a_closed_lane_are_skipped_and_all_others_come_in_order() {
        let mut board =
            Board::new(Settings::default(), |_| Capacity { slots: 9, cpu_millis: None, memory: None });
        for uid in 0..3_000 {
            let (namespace, runtime) = match uid {
                1_000 => ("b", Runtime::Pod),
                2_000 => ("a", Runtime::Process),
                _ => ("a", Runtime::Pod),
            };
            board.observe(&waiting(uid, namespace, runtime));
        }
        let mut course = Course::new(&board.lanes);
        let mut looked_at = Vec::new();
        while let Some((_, uid, _)) = course.next(&board) {
            looked_at.push((uid, course.left()));
            if uid == 1 {
                course.close_lane();
            }
        }
        let (pods_and_processes, processes) = ([true, true, false], [true, false, false]);
        let expected = [
            (0, pods_and_processes),
            (1, pods_and_processes),
            (1_000, pods_and_processes),
            (2_000, processes),
        ];
        assert_eq!(looked_at, expected);
    }
}
