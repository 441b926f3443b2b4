//! Paging through a list at one revision.
//!
//! A token names the revision of the first page and where the last one ended. The snapshot of that revision is kept
//! for a while; it costs only the objects that changed since.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_ports::clock::Millis;
use muster_ports::store::{ResourceName, Revision, Snapshot};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// How long a list may take from its first page to its last.
const KEEP_MILLIS: i64 = 5 * 60 * 1000;
/// How many lists may be under way.
const KEEP: usize = 256;

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The revision of the list.
    pub revision: u64,
    /// The path of the last object of the page before.
    pub after: String,
}

impl Token {
    /// The opaque form clients see.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}/{}", self.revision, self.after))
    }

    /// Reads the opaque form.
    pub fn decode(text: &str) -> Result<Self, Refusal> {
        let decoded = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let parts = decoded.as_deref().and_then(|text| text.split_once('/'));
        parts
            .and_then(|(revision, after)| {
                Some(Self { revision: revision.parse().ok()?, after: after.to_owned() })
            })
            .ok_or_else(|| Refusal::bad_request("continue key is not valid; start the list again without it"))
    }
}

/// Snapshots of lists that are under way.
#[derive(Default)]
pub struct Continuations(Mutex<VecDeque<Kept>>);

struct Kept {
    resource: ResourceName,
    snapshot: Snapshot,
    until: Millis,
}

impl Continuations {
    /// Keeps a snapshot for the next page.
    pub fn keep(&self, resource: &ResourceName, snapshot: &Snapshot, now: Millis) {
        let mut kept = self.0.lock();
        kept.retain(|entry| {
            entry.until > now
                && !(entry.resource == *resource && entry.snapshot.revision == snapshot.revision)
        });
        if kept.len() >= KEEP {
            kept.pop_front();
        }
        let until = Millis(now.0 + KEEP_MILLIS);
        kept.push_back(Kept { resource: resource.clone(), snapshot: snapshot.clone(), until });
    }

    /// The snapshot of a list that goes on.
    pub fn find(&self, resource: &ResourceName, revision: Revision, now: Millis) -> Option<Snapshot> {
        let kept = self.0.lock();
        let same = |entry: &&Kept| entry.resource == *resource && entry.snapshot.revision == revision;
        kept.iter().filter(|entry| entry.until > now).find(same).map(|entry| entry.snapshot.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_as_it_was_written() {
        let token = Token { revision: 42, after: "default/a".into() };
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
    }

    proptest::proptest! {
        #[test]
        fn no_token_panics(text in ".*") {
            drop(Token::decode(&text));
        }
    }
}
