//! A watch that is resumed from the last revision it saw, whenever it breaks.

use std::io;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::load::history::{Event, Filter, Listed, Watched, Word};
use crate::load::version::Version;
use crate::load::{COLLECTION, Shared};

/// A watcher.
pub struct Watcher {
    bookmarks: bool,
    /// Each watch begins with what is there.
    lists_again: bool,
    /// Everything up to here was seen.
    seen: u64,
    watched: Watched,
}

/// A line of a watch.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    word: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

impl Watcher {
    /// A watcher from a revision at which there was nothing.
    pub fn new(name: &str, filter: Filter, bookmarks: bool, from: u64) -> Self {
        let watched = Watched { name: name.to_owned(), filter, from, ..Watched::default() };
        Self { bookmarks, lists_again: false, seen: from, watched }
    }

    /// The same watcher, but each watch begins with what is there, and what follows is not recorded.
    #[must_use]
    pub fn listing_again(self) -> Self {
        Self { lists_again: true, ..self }
    }

    /// Watches until enough was seen.
    pub fn run(mut self, shared: &Shared) -> Watched {
        while !self.has_enough(shared) {
            let start = shared.gate.starts();
            if self.watch(shared).is_err() && !self.has_enough(shared) {
                // It broke: go on once the server is there again.
                self.watched.resumed += 1;
                if shared.gate.wait_beyond(start).is_none() && !shared.gate.is_closed() {
                    self.watched.troubles.push("waited in vain for the server".to_owned());
                    break;
                }
            }
            if self.watched.troubles.len() > 10 {
                break;
            }
        }
        self.watched
    }

    fn has_enough(&self, shared: &Shared) -> bool {
        let Some(last_words) = shared.last_words.get() else { return false };
        let visible = last_words.iter().filter(|version| self.watched.filter.passes(version));
        visible.map(|version| version.revision).max().is_some_and(|last| self.seen >= last)
    }

    fn query(&self) -> String {
        let collection = match &self.watched.filter.namespace {
            Some(namespace) => format!("/apis/muster.dev/v1alpha1/namespaces/{namespace}/applications"),
            None => COLLECTION.to_owned(),
        };
        let mut query = if self.lists_again {
            format!("{collection}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        } else {
            format!("{collection}?watch=1&resourceVersion={}", self.seen)
        };
        if self.bookmarks {
            query.push_str("&allowWatchBookmarks=true");
        }
        if let Some((team, same)) = &self.watched.filter.team {
            query.push_str(&format!("&labelSelector=team{}{team}", if *same { "%3D" } else { "%21%3D" }));
        }
        query
    }

    /// Follows one watch to its end.
    fn watch(&mut self, shared: &Shared) -> io::Result<()> {
        let mut stream = match shared.connect()?.watch(&self.query())? {
            Ok(stream) => stream,
            Err(refused) => {
                let why =
                    format!("a watch from {} was refused: {} {}", self.seen, refused.code, refused.text());
                self.watched.troubles.push(why);
                return Ok(());
            }
        };
        let mut present = self.lists_again.then(Listed::default);
        while let Some(line) = stream.next_line()? {
            if let Err(why) = self.take(&line, &mut present) {
                self.watched.troubles.push(why);
            }
            if self.has_enough(shared) {
                return Ok(());
            }
        }
        self.watched.ended += 1;
        Ok(())
    }

    fn take(&mut self, line: &str, present: &mut Option<Listed>) -> Result<(), String> {
        let line: Line<'_> = serde_json::from_str(line).map_err(|error| format!("{error} in {line}"))?;
        let word = match line.word {
            "ADDED" => Word::Added,
            "MODIFIED" => Word::Modified,
            "DELETED" => Word::Deleted,
            "BOOKMARK" => return self.take_bookmark(line.object.get(), present),
            _ => return Err(format!("{}: {}", line.word, line.object.get())),
        };
        let version = Version::parse(line.object.get())?;
        if let Some(present) = present {
            present.versions.push(version);
            return Ok(());
        }
        self.seen = version.revision;
        if !self.lists_again {
            self.watched.events.push(Event::Change(word, version));
        }
        Ok(())
    }

    fn take_bookmark(&mut self, object: &str, present: &mut Option<Listed>) -> Result<(), String> {
        let bookmark: Bookmark =
            serde_json::from_str(object).map_err(|error| format!("{error} in {object}"))?;
        let revision =
            bookmark.metadata.resource_version.parse().map_err(|_| format!("no revision in {object}"))?;
        if bookmark.metadata.annotations.contains_key("k8s.io/initial-events-end")
            && let Some(present) = present.take()
        {
            self.watched.lists.push(Listed { revision, ..present });
        }
        self.seen = revision;
        if !self.lists_again {
            self.watched.events.push(Event::Bookmark(revision));
        }
        Ok(())
    }
}
