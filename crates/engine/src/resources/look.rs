//! One look at one resource: what was decided, as writes.

use std::cell::RefCell;
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::{Batch, Key, Stored};
use muster_resources::plan::{Call, CallState, World, plan_resource};
use muster_resources::task_render::work_namespace;
use muster_types::resource_type::OnParentDelete;
use muster_types::{JsonText, ManagedResource, Task};

use super::Resources;
use super::changes::{cancel_task, delete_child, forget_task, make_task, write_resource};
use super::entry::Place;

/// What was decided about one resource.
pub struct Looked {
    /// Which resource.
    pub place: Place,
    /// Its uid.
    pub uid: String,
    /// The resource itself is written, before anything else.
    pub changed: bool,
    /// What is to be committed, if anything is.
    pub batch: Option<Batch>,
    /// Paths of tasks that are made.
    pub tasks: Vec<Arc<str>>,
    /// Answers that were taken in.
    pub taken: Vec<(String, CallState)>,
    /// What is to be done after the commit.
    pub calls: Vec<Call>,
    /// When to look again even if nothing happens.
    pub wake_at: Option<Millis>,
    /// Its expressions were stopped because of what they cost.
    pub too_costly: bool,
    /// Steps that its expressions took.
    pub steps: u64,
}

impl Resources {
    /// Decides about one resource.
    pub(super) fn look_at(&self, place: &Place, now: Millis) -> Option<Looked> {
        let stored = self.store.get(&place.key())?;
        let resource: ManagedResource = match ManagedResource::from_json(stored.json()) {
            Ok(resource) => resource,
            Err(error) => {
                tracing::error!(%place, %error, "a stored resource cannot be read; it is left alone");
                return None;
            }
        };
        let rules = self.types.get(&place.plural)?;
        let namespace = work_namespace(&resource).to_owned();
        let adapters = self.adapters.of(&namespace, &place.plural);
        let uid = resource.metadata.uid.clone();
        let task_key = |name: &str| Key::new(&self.names.tasks, &namespace, name);
        let task = |name: &str| {
            let stored = self.store.get(&task_key(name))?;
            Task::from_json(stored.json()).ok()
        };
        let taken = RefCell::new(Vec::new());
        let call = |adapter: &str| {
            let state = self.calls.get(&uid).and_then(|calls| calls.get(adapter)).cloned();
            let state = state.unwrap_or(CallState::Unknown);
            if matches!(state, CallState::Answered { .. }) {
                taken.borrow_mut().push((adapter.to_owned(), state.clone()));
            }
            state
        };
        let children = self.children.get(&uid).map_or(0, std::collections::BTreeSet::len);
        let world = World { now, env: &self.env, task: &task, call: &call, children };
        let plan = plan_resource(rules, &adapters, &resource, &world);
        let mut writes = Vec::new();
        if plan.changed {
            writes.extend(write_resource(place.key(), &stored, plan.resource, plan.release));
        }
        let mut tasks = Vec::new();
        for task in plan.tasks {
            let key = task_key(&task.metadata.name);
            tasks.push(key.path.clone());
            writes.extend(make_task(key, task, &uid, now));
        }
        for name in &plan.cancel {
            writes.extend(cancel_task(&self.store, &task_key(name), now));
        }
        for name in &plan.forget {
            writes.extend(forget_task(&self.store, &task_key(name), &uid, now));
        }
        if resource.is_deleting() {
            writes.extend(self.delete_children(&uid, now));
        }
        let batch = (!writes.is_empty()).then_some(Batch { writes, ..Batch::default() });
        let taken = taken.into_inner();
        Some(Looked {
            place: place.clone(),
            uid,
            changed: plan.changed,
            batch,
            tasks,
            taken,
            calls: plan.calls,
            wake_at: plan.wake_at,
            too_costly: plan.too_costly,
            steps: plan.steps,
        })
    }

    /// Asks what belongs to a deleted resource to go, too.
    fn delete_children(&self, uid: &str, now: Millis) -> Vec<muster_ports::store::Write> {
        let children = self.children.get(uid).into_iter().flatten();
        let cascades = |child: &&Place| {
            let parent = self.types.get(&child.plural).and_then(|rules| rules.spec().parent.clone());
            parent.is_none_or(|parent| parent.on_delete != Some(OnParentDelete::Restrict))
        };
        let stored = |child: &Place| -> Option<(Key, Stored)> {
            let key = child.key();
            self.store.get(&key).map(|stored| (key, stored))
        };
        let children = children.filter(cascades).filter_map(stored);
        children.filter_map(|(key, stored)| delete_child(key, &stored, now)).collect()
    }
}
