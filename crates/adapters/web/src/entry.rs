//! What the console remembers of a task: enough to find, sort and count it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use muster_ports::store::Stored;
use muster_types::{MilliTimestamp, State, Timestamp};
use serde::Deserialize;

/// A task in few bytes. Words that many tasks share are kept once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `namespace/name`.
    pub path: Arc<str>,
    /// Where it is in its life.
    pub state: State,
    /// Its kind; empty if it has none.
    pub kind: Arc<str>,
    /// What it is about, as `kind/name`; empty if nothing.
    pub subject: Arc<str>,
    /// The rule that holds it back; empty if none does.
    pub held_by: Arc<str>,
    /// How urgent it is, if that was said.
    pub priority: Option<i32>,
    /// When it was made.
    pub created: Timestamp,
    /// When the program of its latest attempt was started.
    pub started: Option<MilliTimestamp>,
    /// When it ended.
    pub ended: Option<MilliTimestamp>,
    /// How far it is, in hundredths.
    pub progress: Option<u8>,
}

/// Words that are kept once.
#[derive(Debug, Default)]
pub struct Words(HashSet<Arc<str>>);

/// How many different words are shared; more are kept as they come.
const MOST_WORDS: usize = 100_000;

impl Words {
    fn keep(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let word: Arc<str> = word.into();
        if self.0.len() < MOST_WORDS {
            self.0.insert(word.clone());
        }
        word
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    metadata: HeadMetadata,
    #[serde(borrow, default)]
    spec: HeadSpec<'a>,
    #[serde(borrow, default)]
    status: HeadStatus<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    creation_timestamp: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct HeadSpec<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    subject: Option<HeadSubject<'a>>,
    priority: Option<i32>,
    suspend: bool,
}

#[derive(Deserialize)]
struct HeadSubject<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HeadStatus<'a> {
    state: Option<State>,
    started: Option<MilliTimestamp>,
    terminated: Option<MilliTimestamp>,
    #[serde(borrow)]
    waiting_for: Option<HeadWaiting<'a>>,
    total: Option<u64>,
    completed: Option<u64>,
}

#[derive(Deserialize)]
struct HeadWaiting<'a> {
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
}

impl Entry {
    /// What a stored task says of itself. `None` if it cannot be read.
    pub fn of(stored: &Stored, words: &mut Words) -> Option<Self> {
        let head: Head<'_> = serde_json::from_slice(stored.json()).ok()?;
        let Head { metadata, spec, status } = head;
        let subject = spec.subject.map(|subject| format!("{}/{}", subject.kind, subject.name));
        let held_by = status.waiting_for.map_or(Cow::Borrowed(""), |waiting| waiting.reason);
        let share = |total: u64| {
            let done = status.completed.unwrap_or(0).min(total);
            u8::try_from(done.saturating_mul(100) / total.max(1)).unwrap_or(100)
        };
        Some(Self {
            path: stored.path.clone(),
            state: State::of(status.state, spec.suspend),
            kind: words.keep(&spec.kind),
            subject: words.keep(&subject.unwrap_or_default()),
            held_by: words.keep(&held_by),
            priority: spec.priority,
            created: metadata.creation_timestamp.unwrap_or(Timestamp::MIN),
            started: status.started,
            ended: status.terminated,
            progress: status.total.map(share),
        })
    }

    /// Its place among those of its state: newest first.
    pub fn place(&self) -> Place {
        (Reverse(self.created.as_second()), self.path.clone())
    }

    /// Namespace and name.
    pub fn names(&self) -> (&str, &str) {
        self.path.split_once('/').unwrap_or(("", &self.path))
    }
}

/// A place in the order by age.
pub type Place = (Reverse<i64>, Arc<str>);
