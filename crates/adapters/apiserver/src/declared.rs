//! The kinds that ResourceTypes declare, as they are now.
//!
//! A [`Table`] is what the types of one moment mean. It is kept until some type is written, which one look at the store
//! tells, and then made anew; a type that did not change keeps what was made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_ports::store::{ResourceName, Snapshot, Store, Stored};
use muster_types::names::GROUP;
use muster_types::resource_type::{ResourceType, ResourceTypeSpec};
use muster_types::{JsonText, Resource as _, Timestamp};
use parking_lot::RwLock;

use crate::kind::Kind;
use crate::managed::ManagedKind;

/// The types of a store, and what they mean.
pub struct Declared {
    store: Store,
    types: ResourceName,
    table: RwLock<Arc<Table>>,
}

/// The declared kinds of one moment.
pub struct Table {
    types: Snapshot,
    entries: BTreeMap<String, Entry>,
    kinds: Vec<Arc<dyn Kind>>,
}

/// A type that was read.
#[derive(Clone)]
struct Entry {
    /// What the kind depends on: a type that only reports something else means the same.
    version: (String, i64, Option<Timestamp>),
    /// `None` for a type that cannot be read.
    kind: Option<Arc<dyn Kind>>,
}

/// Where ResourceTypes are kept.
pub fn types_resource() -> ResourceName {
    ResourceName::new(&format!("{}.{GROUP}", ResourceTypeSpec::NAMES.plural))
}

impl Declared {
    /// The types of a store.
    pub fn new(store: Store) -> Self {
        let types = types_resource();
        let table = Table::of(store.snapshot(&types), &BTreeMap::new());
        Self { store, types, table: RwLock::new(Arc::new(table)) }
    }

    /// The kinds that are declared now.
    pub fn table(&self) -> Arc<Table> {
        let types = self.store.snapshot(&self.types);
        let table = self.table.read().clone();
        if table.types.is_same(&types) {
            return table;
        }
        let made = Arc::new(Table::of(types, &table.entries));
        let mut table = self.table.write();
        // Of two that were made at once, the newer one stays; either is right for whoever made it.
        if table.types.revision <= made.types.revision {
            *table = made.clone();
        }
        made
    }
}

impl Table {
    fn of(types: Snapshot, before: &BTreeMap<String, Entry>) -> Self {
        let entries: BTreeMap<String, Entry> = types
            .range(None, None)
            .map(|stored| (stored.name().to_owned(), entry(stored, before.get(stored.name()))))
            .collect();
        let kinds = entries.values().filter_map(|entry| entry.kind.clone()).collect();
        Self { types, entries, kinds }
    }

    /// The kind of this plural.
    pub fn find(&self, plural: &str) -> Option<Arc<dyn Kind>> {
        self.entries.get(plural)?.kind.clone()
    }

    /// The kind of this name.
    pub fn find_kind(&self, kind: &str) -> Option<Arc<dyn Kind>> {
        self.kinds.iter().find(|known| known.info().kind == kind).cloned()
    }

    /// All of them, by plural.
    pub fn kinds(&self) -> &[Arc<dyn Kind>] {
        &self.kinds
    }
}

fn entry(stored: &Stored, before: Option<&Entry>) -> Entry {
    let declared: ResourceType = match ResourceType::from_json(stored.json()) {
        Ok(declared) => declared,
        Err(error) => return unreadable(stored, &error.to_string(), Entry::none()),
    };
    let metadata = &declared.metadata;
    let version = (metadata.uid.clone(), metadata.generation, metadata.deletion_timestamp);
    if let Some(before) = before.filter(|before| before.version == version) {
        return before.clone();
    }
    match ManagedKind::new(&declared) {
        Ok(kind) => Entry { version, kind: Some(Arc::new(kind)) },
        Err(error) => unreadable(stored, &error, Entry { version, kind: None }),
    }
}

/// One bad type harms only itself. It was checked when it was written, so this is a type of a newer version.
fn unreadable(stored: &Stored, why: &str, entry: Entry) -> Entry {
    tracing::warn!(
        resource_type = stored.name(),
        why,
        "a resource type cannot be read; its kind is not served"
    );
    entry
}

impl Entry {
    fn none() -> Self {
        Self { version: (String::new(), 0, None), kind: None }
    }
}
