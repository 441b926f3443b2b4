//! What happened, as the watch of everything shows it.

use std::collections::BTreeMap;

use crate::load::history::{Effect, Event, Filter, Outcome, Watched, Word, Write};
use crate::load::version::Version;

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// What, as its watcher saw it.
    pub word: Word,
    /// The new version; the last one if it was deleted.
    pub version: &'a Version,
    /// The version before.
    pub previous: Option<&'a Version>,
    /// Which write did it.
    pub cause: Effect,
}

/// What happened, in order of revision.
pub struct Log<'a> {
    entries: Vec<Entry<'a>>,
    causes: BTreeMap<Effect, Vec<usize>>,
}

impl<'a> Log<'a> {
    /// Reads a watch of everything.
    pub fn of(watch: &'a Watched) -> Self {
        let mut entries: Vec<Entry<'_>> = Vec::new();
        let mut known: BTreeMap<&str, &Version> = BTreeMap::new();
        for event in &watch.events {
            let Event::Change(word, version) = event else { continue };
            let previous = match word {
                Word::Deleted => known.remove(version.key.as_str()),
                Word::Added | Word::Modified => known.insert(&version.key, version),
            };
            let marked = version.deleting && previous.is_some_and(|previous| !previous.deleting);
            let cause = match word {
                Word::Deleted => Effect::Delete(version.uid.clone()),
                Word::Modified if marked => Effect::Mark(version.uid.clone()),
                Word::Added | Word::Modified => Effect::Put(version.token.clone()),
            };
            entries.push(Entry { word: *word, version, previous, cause });
        }
        entries.sort_by_key(|entry| entry.version.revision);
        let mut causes: BTreeMap<Effect, Vec<usize>> = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            causes.entry(entry.cause.clone()).or_default().push(index);
        }
        Self { entries, causes }
    }

    /// Everything.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// What happened at a revision.
    pub fn at(&self, revision: u64) -> Option<&Entry<'a>> {
        let index = self.entries.binary_search_by_key(&revision, |entry| entry.version.revision).ok()?;
        self.entries.get(index)
    }

    /// What a write did, which should be one thing at most.
    pub fn caused_by(&self, effect: &Effect) -> Vec<&Entry<'a>> {
        let indexes = self.causes.get(effect).into_iter().flatten();
        indexes.filter_map(|index| self.entries.get(*index)).collect()
    }

    /// When a write was acknowledged, and the revision it had.
    pub fn revision_of(&self, write: &Write) -> Option<(u64, u64)> {
        let revision = match &write.outcome {
            Outcome::Acknowledged(Some(version)) => version.revision,
            Outcome::Acknowledged(None) => self.caused_by(&write.effect).first()?.version.revision,
            Outcome::Refused(_) | Outcome::Unknown => return None,
        };
        Some((write.ended, revision))
    }

    /// What a watcher with this filter should see, by revision.
    pub fn seen_through(&self, filter: &Filter) -> BTreeMap<u64, (Word, &'a Version)> {
        let seen = |entry: &Entry<'a>| {
            let before = entry.previous.filter(|previous| filter.passes(previous));
            let after =
                Some(entry.version).filter(|version| entry.word != Word::Deleted && filter.passes(version));
            let shown = match (before, after) {
                (None, Some(version)) => (Word::Added, version),
                (Some(_), Some(version)) => (Word::Modified, version),
                (Some(previous), None) => (Word::Deleted, previous),
                (None, None) => return None,
            };
            Some((entry.version.revision, shown))
        };
        self.entries.iter().filter_map(seen).collect()
    }
}
