//! Paging through a list at one revision.
//!
//! A token names the revision of the first page and where the last one ended. The snapshot of that revision is kept
//! for a while; it costs only the objects that changed since. Another server of the same store, which has no such snapshot, makes
//! it again from the changes since. Only when those are forgotten the list cannot go on as it was: then the client gets a token
//! that goes on at the same place in what is there now.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_ports::clock::Millis;
use muster_ports::store::{ResourceName, Revision, Snapshot};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// A place in what a list is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Which of the snapshots.
    pub part: usize,
    /// The path of the last object that was looked at in it.
    pub after: Option<String>,
}

/// How long a list may take from its first page to its last.
const KEEP_MILLIS: i64 = 5 * 60 * 1000;
/// How many lists may be under way.
const KEEP: usize = 256;

/// Instead of a revision, in a token: the newest.
const NOW: u64 = 0;

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The revision of the list.
    pub revision: u64,
    /// The last object of the page before.
    pub position: Position,
}

impl Token {
    /// A token that goes on from a place in what is there when it is used.
    pub fn of_now(position: Position) -> Self {
        Self { revision: NOW, position }
    }

    /// The revision of the list; `None` if it is the newest.
    pub fn at(&self) -> Option<Revision> {
        (self.revision != NOW).then_some(Revision(self.revision))
    }

    /// The opaque form clients see.
    pub fn encode(&self) -> String {
        let Position { part, after } = &self.position;
        URL_SAFE_NO_PAD.encode(format!("{}/{part}/{}", self.revision, after.as_deref().unwrap_or_default()))
    }

    /// Reads the opaque form.
    pub fn decode(text: &str) -> Result<Self, Refusal> {
        let decoded = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        decoded
            .as_deref()
            .and_then(|text| {
                let (revision, position) = text.split_once('/')?;
                let (part, after) = position.split_once('/')?;
                let after = (!after.is_empty()).then(|| after.to_owned());
                let position = Position { part: part.parse().ok()?, after };
                Some(Self { revision: revision.parse().ok()?, position })
            })
            .ok_or_else(|| Refusal::bad_request("continue key is not valid; start the list again without it"))
    }
}

/// Snapshots of lists that are under way.
#[derive(Default)]
pub struct Continuations(Mutex<VecDeque<Kept>>);

struct Kept {
    resource: ResourceName,
    snapshots: Vec<Snapshot>,
    until: Millis,
}

impl Continuations {
    /// Keeps what a list is made of for the next page.
    pub fn keep(&self, resource: &ResourceName, snapshots: &[Snapshot], now: Millis) {
        let mut kept = self.0.lock();
        kept.retain(|entry| {
            entry.until > now
                && !(entry.resource == *resource && revision_of(&entry.snapshots) == revision_of(snapshots))
        });
        if kept.len() >= KEEP {
            kept.pop_front();
        }
        let until = Millis(now.0 + KEEP_MILLIS);
        kept.push_back(Kept { resource: resource.clone(), snapshots: snapshots.to_vec(), until });
    }

    /// What a list that goes on is made of.
    pub fn find(&self, resource: &ResourceName, revision: Revision, now: Millis) -> Option<Vec<Snapshot>> {
        let kept = self.0.lock();
        let same = |entry: &&Kept| entry.resource == *resource && revision_of(&entry.snapshots) == revision;
        kept.iter().filter(|entry| entry.until > now).find(same).map(|entry| entry.snapshots.clone())
    }
}

/// The revision at which all of them were taken.
pub fn revision_of(snapshots: &[Snapshot]) -> Revision {
    snapshots.first().map_or(Revision::ZERO, |snapshot| snapshot.revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_as_it_was_written() {
        let position = Position { part: 2, after: Some("default/a".into()) };
        let token = Token { revision: 42, position };
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
    }

    proptest::proptest! {
        #[test]
        fn no_token_panics(text in ".*") {
            drop(Token::decode(&text));
        }
    }
}
