//! One transition of one object, before it is put into the words of a profile.

use std::sync::Arc;

use serde_json::Value;

/// Which object.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// `group/version`.
    pub api_version: String,
    /// Its kind, such as Task.
    pub kind: String,
    /// Its plural, as in paths.
    pub plural: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: Arc<str>,
}

/// What makes a transition the only one of its sort, so that its id is the same each time it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unique {
    /// It happens once in the life of an object.
    Once,
    /// It happens once in an attempt, or another counter of the object.
    Count(u64),
    /// It happens once in a change.
    Revision,
}

/// One transition.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name in CloudEvents, in lower case.
    pub word: String,
    /// What makes it unique.
    pub unique: Unique,
    /// What CDS calls it; `None` if it says nothing about it.
    pub cds: Option<Cds>,
    /// More about it, for CloudEvents.
    pub data: Vec<(&'static str, Value)>,
}

/// A message of CDS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cds {
    /// Last word of the routing key.
    pub word: &'static str,
    /// What makes it unique.
    pub unique: Unique,
    /// Attempts that failed or were lost.
    pub retry_count: u32,
    /// Why it failed.
    pub failure_reason: Option<String>,
}

/// The id of a transition.
pub fn id(uid: &str, word: &str, unique: &Unique, revision: u64) -> String {
    match unique {
        Unique::Once => format!("{uid}/{word}"),
        Unique::Count(count) => format!("{uid}/{word}/{count}"),
        Unique::Revision => format!("{uid}/{word}/r{revision}"),
    }
}

impl Step {
    /// A step that CDS says nothing about.
    pub fn new(word: &str, unique: Unique) -> Self {
        Self { word: word.to_lowercase(), unique, cds: None, data: Vec::new() }
    }
}
