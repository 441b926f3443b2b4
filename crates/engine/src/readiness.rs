//! Addons and extensions say of themselves whether they can be used.

use muster_ports::clock::Millis;
use muster_ports::store::{Batch, Change, Key, Precondition, Store, Write};
use muster_types::condition::{Condition, set_condition};
use muster_types::{Addon, Extension, JsonText, Object, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::catalogs::Catalogs;
use crate::writes::put;

/// Addons are kept there.
const ADDONS: &str = "addons.muster.dev";
/// Extensions are kept there.
const EXTENSIONS: &str = "extensions.muster.dev";

/// Addons and extensions that changed and were not judged yet.
#[derive(Debug, Default)]
pub struct Readiness {
    changed: Vec<Key>,
}

impl Readiness {
    /// Something changed; what is no addon or extension is of no interest.
    pub fn observe(&mut self, change: &Change) {
        if !change.deleted && [ADDONS, EXTENSIONS].contains(&change.resource.as_str()) {
            self.changed.push(change.key());
        }
    }

    /// Writes down what became of them. Whoever is faster wins; the change then brings it here again.
    pub async fn judge(&mut self, catalogs: &Catalogs, store: &Store, now: Millis) {
        for key in std::mem::take(&mut self.changed) {
            let Some(write) = judge(&key, catalogs, store, now) else { continue };
            if let Err(error) = store.commit(Batch::of(write)).await {
                tracing::debug!(%key, %error, "a condition could not be committed");
            }
        }
    }
}

fn judge(key: &Key, catalogs: &Catalogs, store: &Store, now: Millis) -> Option<Write> {
    let (namespace, name) = key.path.split_once('/')?;
    let catalog = catalogs.of(namespace)?;
    let at = now.to_timestamp();
    if key.resource.as_str() == ADDONS {
        let condition = catalog.judge_addon(name, at)?;
        write(key, store, |addon: &mut Addon| set_condition(&mut addon.status.conditions, condition))
    } else {
        let condition: Condition = catalog.judge_extension(name, at)?;
        write(key, store, |extension: &mut Extension| {
            set_condition(&mut extension.status.conditions, condition)
        })
    }
}

fn write<S: Resource>(key: &Key, store: &Store, change: impl FnOnce(&mut Object<S>) -> bool) -> Option<Write>
where
    Object<S>: DeserializeOwned + Serialize,
{
    let stored = store.get(key)?;
    let mut object: Object<S> = Object::<S>::from_json(stored.json()).ok()?;
    if !change(&mut object) {
        return None;
    }
    put(key.clone(), Precondition::At(stored.revision), &mut object)
}
