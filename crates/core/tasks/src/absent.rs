//! Objects that tasks name and that do not exist: which tasks wait for them, and until when.
//!
//! A list may be applied in any order, so a task that names something unknown waits for it for a while before it fails. Waiting costs
//! nothing: such a task is in no group's queue, and it is looked at again when what it waits for appears or when its time is over.
//! A time that has begun goes on, however often the task is written meanwhile, and whichever server leads: when it began is said by the
//! record of the task ([`awaited_since`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_types::task_status::RecordKind;
use muster_types::{Millis, State, Task};

use crate::board::{Board, Phase};
use crate::plan::TaskRef;
use crate::select::SelectError;

/// An object that a task names and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absent {
    /// The namespace of the task.
    pub namespace: String,
    /// What it names.
    pub what: Reference,
}

/// What a task can name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// A kind of subjects.
    SubjectKind(String),
    /// What it is about.
    Subject {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Its TaskKind.
    Kind(String),
    /// Its addon, by name.
    Addon(String),
    /// An addon or extension that was not found when it was selected, in the words of the selection.
    Selected {
        /// One CamelCase word.
        reason: &'static str,
        /// Which one, for people.
        words: String,
    },
}

impl Absent {
    /// What a selection lacked, if it is something that may yet appear.
    pub fn of_selection(namespace: &str, error: &SelectError) -> Option<Self> {
        let what = match error {
            SelectError::KindNotFound { kind } => Reference::Kind(kind.clone()),
            SelectError::AddonNotFound { addon } => Reference::Addon(addon.clone()),
            // Without a kind there is nothing that an addon could serve.
            SelectError::AddonNotSelected { kind, .. } if kind.is_empty() => return None,
            SelectError::AddonNotSelected { .. } | SelectError::ExtensionNotFound { .. } => {
                Reference::Selected { reason: error.reason(), words: error.to_string() }
            }
            SelectError::ExtensionNotValid { .. }
            | SelectError::SelectorNotValid { .. }
            | SelectError::ExtAddonNotValid { .. }
            | SelectError::AddonTaskNotValid { .. }
            | SelectError::NotReady { .. } => return None,
        };
        Some(Self { namespace: namespace.to_owned(), what })
    }

    /// True if any addon or extension of the namespace may be what is missing.
    pub fn is_of_selection(&self) -> bool {
        matches!(self.what, Reference::Selected { .. })
    }

    /// One CamelCase word.
    pub fn reason(&self) -> &'static str {
        match &self.what {
            Reference::SubjectKind(_) => "SubjectKindNotFound",
            Reference::Subject { .. } => "SubjectNotFound",
            Reference::Kind(_) => "KindNotFound",
            Reference::Addon(_) => "AddonNotFound",
            Reference::Selected { reason, .. } => reason,
        }
    }

    /// What is missing and what to do about it.
    pub fn message(&self) -> String {
        match &self.what {
            Reference::SubjectKind(kind) => {
                format!(
                    "subject kind {kind:?} does not exist; declare it as a ResourceType, or submit the task again with another spec.subject.kind"
                )
            }
            Reference::Subject { kind, name } => {
                format!(
                    "subject {kind} {name:?} does not exist; create it, or submit the task again with another spec.subject"
                )
            }
            Reference::Kind(kind) => SelectError::KindNotFound { kind: kind.clone() }.to_string(),
            Reference::Addon(addon) => SelectError::AddonNotFound { addon: addon.clone() }.to_string(),
            Reference::Selected { words, .. } => words.clone(),
        }
    }

    /// Why a task failed that waited for it for so many seconds.
    pub fn error(&self, waited: i64) -> String {
        if waited == 0 { self.message() } else { format!("{} (waited {waited}s for it)", self.message()) }
    }
}

/// When a task began to wait for something, if its status says that it waits for exactly that. The status has seconds; the end of the
/// second is taken, so that no wait is cut short.
pub fn awaited_since(task: &Task, absent: &Absent) -> Option<Millis> {
    let (status, reason) = (&task.status, absent.reason());
    let waiting = status.waiting_for.as_ref().filter(|waiting| waiting.reason == reason)?;
    if status.state != Some(State::Postponed) || !waiting.message.starts_with(&absent.message()) {
        return None;
    }
    let record = status.events.iter().rev().find(|record| record.kind == RecordKind::Postponed)?;
    (record.reason == reason)
        .then(|| Millis(record.last.as_second().saturating_mul(1000).saturating_add(999)))
}

/// Tasks that wait for something that does not exist, by uid.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// What each of them waits for.
    of: BTreeMap<u128, Arc<Absent>>,
    /// Who waits for it.
    by: BTreeMap<Arc<Absent>, BTreeSet<u128>>,
    /// When the patience of each of them ends, by time.
    ends: BTreeSet<(i64, u128)>,
    /// When the patience of a task ends with what it waits for or waited for last.
    patience: BTreeMap<u128, (Arc<Absent>, i64)>,
}

impl Awaited {
    pub(crate) fn get(&self, uid: u128) -> Option<&Arc<Absent>> {
        self.of.get(&uid)
    }

    fn add(&mut self, uid: u128, absent: Arc<Absent>, end: i64) {
        self.remove(uid);
        let known = self.patience.get(&uid).filter(|(known, _)| *known == absent).map(|(_, end)| *end);
        let end = known.unwrap_or(end);
        self.patience.insert(uid, (absent.clone(), end));
        self.ends.insert((end, uid));
        self.by.entry(absent.clone()).or_default().insert(uid);
        self.of.insert(uid, absent);
    }

    /// It waits no more; how long it has waited is remembered.
    fn remove(&mut self, uid: u128) {
        let Some(absent) = self.of.remove(&uid) else { return };
        if let Some(waiting) = self.by.get_mut(&absent) {
            waiting.remove(&uid);
            if waiting.is_empty() {
                self.by.remove(&absent);
            }
        }
        if let Some((_, end)) = self.patience.get(&uid) {
            self.ends.remove(&(*end, uid));
        }
    }

    /// It is gone, or has an attempt.
    pub(crate) fn forget(&mut self, uid: u128) {
        self.remove(uid);
        self.patience.remove(&uid);
    }
}

impl Board {
    /// A task names something that does not exist, as far as can be told before it is selected for, and waits for it since a time; or
    /// nothing of that sort. The time counts only if none is known.
    pub fn observe_absent(&mut self, uid: u128, absent: Option<Absent>, since: Millis) {
        // If it rests or has an attempt, what it lacks matters when it is to start.
        let phase = self.slot_of(uid).and_then(|slot| self.entry(slot)).map(|entry| entry.phase);
        let Some(Phase::Waiting(shown) | Phase::Awaiting(shown)) = phase else { return };
        match absent {
            Some(absent) => {
                self.set_aside(uid, Arc::new(absent), shown, since);
                if shown != State::Postponed
                    && let Some(slot) = self.slot_of(uid)
                {
                    self.explain_soon(slot);
                }
            }
            None if self.awaited.get(uid).is_some_and(|absent| !absent.is_of_selection()) => self.go_on(uid),
            None => {}
        }
    }

    /// True if it is known until when a task waits for something.
    pub fn has_patience_for(&self, uid: u128, absent: &Absent) -> bool {
        self.awaited.patience.get(&uid).is_some_and(|(known, _)| **known == *absent)
    }

    /// Sets a task aside that was chosen and cannot be started without something that does not exist, for which it waits since a time;
    /// that counts only if none is known. False if it has waited for that long enough.
    pub fn wait_for(&mut self, uid: u128, absent: &Arc<Absent>, since: Millis, now: Millis) -> bool {
        let end = self.awaited.patience.get(&uid).filter(|(known, _)| known == absent).map(|(_, end)| *end);
        if end.unwrap_or(self.patience_ends(since)) <= now.to_timestamp().as_second() {
            return false;
        }
        self.set_aside(uid, absent.clone(), State::Ready, since);
        true
    }

    fn set_aside(&mut self, uid: u128, absent: Arc<Absent>, shown: State, since: Millis) {
        let Some(slot) = self.slot_of(uid) else { return };
        self.awaited.add(uid, absent, self.patience_ends(since));
        self.move_to(slot, Phase::Awaiting(shown));
    }

    /// The second at which a wait is over that begins at a time.
    fn patience_ends(&self, since: Millis) -> i64 {
        since.next_second().saturating_add(self.settings.absent_wait)
    }

    fn go_on(&mut self, uid: u128) {
        self.awaited.remove(uid);
        let Some(slot) = self.slot_of(uid) else { return };
        if let Some(Phase::Awaiting(shown)) = self.entry(slot).map(|entry| entry.phase) {
            self.move_to(slot, Phase::Waiting(shown));
        }
    }

    /// Something is there now, or is another: who waited for it may go on. Returns where these tasks are stored.
    pub fn appeared(&mut self, absent: &Absent) -> Vec<Arc<str>> {
        let waiting = self.awaited.by.get(absent).cloned().unwrap_or_default();
        self.all_go_on(&waiting)
    }

    /// The same for what a selection in a namespace lacked.
    pub fn selection_changed(&mut self, namespace: &str) -> Vec<Arc<str>> {
        let first = Reference::Selected { reason: "", words: String::new() };
        let first = Absent { namespace: namespace.to_owned(), what: first };
        let of_selection = self.awaited.by.range(Arc::new(first)..);
        let waiting = of_selection.take_while(|(absent, _)| absent.namespace == namespace);
        let waiting = waiting.flat_map(|(_, waiting)| waiting.iter().copied()).collect();
        self.all_go_on(&waiting)
    }

    fn all_go_on(&mut self, waiting: &BTreeSet<u128>) -> Vec<Arc<str>> {
        for uid in waiting {
            self.go_on(*uid);
        }
        waiting.iter().filter_map(|uid| self.path_of(*uid).cloned()).collect()
    }

    /// Takes some of the tasks that have waited long enough for something that does not exist.
    pub fn take_impatient(&mut self, now: i64, most: usize) -> Vec<(TaskRef, Arc<Absent>)> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((end, uid)) = self.awaited.ends.first().copied()
            && end <= now
        {
            self.awaited.ends.remove(&(end, uid));
            if let (Some(slot), Some(absent)) = (self.slot_of(uid), self.awaited.get(uid).cloned()) {
                taken.push((self.reference(slot), absent));
            }
        }
        taken
    }

    /// When the first of those has waited long enough, in seconds.
    pub fn impatient_at(&self) -> Option<i64> {
        self.awaited.ends.first().map(|(end, _)| *end)
    }
}
