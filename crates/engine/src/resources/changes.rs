//! The writes of what was decided. Each holds only if nobody changed the object meanwhile.

use muster_ports::clock::Millis;
use muster_ports::store::{Draft, Key, Precondition, Store, Stored, Write};
use muster_types::task::TaskSpec;
use muster_types::{JsonText, ManagedResource, Task};
use muster_workflows::derived_uid::derived_uid;

use crate::workflows::edits::{cancel, deletion};
use crate::writes::{must_stay, put};

/// A resource as it is to be; one that was let go and that nobody else keeps is deleted.
pub fn write_resource(key: Key, stored: &Stored, resource: ManagedResource, release: bool) -> Option<Write> {
    let expect = Precondition::At(stored.revision);
    if release && resource.metadata.finalizers.is_empty() {
        return Some(Write::Delete { key, expect });
    }
    put_resource(key, expect, resource)
}

fn put_resource(key: Key, expect: Precondition, mut resource: ManagedResource) -> Option<Write> {
    resource.metadata.resource_version.clear();
    let draft = Draft::of_object(resource.to_json().ok()?)?;
    Some(Write::Put { key, expect, draft })
}

/// A task that an adapter makes.
pub fn make_task(key: Key, mut task: Task, owner: &str, now: Millis) -> Option<Write> {
    task.metadata.uid = derived_uid(now, &format!("{owner}/{}", task.metadata.name), 0);
    task.metadata.creation_timestamp = Some(now.to_timestamp());
    put(key, Precondition::Absent, &mut task)
}

/// A task that is no longer wanted.
pub fn cancel_task(store: &Store, key: &Key, now: Millis) -> Vec<Write> {
    let batch = cancel(store, key, "the resource it is for is being deleted", now);
    batch.map(|batch| batch.writes).unwrap_or_default()
}

/// Deletes an old task of an adapter. A task with another owner stays. A task of which a sink was not told, or whose log is not stored,
/// is deleted at a later look.
pub fn forget_task(store: &Store, key: &Key, owner: &str, now: Millis) -> Vec<Write> {
    let may_go = || {
        let stored = store.get(key)?;
        let task = Task::from_json(stored.json()).ok()?;
        let is_ours = task.metadata.owner_references.iter().any(|reference| reference.uid == owner);
        Some(is_ours && !must_stay(store, stored.revision, &task.metadata.uid))
    };
    if may_go() != Some(true) {
        return Vec::new();
    }
    deletion::<TaskSpec>(store, key, now).map(|batch| batch.writes).unwrap_or_default()
}

/// The deletion of something whose parent is deleted, unless it was asked for before.
pub fn delete_child(key: Key, stored: &Stored, now: Millis) -> Option<Write> {
    let mut resource: ManagedResource = ManagedResource::from_json(stored.json()).ok()?;
    let expect = Precondition::At(stored.revision);
    if resource.metadata.finalizers.is_empty() {
        return Some(Write::Delete { key, expect });
    }
    if resource.is_deleting() {
        return None;
    }
    resource.metadata.deletion_timestamp = Some(now.to_timestamp());
    resource.metadata.deletion_grace_period_seconds = Some(0);
    resource.metadata.generation += 1;
    put_resource(key, expect, resource)
}
