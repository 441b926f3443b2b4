//! The current objects and the recent changes, in memory.
//!
//! Objects are kept per kind in a persistent ordered map: a snapshot is a reference, whatever the size. Recent
//! changes are kept per kind for watches of that kind, and in one global order for watches of everything.
//!
//! Invariant: a watch from revision `r` is complete if no change behind `r` was forgotten. For a watch of one kind
//! only changes of that kind count, so a quiet kind can be watched across any number of changes of the others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::key::{Key, ResourceName};
use super::object::{Change, Revision, Stored};
use super::snapshot::{Objects, Snapshot};
use super::watch::{Page, WatchError, WatchScope};
use crate::clock::Millis;

/// What a remembered change costs besides the versions it keeps, about.
const CHANGE_BYTES: usize = 200;

/// The least memory that old versions may take before they are held against what is current.
const LEAST_BYTES: usize = 2 << 20;

/// Changes for which a history always has room.
const ROOM: usize = 1024;

/// How much of the past can be watched. What lies beyond any of the limits is forgotten.
#[derive(Debug, Clone, Copy)]
pub struct History {
    /// At most this many changes.
    pub max_changes: usize,
    /// None older than this.
    pub max_age: Duration,
    /// At most this much memory for versions that are no longer current, about.
    pub max_bytes: usize,
    /// With changes that are older than this, no more memory than a quarter of what is current takes: whoever was away for longer
    /// reads that sooner than what it missed.
    pub fresh: Duration,
}

impl Default for History {
    fn default() -> Self {
        Self {
            max_changes: 100_000,
            max_age: Duration::from_hours(1),
            max_bytes: 64 << 20,
            fresh: Duration::from_secs(30),
        }
    }
}

/// A reader that must not miss a change: what lies behind its place is remembered beyond the limits of the history, up to
/// limits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Everything up to here may be forgotten.
    pub after: Revision,
    /// At most this many changes are remembered for it.
    pub max_changes: usize,
    /// At most this much memory for versions that are no longer current, about.
    pub max_bytes: usize,
}

pub(super) struct State {
    pub revision: Revision,
    /// Changes up to this one are forgotten.
    pub compacted: Revision,
    /// What was forgotten before this state was loaded, of whichever kind.
    compacted_at_start: Revision,
    topics: BTreeMap<ResourceName, Topic>,
    history: VecDeque<Arc<Change>>,
    history_bytes: usize,
    /// Of the objects as they are.
    present_bytes: usize,
    /// By the name of whoever holds.
    holds: BTreeMap<String, Hold>,
    wake: watch::Sender<Revision>,
    closed: bool,
}

pub(super) struct Topic {
    pub objects: Objects,
    /// The last change of this kind that was forgotten.
    compacted: Revision,
    history: VecDeque<Arc<Change>>,
    wake: watch::Sender<Revision>,
}

impl Topic {
    fn new(compacted: Revision) -> Self {
        Self {
            objects: Objects::new(),
            compacted,
            history: VecDeque::new(),
            wake: watch::Sender::new(Revision::ZERO),
        }
    }

    fn changed_since(&self, revision: Revision) -> bool {
        self.history.back().is_some_and(|newest| newest.revision() > revision)
    }
}

impl State {
    pub fn new(compacted: Revision) -> Self {
        Self {
            revision: Revision::ZERO,
            compacted,
            compacted_at_start: compacted,
            topics: BTreeMap::new(),
            history: VecDeque::new(),
            history_bytes: 0,
            present_bytes: 0,
            holds: BTreeMap::new(),
            wake: watch::Sender::new(Revision::ZERO),
            closed: false,
        }
    }

    pub fn get(&self, key: &Key) -> Option<&Stored> {
        self.topics.get(&key.resource)?.objects.get(&*key.path)
    }

    pub fn snapshot(&self, resource: &ResourceName) -> Snapshot {
        let objects = self.topics.get(resource).map(|topic| topic.objects.clone()).unwrap_or_default();
        Snapshot { revision: self.revision, objects }
    }

    pub fn counts(&self) -> Vec<(ResourceName, usize)> {
        self.topics.iter().map(|(resource, topic)| (resource.clone(), topic.objects.len())).collect()
    }

    /// The text of this name that is kept anyway, if there is one.
    pub fn shared_name(&self, resource: &ResourceName) -> ResourceName {
        self.topics.get_key_value(resource).map_or(resource, |(known, _)| known).clone()
    }

    pub fn topic(&mut self, resource: &ResourceName) -> &mut Topic {
        self.topics.entry(resource.clone()).or_insert_with(|| Topic::new(self.compacted_at_start))
    }

    pub fn apply(&mut self, change: Arc<Change>) {
        debug_assert!(change.revision() > self.revision, "revisions only grow");
        self.revision = change.revision();
        if change.deleted {
            self.remove(&change.resource, &change.object.path);
        } else {
            self.insert(&change.resource, change.object.clone());
        }
        self.remember(change);
    }

    /// Puts an object in its place. Answers with what was there.
    pub fn insert(&mut self, resource: &ResourceName, object: Stored) -> Option<Stored> {
        self.present_bytes += object.json().len();
        let previous = self.topic(resource).objects.insert(object.path.clone(), object);
        self.present_bytes -= previous.as_ref().map_or(0, |previous| previous.json().len());
        previous
    }

    /// Takes an object away. Answers with what was there.
    pub fn remove(&mut self, resource: &ResourceName, path: &str) -> Option<Stored> {
        let previous = self.topic(resource).objects.remove(path);
        self.present_bytes -= previous.as_ref().map_or(0, |previous| previous.json().len());
        previous
    }

    /// Makes a change watchable.
    pub fn remember(&mut self, change: Arc<Change>) {
        self.history_bytes += history_bytes(&change);
        self.topic(&change.resource).history.push_back(change.clone());
        self.history.push_back(change);
    }

    /// Begins, moves or ends a hold.
    pub fn hold(&mut self, name: &str, hold: Option<Hold>) {
        match hold {
            Some(hold) => drop(self.holds.insert(name.to_owned(), hold)),
            None => drop(self.holds.remove(name)),
        }
    }

    /// True if there is a hold of this name.
    pub fn has_hold(&self, name: &str) -> bool {
        self.holds.contains_key(name)
    }

    /// Behind this nothing may be forgotten, if anybody holds anything.
    pub fn held_after(&self) -> Option<Revision> {
        self.holds.values().map(|hold| hold.after).min()
    }

    /// True if somebody holds a change. Whoever holds more than its limits allow loses it.
    fn is_held(&mut self, revision: Revision) -> bool {
        let (changes, bytes) = (self.history.len(), self.history_bytes);
        let mut held = false;
        for hold in self.holds.values_mut().filter(|hold| hold.after < revision) {
            if changes <= hold.max_changes && bytes <= hold.max_bytes {
                held = true;
            } else {
                hold.after = revision;
            }
        }
        held
    }

    /// Drops what no longer fits the limits, at most `most` changes, and returns it.
    pub fn trim(&mut self, limits: History, now: Millis, most: usize) -> Vec<Arc<Change>> {
        let before = |age: Duration| now.0.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let (oldest, fresh) = (before(limits.max_age), before(limits.fresh));
        let enough = LEAST_BYTES.max(self.present_bytes / 4);
        let mut dropped = Vec::new();
        while dropped.len() < most
            && let Some(first) = self.history.front()
            && (self.history.len() > limits.max_changes
                || self.history_bytes > limits.max_bytes
                || first.at.0 < oldest
                || (first.at.0 < fresh && self.history_bytes > enough))
            && !self.is_held(self.history.front().map_or(Revision::ZERO, |first| first.revision()))
            && let Some(change) = self.history.pop_front()
        {
            self.history_bytes -= history_bytes(&change);
            self.compacted = change.revision();
            if let Some(topic) = self.topics.get_mut(&change.resource) {
                topic.history.pop_front();
                give_back(&mut topic.history);
                topic.compacted = change.revision();
            }
            dropped.push(change);
        }
        give_back(&mut self.history);
        dropped
    }

    /// Whether a watch can go on from behind `after`.
    pub fn check_watchable(&self, scope: &WatchScope, after: Revision) -> Result<(), WatchError> {
        let oldest = match scope {
            WatchScope::All => self.compacted,
            WatchScope::Resource(resource) => {
                self.topics.get(resource).map_or(self.compacted_at_start, |topic| topic.compacted)
            }
        };
        if after < oldest {
            return Err(WatchError::Gone { asked: after, oldest: self.compacted });
        }
        if after > self.revision {
            return Err(WatchError::Future { asked: after, newest: self.revision });
        }
        Ok(())
    }

    /// Changes behind `after`, at most `most`, and the revision up to which the page is complete.
    pub fn page(&self, scope: &WatchScope, after: Revision, most: usize) -> Result<Page, WatchError> {
        self.check_watchable(scope, after)?;
        let history = match scope {
            WatchScope::All => Some(&self.history),
            WatchScope::Resource(resource) => self.topics.get(resource).map(|topic| &topic.history),
        };
        let behind = history.map(|history| history.range(start_behind(history, after)..));
        let changes: Vec<_> = behind.clone().into_iter().flatten().take(most).cloned().collect();
        if changes.is_empty() && self.closed {
            return Err(WatchError::Closed);
        }
        let complete = behind.is_none_or(|behind| behind.len() == changes.len());
        let upto =
            if complete { self.revision } else { changes.last().map_or(after, |last| last.revision()) };
        Ok(Page { changes, upto })
    }

    pub fn listen(&mut self, scope: &WatchScope) -> watch::Receiver<Revision> {
        match scope {
            WatchScope::All => self.wake.subscribe(),
            WatchScope::Resource(resource) => self.topic(resource).wake.subscribe(),
        }
    }

    /// The channels to tell about the changes since `before`. Asked before those changes can be trimmed.
    pub fn wakers(&self, before: Revision) -> Vec<watch::Sender<Revision>> {
        let changed = self.topics.values().filter(|topic| topic.changed_since(before));
        changed.map(|topic| &topic.wake).chain([&self.wake]).cloned().collect()
    }

    /// Becomes what was read anew. Whoever waits is woken, and finds out what became of its place.
    pub fn replace(&mut self, mut fresh: Self) {
        for (resource, topic) in &self.topics {
            fresh.topic(resource).wake = topic.wake.clone();
        }
        fresh.wake = self.wake.clone();
        fresh.holds = std::mem::take(&mut self.holds);
        fresh.closed = self.closed;
        *self = fresh;
        self.topics.values().map(|topic| &topic.wake).chain([&self.wake]).for_each(|wake| {
            wake.send_replace(self.revision);
        });
    }

    /// No change will come any more; watches end once they have delivered what there is.
    pub fn close(&mut self) {
        self.closed = true;
        self.topics.values().map(|topic| &topic.wake).chain([&self.wake]).for_each(|wake| {
            wake.send_replace(self.revision);
        });
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Gives back the room that a burst needed.
fn give_back(history: &mut VecDeque<Arc<Change>>) {
    if history.capacity() > ROOM && history.len() * 4 < history.capacity() {
        history.shrink_to(history.len() * 2);
    }
}

/// Where what lies behind a revision begins. Those who ask have seen most of it: the search starts at the end.
fn start_behind(history: &VecDeque<Arc<Change>>, after: Revision) -> usize {
    let is_behind = |place: usize| history.get(place).is_some_and(|change| change.revision() > after);
    let (mut end, mut step) = (history.len(), 1);
    while end > 0 && is_behind(end.saturating_sub(step)) {
        end = end.saturating_sub(step);
        step *= 2;
    }
    let mut start = end.saturating_sub(step);
    while start < end {
        let middle = start.midpoint(end);
        if is_behind(middle) { end = middle } else { start = middle + 1 }
    }
    start
}

/// The memory that a change holds only because it is remembered.
fn history_bytes(change: &Change) -> usize {
    let previous = change.previous.as_ref().map_or(0, |previous| previous.json().len());
    let deletion = if change.deleted { change.object.json().len() } else { 0 };
    CHANGE_BYTES + previous + deletion
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u64) -> Arc<Change> {
        let object = Stored::from_row("a/b".into(), Revision(number * 3), 0, &[]);
        let resource = ResourceName::new("things");
        Arc::new(Change { at: Millis(0), resource, object, previous: None, deleted: false })
    }

    #[test]
    fn a_burst_that_is_forgotten_leaves_no_room_behind() {
        let mut state = State::new(Revision::ZERO);
        (1..=50_000).for_each(|number| state.apply(change(number)));
        while !state.trim(History { max_changes: 3, ..History::default() }, Millis(0), 1000).is_empty() {}
        let topics = state.topics.values().map(|topic| &topic.history);
        let rooms: Vec<_> = topics.chain([&state.history]).map(|it| (it.len(), it.capacity())).collect();
        assert!(rooms.iter().all(|(length, room)| *length == 3 && *room <= 2 * ROOM), "{rooms:?}");
    }

    #[test]
    fn what_lies_behind_a_revision_is_found_wherever_that_is() {
        for length in 0..40_u64 {
            let history: VecDeque<_> = (1..=length).map(change).collect();
            for after in 0..130 {
                let expected = history.partition_point(|change| change.revision() <= Revision(after));
                assert_eq!(
                    start_behind(&history, Revision(after)),
                    expected,
                    "{length} changes, after {after}"
                );
            }
        }
    }
}
