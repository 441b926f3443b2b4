//! Why a task is where it is: for the one task that somebody asks about.
//!
//! What holds a task back is decided by [`Board::why`]. Added here is what only people want to know: its position, who has what it
//! waits for, and whether, when and for whom it makes room. Nothing of this is written down, and nothing is decided by it. Costs in
//! proportion to the position of the task, up to a bound.

use std::cmp::Reverse;

use muster_types::explanation::Explanation;
use muster_types::{State, Timestamp};

use crate::board::{Board, Entry, Phase};
use crate::group::{Rank, Slot};
use crate::plan::{Hold, TaskRef};
use crate::preemption::Right;

/// Tasks before another one that are counted; with more, its position is not said.
const MOST_COUNTED: usize = 10_000;
/// Tasks that are named in one sentence.
const MOST_NAMED: usize = 3;

impl Board {
    /// Why a task is where it is, as far as the board knows; `None` if it is not on it.
    pub fn explain(&self, uid: u128, now: i64) -> Option<Explanation> {
        let slot = self.slot_of(uid)?;
        let entry = self.entry(slot)?;
        let effective = entry.priority.max(self.groups[entry.group as usize].boost);
        let lender = if effective > entry.priority { self.lender(slot) } else { None };
        let hold = self.why(uid, now);
        let position = hold.as_ref().filter(|hold| hold.has_position()).and_then(|_| self.position(slot));
        let mut waiting_for = hold.as_ref().map(Hold::waiting_for);
        if let (Some(waiting), Some(hold)) = (&mut waiting_for, &hold) {
            waiting.message = self.describe(slot, hold, position);
            if let (Hold::Isolation, Some(other)) = (hold, self.isolated_before(slot)) {
                waiting.task = other.path.to_string();
            }
        }
        let message = match (&waiting_for, entry.phase) {
            (Some(waiting), _) => waiting.message.clone(),
            (None, Phase::Running) => "its attempt runs".to_owned(),
            (None, _) => "its attempt is being started".to_owned(),
        };
        Some(Explanation {
            state: entry.phase.state(),
            since: Some(Timestamp::from_second(entry.since)),
            message,
            waiting_for,
            priority: Some(entry.priority),
            effective_priority: Some(effective),
            raised_by: lender.map_or_else(String::new, |lender| lender.path.to_string()),
            position,
            preemption: hold.map_or_else(String::new, |hold| self.preemption(slot, &hold, now)),
            recorded: false,
        })
    }

    /// What a task waits for, with the names and numbers that the board knows.
    fn describe(&self, slot: Slot, hold: &Hold, position: Option<u64>) -> String {
        match hold {
            Hold::Isolation => match self.isolated_before(slot) {
                Some(other) => format!(
                    "isolated task {} runs or is next; nothing else starts until it ended",
                    other.path
                ),
                None => hold.message(),
            },
            Hold::Isolated { running } => {
                let named: Vec<String> = self.active_beside(slot).take(MOST_NAMED).collect();
                if named.is_empty() {
                    return hold.message();
                }
                let more = (*running as usize).saturating_sub(named.len());
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                format!("it is isolated and starts when {}{more} ended", named.join(", "))
            }
            Hold::Capacity(_) | Hold::Order { .. } => {
                let message = self.refused_before(slot).unwrap_or_else(|| hold.message());
                match position {
                    Some(position) => with_position(&message, position),
                    None => message,
                }
            }
            Hold::Unique { other } | Hold::Dependency { other, .. } => {
                let other = self.slot_of(other.uid).and_then(|slot| self.entry(slot));
                match other.and_then(describe_end) {
                    Some(end) => format!("{}; it {end}, and has not ended yet", hold.message()),
                    None => hold.message(),
                }
            }
            _ => hold.message(),
        }
    }

    /// Where there is room for a task, and one before it in order lacks some of the same: that one, and what it waits for.
    fn refused_before(&self, slot: Slot) -> Option<String> {
        let (entry, rank) = (self.entry(slot)?, self.rank(slot)?);
        let mut rooms = self.rooms;
        let room = rooms.of(entry.runtime);
        if room.lack_for(entry.need).any() {
            return None;
        }
        self.offered.range(..rank).find_map(|((.., before), _)| {
            let other = self.entry(*before).filter(|other| other.runtime == entry.runtime)?;
            let lack = room.lack_for(other.need);
            let words = || format!("waiting behind task {}, which is {}", other.path, lack.describe());
            (lack.any() && lack.concerns(entry.need)).then(words)
        })
    }

    /// The isolated task that a task waits for: one with an attempt, else one that is before it in order.
    fn isolated_before(&self, slot: Slot) -> Option<TaskRef> {
        let active = self.entries().find(|(_, entry)| entry.isolated && entry.phase.is_active());
        let rank = self.rank(slot)?;
        let first = || {
            let offered = self.offered.range(..rank).map(|((.., other), _)| *other);
            let waited_for = |other: &Slot| {
                !self.stranded.contains_key(other) && self.entry(*other).is_some_and(|it| it.isolated)
            };
            offered.into_iter().find(waited_for)
        };
        active.map(|(slot, _)| slot).or_else(first).map(|slot| self.reference(slot))
    }

    /// Paths of the other tasks that have an attempt, with the reason if that is about to end.
    fn active_beside(&self, slot: Slot) -> impl Iterator<Item = String> {
        let others = self.entries().filter(move |(other, entry)| *other != slot && entry.phase.is_active());
        others.map(|(_, entry)| match describe_end(entry) {
            Some(end) => format!("{} (it {end})", entry.path),
            None => entry.path.to_string(),
        })
    }

    fn rank(&self, slot: Slot) -> Option<Rank> {
        let entry = self.entry(slot)?;
        let boost = self.groups[entry.group as usize].boost;
        Some((Reverse(entry.priority.max(boost)), entry.uid, slot))
    }

    /// The place of a task among those that wait for the same runtime, from 1; `None` if it is too far back to be counted.
    fn position(&self, slot: Slot) -> Option<u64> {
        let (rank, runtime) = (self.rank(slot)?, self.entry(slot)?.runtime);
        let mut before = 0;
        for group in &self.groups {
            let there = group.ranked_before(rank).filter(|other| {
                *other != slot && self.entry(*other).is_some_and(|other| other.runtime == runtime)
            });
            before += there.take(MOST_COUNTED + 1 - before).count();
            if before > MOST_COUNTED {
                return None;
            }
        }
        u64::try_from(before + 1).ok()
    }

    /// Whether a task that waits for room takes the place of others: whose and when, or why not. Empty if that is no question.
    fn preemption(&self, slot: Slot, hold: &Hold, now: i64) -> String {
        let waits = |entry: &&Entry| matches!(entry.phase, Phase::Waiting(_));
        let Some(entry) = self.entry(slot).filter(waits) else { return String::new() };
        match hold {
            Hold::Capacity(_) => {}
            Hold::Isolated { .. } if entry.preempt_enabled => {
                return "it preempts nobody: an isolated task waits until all others have ended".to_owned();
            }
            _ => return String::new(),
        }
        let Some(right) = self.right_to_preempt(slot) else {
            let as_if = Right { priority: self.effective_priority(entry), lent_since: i64::MIN };
            let names = self.names_of(&self.find_victims(slot, as_if).needed);
            return if names.is_empty() {
                names
            } else {
                format!("spec.policy.preemptEnabled=true lets it take the place of {names} (lower priority)")
            };
        };
        let names = self.names_of(&self.find_victims(slot, right).needed);
        if names.is_empty() {
            let leaving: Vec<Slot> = self.leaving.iter().copied().collect();
            return if leaving.is_empty() {
                format!(
                    "it cannot preempt: the end of all tasks of a priority below {} that may be preempted would not make enough room",
                    right.priority
                )
            } else {
                format!("it preempts no more tasks while {} ends", self.names_of(&leaving))
            };
        }
        let due = self.preempts_at(entry.since.max(right.lent_since));
        match entry.phase {
            Phase::Waiting(State::QuotaBlocked) if due <= now => format!("it preempts {names} next"),
            Phase::Waiting(State::QuotaBlocked) => {
                format!("it preempts {names} at {} if there is no room before", Timestamp::from_second(due))
            }
            _ => {
                format!("it preempts {names} after it was QuotaBlocked for {}s", self.settings.preempt_delay)
            }
        }
    }

    /// The first of some tasks, for people.
    fn names_of(&self, slots: &[Slot]) -> String {
        let named: Vec<_> = slots.iter().take(MOST_NAMED).map(|slot| self.reference(*slot).path).collect();
        let more = slots.len().saturating_sub(named.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        named.join(", ") + &more
    }
}

/// Why the attempt of a task is about to end; `None` if it was not told to.
fn describe_end(entry: &Entry) -> Option<&'static str> {
    let end = if entry.deleted { "is being deleted" } else { "was told to end" };
    (entry.stopping || entry.deleted).then_some(end)
}

/// A sentence with the position in the parentheses at its end, if it has some.
fn with_position(message: &str, position: u64) -> String {
    match message.strip_suffix(')') {
        Some(open) => format!("{open}, position {position})"),
        None => format!("{message} (position {position})"),
    }
}
