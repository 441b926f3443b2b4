//! Tasks that a cycle changes: each read once, changed any number of times, written once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use muster_ports::runtime::{Handle, Launch};
use muster_ports::store::{Draft, Key, Precondition, ResourceName, Revision, Store, Write};
use muster_tasks::view::state_of;
use muster_types::{JsonText, State, Task};

use crate::files::Order;

/// What is to be done once a change is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start an attempt.
    Start(Box<Launch>),
    /// Hand an attempt over that waits for a slot.
    Prefetch(Box<Launch>),
    /// Nothing: an attempt that waited for a slot has begun, which is counted.
    Begun,
    /// End an attempt.
    Stop(Handle, Duration),
    /// Do something with files.
    Files(Order),
    /// Keep what an ended attempt left for some seconds.
    Keep(Handle, i64),
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
    /// Its place among what is done: attempts start in the order they were chosen.
    pub turn: usize,
    /// Its state before.
    pub was: State,
    /// Path of the task whose change happens only together with this one.
    pub with: Option<Arc<str>>,
    before: Revision,
    becomes: Becomes,
}

/// What becomes of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Becomes {
    Unchanged,
    Written,
    Deleted,
}

/// Tasks with an attempt, as they were last written: their next change need not read them.
pub type Held = HashMap<Arc<str>, (Revision, Task)>;

/// All tasks being changed, by path.
#[derive(Debug)]
pub struct Edits {
    store: Store,
    resource: ResourceName,
    held: Held,
    by_path: BTreeMap<Arc<str>, Edit>,
}

/// True if a task may have to wait until others have ended.
pub fn is_bound(task: &Task) -> bool {
    task.spec.subject.is_some() || task.spec.policy.isolated
}

impl Edits {
    /// No changes yet.
    pub fn new(store: Store, resource: ResourceName, held: Held) -> Self {
        Self { store, resource, held, by_path: BTreeMap::new() }
    }

    /// The task at a path, to be changed; `None` if it is gone or cannot be read.
    pub fn edit(&mut self, path: &Arc<str>) -> Option<&mut Edit> {
        if !self.by_path.contains_key(path) {
            let key = Key { resource: self.resource.clone(), path: path.clone() };
            let held = self.held.remove(path);
            let stored = self.store.get(&key)?;
            let task = match held {
                Some((revision, task)) if revision == stored.revision => task,
                _ => match Task::from_json(stored.json()) {
                    Ok(task) => task,
                    Err(error) => {
                        tracing::error!(%key, %error, "a stored task cannot be read; it is left alone");
                        return None;
                    }
                },
            };
            let (actions, before) = (Vec::new(), stored.revision);
            let was = state_of(&task);
            let edit =
                Edit { key, was, task, actions, turn: 0, with: None, before, becomes: Becomes::Unchanged };
            self.by_path.insert(path.clone(), edit);
        }
        self.by_path.get_mut(path)
    }

    /// The changes that are to be written, those that happen together side by side, by their turn; and the tasks at hand that
    /// are not among them.
    pub fn finish(self) -> (Vec<Vec<Edit>>, Held) {
        let mut together: BTreeMap<Arc<str>, Vec<Edit>> = BTreeMap::new();
        for (path, edit) in self.by_path {
            if edit.is_changed() {
                together.entry(edit.with.clone().unwrap_or(path)).or_default().push(edit);
            }
        }
        let mut changed: Vec<_> = together.into_values().collect();
        changed.sort_by_key(|edits| edits.iter().map(|edit| edit.turn).max());
        (changed, self.held)
    }
}

impl Edit {
    /// The task was changed and is to be written.
    pub fn mark(&mut self) {
        if self.becomes == Becomes::Unchanged {
            self.becomes = Becomes::Written;
        }
    }

    /// The task is to be deleted.
    pub fn delete(&mut self) {
        self.becomes = Becomes::Deleted;
    }

    /// The revision it is changed from.
    pub fn revision(&self) -> Revision {
        self.before
    }

    /// True if there is something to write.
    pub fn is_changed(&self) -> bool {
        self.becomes != Becomes::Unchanged
    }

    /// True if the task is to be deleted.
    pub fn is_deletion(&self) -> bool {
        self.becomes == Becomes::Deleted
    }

    /// True if an attempt is made that the rules allow only because others ended: of a task about a subject, or an isolated one.
    pub fn starts_after_others(&self) -> bool {
        let starts = self.actions.iter().any(|action| matches!(action, Action::Start(_)));
        starts && is_bound(&self.task)
    }

    /// The write, which holds only if nobody changed the task meanwhile.
    pub fn write(&mut self) -> Option<Write> {
        let (key, expect) = (self.key.clone(), Precondition::At(self.before));
        if self.becomes == Becomes::Deleted {
            return Some(Write::Delete { key, expect });
        }
        self.task.metadata.resource_version.clear();
        let draft = Draft::of_object(self.task.to_json().ok()?)?;
        Some(Write::Put { key, expect, draft })
    }
}
