//! The types and adapters as they are stored, compiled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use muster_ports::store::Stored;
use muster_resources::{AdapterRules, TypeRules};
use muster_types::{Adapter, JsonText, ResourceType};

/// Types by plural.
#[derive(Default)]
pub struct Types {
    by_plural: HashMap<Arc<str>, Arc<TypeRules>>,
}

impl Types {
    /// Takes in a type. One that cannot be read is set aside: its resources are left alone.
    pub fn observe(&mut self, stored: &Stored) -> Arc<str> {
        let plural: Arc<str> = stored.name().into();
        let rules =
            ResourceType::from_json(stored.json()).map_err(|error| error.to_string()).and_then(|object| {
                TypeRules::compile(&object.spec)
                    .map_err(|problems| problems.first().map_or_else(String::new, ToString::to_string))
            });
        match rules {
            Ok(rules) => drop(self.by_plural.insert(plural.clone(), Arc::new(rules))),
            Err(error) => {
                tracing::error!(%plural, %error, "a stored resource type cannot be used; its resources are left alone");
                self.by_plural.remove(&plural);
            }
        }
        plural
    }

    /// Forgets a type.
    pub fn forget(&mut self, plural: &str) {
        self.by_plural.remove(plural);
    }

    /// The rules of a type.
    pub fn get(&self, plural: &str) -> Option<&Arc<TypeRules>> {
        self.by_plural.get(plural)
    }

    /// The plural under which resources are stored, if the type is known.
    pub fn plural_of(&self, resource: &str) -> Option<Arc<str>> {
        let plural = resource.strip_suffix(muster_types::names::RESOURCES_GROUP)?.strip_suffix('.')?;
        self.by_plural.get_key_value(plural).map(|(plural, _)| plural.clone())
    }

    /// All plurals.
    pub fn plurals(&self) -> Vec<Arc<str>> {
        self.by_plural.keys().cloned().collect()
    }
}

/// Adapters by namespace and type.
#[derive(Default)]
pub struct Adapters {
    by_type: HashMap<(String, String), BTreeMap<String, Arc<AdapterRules>>>,
    types: HashMap<Arc<str>, String>,
}

impl Adapters {
    /// Takes in an adapter; gives the types whose resources it sees to now, or no longer.
    pub fn observe(&mut self, stored: &Stored) -> Vec<String> {
        let before = self.forget(stored);
        let rules = Adapter::from_json(stored.json()).map_err(|error| error.to_string()).and_then(|object| {
            AdapterRules::compile(stored.name(), &object.spec)
                .map_err(|problems| problems.first().map_or_else(String::new, ToString::to_string))
        });
        let rules = match rules {
            Ok(rules) => rules,
            Err(error) => {
                tracing::error!(path = &*stored.path, %error, "a stored adapter cannot be used; it is left alone");
                return before;
            }
        };
        let resource_type = rules.spec.resource_type.clone();
        self.types.insert(stored.path.clone(), resource_type.clone());
        let of_type = self.by_type.entry((stored.namespace().to_owned(), resource_type.clone())).or_default();
        of_type.insert(stored.name().to_owned(), Arc::new(rules));
        before.into_iter().chain([resource_type]).collect()
    }

    /// Forgets an adapter; gives the type it was for.
    pub fn forget(&mut self, stored: &Stored) -> Vec<String> {
        let Some(resource_type) = self.types.remove(&stored.path) else { return Vec::new() };
        let key = (stored.namespace().to_owned(), resource_type.clone());
        if let Some(of_type) = self.by_type.get_mut(&key) {
            of_type.remove(stored.name());
            if of_type.is_empty() {
                self.by_type.remove(&key);
            }
        }
        vec![resource_type]
    }

    /// The adapters of a type in a namespace, by name.
    pub fn of(&self, namespace: &str, plural: &str) -> Vec<Arc<AdapterRules>> {
        let of_type = self.by_type.get(&(namespace.to_owned(), plural.to_owned()));
        of_type.map(|of_type| of_type.values().cloned().collect()).unwrap_or_default()
    }
}
