//! The kinds that are served: ours, which never change, and those that users declare, which do.
//!
//! Looking up a kind of ours takes no lock and no memory. Those that users declare are found in a [`Table`] that is made
//! anew whenever a ResourceType changed, so they are served from the moment their declaration is committed, by every
//! server of the store, and from the first request after a restart.

use std::sync::Arc;

use muster_ports::store::{ResourceName, Store};
use muster_types::names::RESOURCES_GROUP;

use crate::declared::{Declared, Table};
use crate::kind::{Kind, Strategy};
use crate::typed::Typed;

/// All served kinds, found by path or by name. A clone serves the same.
#[derive(Default, Clone)]
pub struct Registry {
    /// By group, version and plural.
    ours: Vec<Arc<dyn Kind>>,
    declared: Option<Arc<Declared>>,
}

impl Registry {
    /// Serves one more kind.
    #[must_use]
    pub fn with<S: Strategy>(mut self) -> Self {
        self.ours.push(Arc::new(Typed::<S>::default()));
        self.ours.sort_by(|one, other| {
            let name = |kind: &Arc<dyn Kind>| {
                let info = kind.info();
                (info.group.clone(), info.version.clone(), info.plural.clone())
            };
            name(one).cmp(&name(other))
        });
        self
    }

    /// Serves the kinds that the ResourceTypes of a store declare.
    #[must_use]
    pub fn with_types_of(self, store: &Store) -> Self {
        Self { declared: Some(Arc::new(Declared::new(store.clone()))), ..self }
    }

    /// The kind behind a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<dyn Kind>> {
        if group == RESOURCES_GROUP {
            let found = self.table()?.find(plural)?;
            return (found.info().version == version).then_some(found);
        }
        let is_meant = |kind: &&Arc<dyn Kind>| {
            let info = kind.info();
            info.plural == plural && info.group == group && info.version == version
        };
        self.ours.iter().find(is_meant).cloned()
    }

    /// The kind an owner reference names.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<dyn Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if group == RESOURCES_GROUP {
            let found = self.table()?.find_kind(kind)?;
            return (found.info().version == version).then_some(found);
        }
        let is_meant = |known: &&Arc<dyn Kind>| {
            let info = known.info();
            info.kind == kind && info.group == group && info.version == version
        };
        self.ours.iter().find(is_meant).cloned()
    }

    /// The kind of the objects that are kept under a name.
    pub fn find_resource(&self, resource: &ResourceName) -> Option<Arc<dyn Kind>> {
        let (plural, group) = resource.as_str().split_once('.')?;
        if group == RESOURCES_GROUP {
            return self.table()?.find(plural);
        }
        self.ours.iter().find(|kind| kind.info().resource == *resource).cloned()
    }

    /// All kinds, by group, version and plural.
    pub fn kinds(&self) -> Vec<Arc<dyn Kind>> {
        let declared = self.table();
        self.ours.iter().chain(declared.iter().flat_map(|table| table.kinds())).cloned().collect()
    }

    /// All group versions that have kinds.
    pub fn group_versions(&self) -> Vec<(String, String)> {
        let kinds = self.kinds();
        let mut all: Vec<_> =
            kinds.iter().map(|kind| (kind.info().group.clone(), kind.info().version.clone())).collect();
        all.dedup();
        all
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.declared.as_ref().map(|declared| declared.table())
    }
}
