//! Tasks that a cycle changes: each read once, changed any number of times, written once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_ports::runtime::{Handle, Launch};
use muster_ports::store::{Draft, Key, Precondition, ResourceName, Revision, Store, Write};
use muster_types::Task;

/// What is to be done once a change is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start an attempt.
    Start(Box<Launch>),
    /// End an attempt.
    Stop(Handle, Duration),
}

/// One task being changed.
#[derive(Debug)]
pub struct Edit {
    /// Its key.
    pub key: Key,
    /// As it is to be.
    pub task: Task,
    /// What is to be done afterwards.
    pub actions: Vec<Action>,
    before: Revision,
    changed: bool,
}

/// All tasks being changed, by path.
#[derive(Debug)]
pub struct Edits {
    store: Store,
    resource: ResourceName,
    by_path: BTreeMap<Arc<str>, Edit>,
}

impl Edits {
    /// No changes yet.
    pub fn new(store: Store, resource: ResourceName) -> Self {
        Self { store, resource, by_path: BTreeMap::new() }
    }

    /// The task at a path, to be changed; `None` if it is gone or cannot be read.
    pub fn edit(&mut self, path: &Arc<str>) -> Option<&mut Edit> {
        if !self.by_path.contains_key(path) {
            let key = Key { resource: self.resource.clone(), path: path.clone() };
            let stored = self.store.get(&key)?;
            let task = match serde_json::from_slice::<Task>(stored.json()) {
                Ok(task) => task,
                Err(error) => {
                    tracing::error!(%key, %error, "a stored task cannot be read; it is left alone");
                    return None;
                }
            };
            let edit = Edit { key, task, actions: Vec::new(), before: stored.revision, changed: false };
            self.by_path.insert(path.clone(), edit);
        }
        self.by_path.get_mut(path)
    }

    /// The changes that are to be written.
    pub fn into_changed(self) -> impl Iterator<Item = Edit> {
        self.by_path.into_values().filter(|edit| edit.changed || !edit.actions.is_empty())
    }
}

impl Edit {
    /// The task was changed and is to be written.
    pub fn mark(&mut self) {
        self.changed = true;
    }

    /// True if there is something to write.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// The write, which holds only if nobody changed the task meanwhile.
    pub fn write(&mut self) -> Option<Write> {
        self.task.metadata.resource_version.clear();
        let json = serde_json::to_vec(&self.task).ok()?;
        let draft = Draft::of_object(json)?;
        Some(Write::Put { key: self.key.clone(), expect: Precondition::At(self.before), draft })
    }
}
