//! What writers and watchers asked for and saw.

use std::io;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::load::version::Version;

/// Everything that was asked for and seen.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Every write, whatever became of it.
    pub writes: Vec<Write>,
    /// Single objects that were read.
    pub reads: Vec<Version>,
    /// Everything there was at some moments: before the load, after each start, and at the end.
    pub lists: Vec<Listed>,
    /// What each watcher saw, from its start to the end.
    pub watches: Vec<Watched>,
    /// What should not have happened to a client, in words.
    pub troubles: Vec<String>,
}

/// What one writer did.
#[derive(Debug, Default)]
pub struct Written {
    /// Its writes.
    pub writes: Vec<Write>,
    /// What it read to find out what became of a write.
    pub reads: Vec<Version>,
    /// What should not have happened to it.
    pub troubles: Vec<String>,
}

/// One write.
#[derive(Debug, Clone)]
pub struct Write {
    /// `namespace/name`, or the beginning of it if the server chose the rest.
    pub key: String,
    /// What it does if it happens.
    pub effect: Effect,
    /// What the client knows about that.
    pub outcome: Outcome,
    /// When it was sent, by the clock of the load.
    pub begun: u64,
    /// When its answer came, or did not.
    pub ended: u64,
}

/// What a write does if it happens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The object has the content with this token.
    Put(String),
    /// The object of this uid is marked for deletion and stays.
    Mark(String),
    /// The object of this uid is gone.
    Delete(String),
}

/// What the client knows of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It happened, and left this version; a deletion leaves none.
    Acknowledged(Option<Version>),
    /// It did not happen.
    Refused(u16),
    /// No answer came.
    Unknown,
}

/// Everything there was at one revision.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// When it was asked for, by the clock of the load.
    pub begun: u64,
    /// At which revision.
    pub revision: u64,
    /// What there was.
    pub versions: Vec<Version>,
}

impl Listed {
    /// Reads the text of a list.
    pub fn parse(begun: u64, text: &str) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(borrow)]
            items: Vec<&'a RawValue>,
            metadata: ListMetadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListMetadata {
            resource_version: String,
        }
        let list: List<'_> = serde_json::from_str(text)?;
        let revision = list.metadata.resource_version.parse().map_err(io::Error::other)?;
        let versions = list.items.iter().map(|item| Version::parse(item.get()));
        let versions = versions.collect::<Result<_, _>>().map_err(io::Error::other)?;
        Ok(Self { begun, revision, versions })
    }
}

/// What one watcher saw.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Which watcher.
    pub name: String,
    /// What it watched.
    pub filter: Filter,
    /// The revision it started from; nothing was there then.
    pub from: u64,
    /// What it saw, in order.
    pub events: Vec<Event>,
    /// What the server sent as present, each time a watch began with that.
    pub lists: Vec<Listed>,
    /// How often it broke and had to resume.
    pub resumed: usize,
    /// How often the server ended it in order.
    pub ended: usize,
    /// What should not have happened to it.
    pub troubles: Vec<String>,
}

/// Which objects a watcher sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this team, or only the others.
    pub team: Option<(String, bool)>,
}

impl Filter {
    /// Does it show this version?
    pub fn passes(&self, version: &Version) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| version.namespace() == namespace)
            && self.team.as_ref().is_none_or(|(team, same)| (version.team == *team) == *same)
    }
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An object came into sight, changed, or went out of sight.
    Change(Word, Version),
    /// Nothing further up to this revision.
    Bookmark(u64),
}

/// What happened to an object, as its watcher sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
}
