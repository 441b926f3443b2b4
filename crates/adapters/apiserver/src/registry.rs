//! The kinds that are served.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kind::{Kind, Strategy, Typed};

/// All served kinds, found by path or by name.
#[derive(Default, Clone)]
pub struct Registry {
    kinds: BTreeMap<(String, String, String), Arc<dyn Kind>>,
}

impl Registry {
    /// Serves one more kind.
    #[must_use]
    pub fn with<S: Strategy>(mut self) -> Self {
        self.add(Arc::new(Typed::<S>::default()));
        self
    }

    fn add(&mut self, kind: Arc<dyn Kind>) {
        let info = kind.info();
        self.kinds.insert((info.group.clone(), info.version.clone(), info.plural.clone()), kind);
    }

    /// The kind behind a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<dyn Kind>> {
        self.kinds.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The kind an owner reference names.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<dyn Kind>> {
        self.kinds
            .values()
            .find(|known| known.info().kind == kind && known.info().api_version() == api_version)
    }

    /// All kinds, by group, version and plural.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<dyn Kind>> {
        self.kinds.values()
    }

    /// All group versions that have kinds.
    pub fn group_versions(&self) -> Vec<(String, String)> {
        let mut all: Vec<_> =
            self.kinds.keys().map(|(group, version, _)| (group.clone(), version.clone())).collect();
        all.dedup();
        all
    }
}
