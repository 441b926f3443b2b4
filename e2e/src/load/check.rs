//! Finds in a history what cannot be if nothing was lost, doubled or reordered.
//!
//! The watch of everything is taken for the log of what happened. It is held against every write that was answered,
//! every read and list, and every other watch; what it lacks or has too much shows as a difference to one of them.

mod log;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::load::check::log::Log;
use crate::load::history::{Effect, Event, Filter, History, Listed, Outcome, Watched, Word, Write};
use crate::load::version::Version;

/// Something that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Of what sort.
    pub kind: Kind,
    /// What exactly.
    pub what: String,
}

/// Sorts of violations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A write that was acknowledged did not happen, or not as it was answered.
    Lost,
    /// Something happened, or was read, that nobody wrote or that was refused.
    Phantom,
    /// One write happened twice.
    Doubled,
    /// One revision stands for two things.
    RevisionReused,
    /// A later answer has an earlier revision.
    RevisionWentBack,
    /// A watch left something out.
    WatchGap,
    /// A watch showed something twice, out of order, or that does not follow from what it showed before.
    WatchOrder,
    /// A list does not show what the log says was there.
    ListDiffers,
    /// An object has another uid or time of creation than before.
    IdentityChanged,
    /// A client met what it should not have met.
    Trouble,
}

/// Everything in the history that cannot be.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Findings::default();
    found.check_troubles(history);
    for watch in &history.watches {
        found.check_stream(watch);
    }
    let Some(everything) = history.watches.iter().find(|watch| watch.filter == Filter::default()) else {
        found.add(Kind::WatchGap, "nobody watched everything");
        return found.0;
    };
    let log = Log::of(everything);
    found.check_revisions(history);
    found.check_identity(&log);
    found.check_writes(history, &log);
    found.check_reads(history, &log);
    found.check_lists(history, &log);
    for watch in history.watches.iter().filter(|watch| !watch.events.is_empty() || watch.lists.is_empty()) {
        found.check_against_log(watch, &log);
    }
    found.check_order(history, &log);
    found.0
}

#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, kind: Kind, what: impl Into<String>) {
        self.0.push(Violation { kind, what: what.into() });
    }

    fn check_troubles(&mut self, history: &History) {
        for trouble in &history.troubles {
            self.add(Kind::Trouble, trouble);
        }
        for watch in &history.watches {
            for trouble in &watch.troubles {
                self.add(Kind::Trouble, format!("{}: {trouble}", watch.name));
            }
        }
    }

    /// A watch by itself: revisions grow, and each event follows from those before.
    fn check_stream(&mut self, watch: &Watched) {
        let mut at = watch.from;
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for event in &watch.events {
            let (word, version) = match event {
                Event::Bookmark(revision) => {
                    if *revision < at {
                        let what = format!("{}: bookmark {revision} after {at}", watch.name);
                        self.add(Kind::WatchOrder, what);
                    }
                    at = at.max(*revision);
                    continue;
                }
                Event::Change(word, version) => (*word, version),
            };
            let shown =
                format!("{}: {word:?} {} at {} after {at}", watch.name, version.key, version.revision);
            if version.revision <= at {
                self.add(Kind::WatchOrder, &shown);
            }
            at = version.revision;
            let was_known = match word {
                Word::Deleted => known.remove(version.key.as_str()),
                Word::Added | Word::Modified => !known.insert(&version.key),
            };
            if was_known == (word == Word::Added) {
                self.add(
                    Kind::WatchOrder,
                    format!("{shown}, which does not follow from what was shown before"),
                );
            }
        }
    }

    /// One revision, one version, whoever shows it.
    fn check_revisions(&mut self, history: &History) {
        let acknowledged = history.writes.iter().filter_map(|write| match &write.outcome {
            Outcome::Acknowledged(version) => version.as_ref(),
            Outcome::Refused(_) | Outcome::Unknown => None,
        });
        let lists = history.lists.iter().chain(history.watches.iter().flat_map(|watch| &watch.lists));
        let events = history.watches.iter().flat_map(|watch| &watch.events).filter_map(|event| match event {
            Event::Change(Word::Added | Word::Modified, version) => Some(version),
            // What went out of sight is shown as it was before.
            Event::Change(Word::Deleted, _) | Event::Bookmark(_) => None,
        });
        let versions =
            acknowledged.chain(&history.reads).chain(lists.flat_map(|list| &list.versions)).chain(events);
        let mut known: BTreeMap<u64, &Version> = BTreeMap::new();
        for version in versions {
            let first = known.entry(version.revision).or_insert(version);
            if first.text != version.text {
                let what = format!("{} is both {} and {}", version.revision, first.text, version.text);
                self.add(Kind::RevisionReused, what);
            }
        }
    }

    fn check_identity(&mut self, log: &Log<'_>) {
        let mut uids = BTreeMap::new();
        for entry in log.entries() {
            let version = entry.version;
            match entry.previous {
                Some(previous) if (&previous.uid, &previous.created) != (&version.uid, &version.created) => {
                    let what = format!("{} became {}", previous.text, version.text);
                    self.add(Kind::IdentityChanged, what);
                }
                Some(_) => {}
                None => {
                    if let Some(other) = uids.insert(&version.uid, version) {
                        let what =
                            format!("{} is the uid of {} and {}", version.uid, other.text, version.text);
                        self.add(Kind::IdentityChanged, what);
                    }
                }
            }
        }
    }

    /// What was acknowledged happened as answered; what happened was asked for, and once.
    fn check_writes(&mut self, history: &History, log: &Log<'_>) {
        for write in &history.writes {
            let happened = log.caused_by(&write.effect);
            match &write.outcome {
                Outcome::Unknown => {}
                Outcome::Refused(code) => {
                    if !happened.is_empty() && !is_asked_again(history, write) {
                        self.add(Kind::Phantom, format!("refused with {code}, yet it happened: {write:?}"));
                    }
                }
                Outcome::Acknowledged(None) => {
                    if happened.is_empty() {
                        self.add(Kind::Lost, format!("{write:?}"));
                    }
                }
                Outcome::Acknowledged(Some(version)) => {
                    let as_answered = happened.iter().any(|entry| entry.version.text == version.text);
                    if !as_answered {
                        self.add(Kind::Lost, format!("{write:?}; the log says {happened:?}"));
                    }
                }
            }
            if happened.len() > 1 {
                self.add(Kind::Doubled, format!("{write:?} happened as {happened:?}"));
            }
        }
        let asked_for: BTreeSet<&Effect> = history.writes.iter().map(|write| &write.effect).collect();
        for entry in log.entries().iter().filter(|entry| !asked_for.contains(&entry.cause)) {
            self.add(Kind::Phantom, format!("nobody asked for {entry:?}"));
        }
    }

    /// What was read was there.
    fn check_reads(&mut self, history: &History, log: &Log<'_>) {
        for read in &history.reads {
            let there = log.at(read.revision).is_some_and(|entry| entry.version.text == read.text);
            if !there {
                self.add(Kind::Phantom, format!("read what never was: {}", read.text));
            }
        }
    }

    /// A list shows the state of the log at its revision.
    fn check_lists(&mut self, history: &History, log: &Log<'_>) {
        let lists = history.lists.iter().chain(history.watches.iter().flat_map(|watch| &watch.lists));
        let mut lists: Vec<&Listed> = lists.collect();
        lists.sort_by_key(|list| list.revision);
        let mut state: BTreeMap<&str, &Version> = BTreeMap::new();
        let mut entries = log.entries().iter().peekable();
        for list in lists {
            while let Some(entry) = entries.next_if(|entry| entry.version.revision <= list.revision) {
                match entry.word {
                    Word::Deleted => state.remove(entry.version.key.as_str()),
                    Word::Added | Word::Modified => state.insert(&entry.version.key, entry.version),
                };
            }
            let shown: BTreeMap<&str, &Version> =
                list.versions.iter().map(|version| (version.key.as_str(), version)).collect();
            for key in state.keys().chain(shown.keys()).collect::<BTreeSet<_>>() {
                let (logged, shown) = (state.get(key), shown.get(key));
                if logged.map(|version| &version.text) != shown.map(|version| &version.text) {
                    let what = format!("at {}: {key} is {shown:?}, the log has {logged:?}", list.revision);
                    self.add(Kind::ListDiffers, what);
                }
            }
        }
    }

    /// A watch of a part shows exactly that part of the log.
    fn check_against_log(&mut self, watch: &Watched, log: &Log<'_>) {
        let expected = log.seen_through(&watch.filter);
        let shown = watch.events.iter().filter_map(|event| match event {
            Event::Change(word, version) => Some((version.revision, (*word, version))),
            Event::Bookmark(_) => None,
        });
        let shown: BTreeMap<u64, (Word, &Version)> = shown.collect();
        for (revision, (word, version)) in &expected {
            match shown.get(revision) {
                None => {
                    let what = format!("{}: {word:?} {} at {revision} is missing", watch.name, version.key);
                    self.add(Kind::WatchGap, what);
                }
                Some((as_word, as_version)) => {
                    let same = as_word == word
                        && as_version.key == version.key
                        && as_version.token == version.token
                        && (*word == Word::Deleted || as_version.text == version.text);
                    if !same {
                        let what = format!(
                            "{}: {as_word:?} {as_version:?} instead of {word:?} {version:?}",
                            watch.name
                        );
                        self.add(Kind::WatchOrder, what);
                    }
                }
            }
        }
        for (revision, (word, version)) in
            shown.iter().filter(|(revision, _)| !expected.contains_key(revision))
        {
            let what =
                format!("{}: {word:?} {} at {revision}, which is not in the log", watch.name, version.key);
            self.add(Kind::Phantom, what);
        }
    }

    /// Whoever asked after an answer was there gets a later revision, writer or reader.
    fn check_order(&mut self, history: &History, log: &Log<'_>) {
        let mut ends: Vec<(u64, u64)> =
            history.writes.iter().filter_map(|write| log.revision_of(write)).collect();
        ends.sort_unstable();
        // Each with the newest revision up to it.
        let mut newest = 0;
        for (_, revision) in &mut ends {
            newest = newest.max(*revision);
            *revision = newest;
        }
        let newest_at = |begun: u64| {
            let count = ends.partition_point(|(ended, _)| *ended < begun);
            count.checked_sub(1).map_or(0, |last| ends[last].1)
        };
        for write in &history.writes {
            if let (Some((_, revision)), before) = (log.revision_of(write), newest_at(write.begun))
                && revision <= before
            {
                self.add(
                    Kind::RevisionWentBack,
                    format!("{revision} after {before} was answered: {write:?}"),
                );
            }
        }
        for list in &history.lists {
            let before = newest_at(list.begun);
            if list.revision < before {
                let what = format!("a list shows {} after {before} was answered", list.revision);
                self.add(Kind::RevisionWentBack, what);
            }
        }
    }
}

/// A deletion that was refused may have been asked for again.
fn is_asked_again(history: &History, refused: &Write) -> bool {
    let same =
        |write: &&Write| write.effect == refused.effect && !matches!(write.outcome, Outcome::Refused(_));
    history.writes.iter().any(|write| same(&write))
}
