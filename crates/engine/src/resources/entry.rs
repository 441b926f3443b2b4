//! What is remembered of a managed resource between two looks.

use std::fmt;
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::{Key, ResourceName, Revision};

/// How long a resource whose expressions cost too much is left alone at first.
const FIRST_PAUSE: i64 = 10_000;
/// For how long at most.
const LONGEST_PAUSE: i64 = 600_000;

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
    /// How often in a row its expressions cost too much.
    pub too_costly: u32,
    /// It is not looked at before this time, whatever changes.
    pub aside_until: Option<Millis>,
    /// It is being deleted.
    pub deleting: bool,
}

impl Entry {
    /// Takes note of whether its expressions cost too much. It is left alone then, each time for twice as long, unless it is being
    /// deleted.
    pub fn note_cost(&mut self, too_costly: bool, now: Millis) {
        self.too_costly = if too_costly { self.too_costly.saturating_add(1) } else { 0 };
        let pause = FIRST_PAUSE.saturating_mul(1 << self.too_costly.saturating_sub(1).min(16));
        let until = Millis(now.0.saturating_add(pause.min(LONGEST_PAUSE)));
        self.aside_until = (too_costly && !self.deleting).then_some(until);
    }
}
