//! What tasks are made of besides themselves: kinds, addons, extensions and subjects, as committed.

use std::collections::{BTreeMap, BTreeSet};

use muster_ports::store::Change;
use muster_tasks::kinds::KindGraph;
use muster_tasks::select::{Catalog, SelectError, Selection};
use muster_types::application::Tag;
use muster_types::task_kind::Require;
use muster_types::{Addon, Application, Extension, JsonText, Task, TaskKind};

/// The catalogs of all namespaces.
#[derive(Debug, Default)]
pub struct Catalogs {
    spaces: BTreeMap<String, Space>,
    /// The kinds changed since somebody asked.
    kinds_changed: bool,
}

#[derive(Debug, Default)]
struct Space {
    catalog: Catalog,
    kinds: BTreeMap<String, TaskKind>,
    applications: BTreeMap<String, Vec<Tag>>,
}

impl Catalogs {
    /// Takes in a change of an object that tasks are made of. An object that cannot be read is left out, and the tasks that
    /// need it say so.
    pub fn observe(&mut self, change: &Change) {
        let json = change.object.json();
        let namespace = change.object.namespace().to_owned();
        let name = change.object.name().to_owned();
        let gone = change.deleted;
        let resource = change.resource.as_str();
        let space = self.spaces.entry(namespace).or_default();
        match resource {
            "addons.muster.dev" => match read::<Addon>(json, gone) {
                Some(addon) => space.catalog.put_addon(addon),
                None => space.catalog.remove_addon(&name),
            },
            "extensions.muster.dev" => match read::<Extension>(json, gone) {
                Some(extension) => space.catalog.put_extension(extension),
                None => space.catalog.remove_extension(&name),
            },
            "taskkinds.muster.dev" => {
                self.kinds_changed = true;
                match read::<TaskKind>(json, gone) {
                    Some(kind) => drop(space.kinds.insert(name, kind)),
                    None => drop(space.kinds.remove(&name)),
                }
            }
            "applications.muster.dev" => match read::<Application>(json, gone) {
                Some(application) => drop(space.applications.insert(name, application.spec.tags)),
                None => drop(space.applications.remove(&name)),
            },
            _ => {}
        }
    }

    /// The catalog of a namespace.
    pub fn of(&self, namespace: &str) -> Option<&Catalog> {
        self.spaces.get(namespace).map(|space| &space.catalog)
    }

    /// What a task runs, chosen now.
    pub fn select(&self, task: &Task) -> Result<Selection<'_>, SelectError> {
        static EMPTY: std::sync::LazyLock<Space> = std::sync::LazyLock::new(Space::default);
        let space = self.spaces.get(&task.metadata.namespace).unwrap_or(&EMPTY);
        let subject = task.spec.subject.as_ref().filter(|subject| subject.kind == "Application");
        let tags =
            subject.and_then(|subject| space.applications.get(&subject.name)).map_or(&[][..], Vec::as_slice);
        space.catalog.select(&task.spec, space.kinds.get(&task.spec.kind), tags)
    }

    /// The kind of a task, if it names one that exists.
    pub fn kind(&self, task: &Task) -> Option<&TaskKind> {
        self.spaces.get(&task.metadata.namespace)?.kinds.get(&task.spec.kind)
    }

    /// The kinds of all namespaces, their priorities, and those whose dependencies must succeed, named `namespace/name`, if
    /// they changed since the last call.
    pub fn changed_kinds(&mut self) -> Option<(KindGraph, BTreeMap<String, i32>, BTreeSet<String>)> {
        if !std::mem::take(&mut self.kinds_changed) {
            return None;
        }
        let all =
            || self.spaces.iter().flat_map(|(space, it)| it.kinds.values().map(move |kind| (space, kind)));
        let graph = KindGraph::new(all().map(|(space, kind)| {
            let needs = kind.spec.dependencies.iter().map(move |need| format!("{space}/{need}"));
            (format!("{space}/{}", kind.metadata.name), needs)
        }));
        let priorities = all().filter_map(|(space, kind)| {
            Some((format!("{space}/{}", kind.metadata.name), kind.spec.priority?))
        });
        let strict = all().filter(|(_, kind)| kind.spec.require == Some(Require::Succeeded));
        let strict = strict.map(|(space, kind)| format!("{space}/{}", kind.metadata.name));
        Some((graph, priorities.collect(), strict.collect()))
    }
}

fn read<T: JsonText>(json: &[u8], gone: bool) -> Option<T> {
    if gone { None } else { T::from_json(json).ok() }
}
