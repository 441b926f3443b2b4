//! Which containers a task has, so that a log can be asked for by name or without one.
//!
//! Those whose logs are attached, then those that an attempt would have by what is stored now: the task's own, or the
//! addon's and its extensions'. The leading one stands first.

use muster_ports::store::{Key, ResourceName, Store};
use muster_tasks::render::ADDON_CONTAINER;
use muster_types::container::Container;
use muster_types::task_status::RecordKind;
use muster_types::{Addon, JsonText, Task};

/// Names of the containers of a task, the leading one first; none if it is not known yet what will run. `suffix` is what the
/// names of logs end in.
pub fn containers_of(store: &Store, task: &Task, suffix: &str) -> Vec<String> {
    let attached = task.status.attached.iter().filter_map(|file| file.name.strip_suffix(suffix));
    let mut names: Vec<String> = Vec::new();
    for name in attached.map(str::to_owned).chain(planned(store, task)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn planned(store: &Store, task: &Task) -> Vec<String> {
    let spec = &task.spec;
    let mut own: Vec<&Container> = spec.container.iter().chain(&spec.containers).collect();
    // Stable, so the others keep their order.
    own.sort_by_key(|container| !container.leading);
    let mut names: Vec<String> = own.into_iter().map(name_of).collect();
    if names.is_empty() {
        let selected = || last_record(task, RecordKind::AddonSelected);
        let addon = Some(spec.addon.as_str()).filter(|addon| !addon.is_empty()).or_else(selected);
        let Some(addon) = addon else { return Vec::new() };
        let stored =
            store.get(&Key::new(&ResourceName::new("addons.muster.dev"), &task.metadata.namespace, addon));
        let addon = stored.and_then(|stored| Addon::from_json(stored.json()).ok());
        names.push(addon.map_or_else(|| ADDON_CONTAINER.to_owned(), |addon| name_of(&addon.spec.container)));
    }
    let asked = spec.extensions.iter().flatten().map(String::as_str);
    let chosen = task.status.events.iter().filter(|record| record.kind == RecordKind::ExtensionSelected);
    names.extend(asked.chain(chosen.map(|record| record.reason.as_str())).map(str::to_owned));
    names
}

fn name_of(container: &Container) -> String {
    if container.name.is_empty() { ADDON_CONTAINER.to_owned() } else { container.name.clone() }
}

fn last_record(task: &Task, kind: RecordKind) -> Option<&str> {
    let found = task.status.events.iter().rev().find(|record| record.kind == kind);
    found.map(|record| record.reason.as_str())
}
