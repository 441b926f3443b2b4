//! Committed changes, taken in: what is remembered is as the store is.

use std::sync::Arc;

use muster_ports::store::{Change, Stored, Watch, WatchError};
use muster_types::State;
use muster_types::managed_resource::EVALUATED;
use muster_types::metadata::StringMap;
use serde::Deserialize;

use super::Resources;
use super::entry::{Place, resource_name};
use crate::intake::Intake;

/// What of a stored resource must be known before it is looked at.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
    #[serde(default)]
    status: HeadStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    labels: StringMap,
    #[serde(default)]
    owner_references: Vec<Owner>,
    #[serde(default)]
    deletion_timestamp: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct HeadStatus {
    adapters: Vec<HeadStanding>,
    conditions: Vec<HeadCondition>,
}

#[derive(Deserialize)]
struct HeadCondition {
    r#type: String,
}

#[derive(Deserialize)]
struct HeadStanding {
    work: Option<HeadWork>,
}

#[derive(Deserialize)]
struct HeadWork {
    #[serde(default)]
    task: String,
    #[serde(default)]
    ended: Option<serde::de::IgnoredAny>,
}

/// What of a stored task matters here.
#[derive(Deserialize)]
struct TaskHead {
    #[serde(default)]
    status: TaskHeadStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TaskHeadStatus {
    state: Option<State>,
}

impl Intake for Resources {
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn observe(&mut self, change: &Change) {
        let object = &change.object;
        if change.resource == self.names.tasks {
            self.observe_task(object, change.deleted);
        } else if change.resource == self.names.types {
            let plural: Arc<str> = object.name().into();
            if change.deleted {
                self.types.forget(&plural);
            } else {
                self.types.observe(object);
            }
            self.read_type(&plural);
            self.mark_all(&plural, None);
        } else if change.resource == self.names.adapters {
            let types =
                if change.deleted { self.adapters.forget(object) } else { self.adapters.observe(object) };
            for plural in types {
                self.mark_all(&plural, Some(object.namespace()));
            }
        } else if let Some(plural) = self.types.plural_of(change.resource.as_str()) {
            if change.deleted {
                self.forget(&Place { plural, path: object.path.clone() });
            } else {
                self.observe_resource(&plural, object);
            }
        }
    }

    fn start_over(&mut self) -> Result<(), WatchError> {
        let calls = std::mem::take(&mut self.calls);
        *self =
            Self::new(self.store.clone(), self.clock.clone(), self.outbound.clone(), self.settings.clone())?;
        self.calls = calls;
        Ok(())
    }
}

impl Resources {
    /// Takes in everything that is stored: types and adapters first.
    pub(super) fn read_all(&mut self) {
        for stored in self.store.snapshot(&self.names.types).range(None, None) {
            self.types.observe(stored);
        }
        for stored in self.store.snapshot(&self.names.adapters).range(None, None) {
            self.adapters.observe(stored);
        }
        for plural in self.types.plurals() {
            self.read_type(&plural);
        }
    }

    fn read_type(&mut self, plural: &Arc<str>) {
        let snapshot = self.store.snapshot(&resource_name(plural));
        for stored in snapshot.range(None, None) {
            self.observe_resource(plural, stored);
        }
    }

    /// Asks for a look at all resources of a type that the adapters of a namespace see to.
    fn mark_all(&mut self, plural: &str, namespace: Option<&str>) {
        let snapshot = self.store.snapshot(&resource_name(plural));
        let global = namespace == Some(muster_resources::task_render::DEFAULT_NAMESPACE);
        let meant = |stored: &&Stored| {
            namespace.is_none_or(|namespace| stored.namespace() == namespace)
                || (global && stored.namespace().is_empty())
        };
        let plural: Arc<str> = plural.into();
        for stored in snapshot.range(None, None).filter(meant) {
            let place = Place { plural: plural.clone(), path: stored.path.clone() };
            if let Some(entry) = self.entries.get_mut(&place) {
                entry.aside_until = None;
            }
            self.mark(&place);
        }
    }

    fn observe_task(&mut self, stored: &Stored, deleted: bool) {
        let Some(place) = self.by_task.get(&stored.path).cloned() else { return };
        let is_terminal = || {
            let head = serde_json::from_slice::<TaskHead>(stored.json()).ok();
            head.and_then(|head| head.status.state).is_some_and(State::is_terminal)
        };
        if deleted {
            self.by_task.remove(&stored.path);
        }
        if deleted || is_terminal() {
            self.mark(&place);
        }
    }

    fn observe_resource(&mut self, plural: &Arc<str>, stored: &Stored) {
        let place = Place { plural: plural.clone(), path: stored.path.clone() };
        if self.entries.get(&place).is_some_and(|entry| entry.seen >= stored.revision) {
            return;
        }
        let Ok(head) = serde_json::from_slice::<Head>(stored.json()) else {
            tracing::error!(%place, "a stored resource cannot be read; it is left alone");
            return;
        };
        let Head { metadata, status } = head;
        if self.entries.get(&place).is_some_and(|entry| entry.uid != metadata.uid) {
            self.forget(&place);
        }
        if !self.settings.selector.matches(&metadata.labels) {
            self.forget(&place);
            return;
        }
        let namespace = if stored.namespace().is_empty() { "default" } else { stored.namespace() };
        for work in status.adapters.iter().filter_map(|standing| standing.work.as_ref()) {
            if !work.task.is_empty() && work.ended.is_none() {
                self.by_task.insert(format!("{namespace}/{}", work.task).into(), place.clone());
            }
        }
        let owners: Vec<_> = metadata.owner_references.into_iter().map(|owner| owner.uid).collect();
        for owner in &owners {
            self.children.entry(owner.clone()).or_default().insert(place.clone());
        }
        self.by_uid.insert(metadata.uid.clone(), place.clone());
        let entry = self.entries.entry(place.clone()).or_default();
        entry.uid = metadata.uid;
        entry.owners = owners;
        entry.seen = stored.revision;
        if status.conditions.iter().any(|condition| condition.r#type == EVALUATED) && entry.too_costly == 0 {
            // A former process found that.
            entry.note_cost(true, self.clock.now());
        }
        if metadata.deletion_timestamp.is_some() {
            (entry.deleting, entry.aside_until) = (true, None);
        }
        self.mark(&place);
    }

    fn forget(&mut self, place: &Place) {
        let Some(entry) = self.entries.remove(place) else { return };
        self.by_uid.remove(&entry.uid);
        self.calls.remove(&entry.uid);
        if let Some(due) = entry.due {
            self.due.remove(&(due, place.clone()));
        }
        for owner in entry.owners {
            if let Some(children) = self.children.get_mut(&owner) {
                children.remove(place);
                if children.is_empty() {
                    self.children.remove(&owner);
                }
            }
            // A deletion may have waited for it.
            if let Some(parent) = self.by_uid.get(&owner).cloned() {
                self.mark(&parent);
            }
        }
    }
}
