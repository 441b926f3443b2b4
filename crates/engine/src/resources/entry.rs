//! What is remembered of a managed resource between two looks.

use std::fmt;
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::{Key, ResourceName, Revision};

/// Where a managed resource is: the plural of its type, and `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The plural of its type.
    pub plural: Arc<str>,
    /// `namespace/name`.
    pub path: Arc<str>,
}

impl Place {
    /// Where it is stored.
    pub fn key(&self) -> Key {
        Key { resource: resource_name(&self.plural), path: self.path.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.plural, self.path)
    }
}

/// Where the resources of a type are stored.
pub fn resource_name(plural: &str) -> ResourceName {
    ResourceName::new(&format!("{plural}.{}", muster_types::names::RESOURCES_GROUP))
}

/// One managed resource.
#[derive(Debug, Default)]
pub struct Entry {
    /// Its uid.
    pub uid: String,
    /// When it is looked at next.
    pub due: Option<Millis>,
    /// It is to be looked at.
    pub dirty: bool,
    /// Changes up to here are known.
    pub seen: Revision,
    /// Uids of what it belongs to.
    pub owners: Vec<String>,
}
