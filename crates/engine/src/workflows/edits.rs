//! Changes of what is stored: members submitted or told to end, and things whose time is over. Each holds only if nobody
//! changed the object meanwhile.

use muster_ports::clock::Millis;
use muster_ports::store::{Batch, Key, Precondition, Store};
use muster_tasks::brief::has_attempt;
use muster_tasks::progress;
use muster_tasks::view::state_of;
use muster_types::task_status::Stopping;
use muster_types::{JsonText, Object, Resource, State, Task};

use crate::writes::{delete, put};

/// Submits a member; `None` if it no longer waits for that.
pub fn submit(store: &Store, key: &Key, now: Millis) -> Option<Batch> {
    edit(store, key, |task| submit_member(task, now))
}

/// Submits a member at hand; `None` if it no longer waits for that.
pub fn submit_member(task: &mut Task, now: Millis) -> Option<()> {
    if state_of(task) != State::Created {
        return None;
    }
    task.spec.suspend = false;
    task.metadata.generation += 1;
    progress::submit(task, now).ok()
}

/// Ends a member for a reason; `None` if it has ended or was told to. An attempt is ended by whoever runs it.
pub fn cancel(store: &Store, key: &Key, reason: &str, now: Millis) -> Option<Batch> {
    edit(store, key, |task| {
        if state_of(task).is_terminal() || task.spec.cancel {
            return None;
        }
        task.spec.cancel = true;
        task.metadata.generation += 1;
        if has_attempt(task) {
            return Some(());
        }
        progress::request_stop(task, Stopping::Canceled, None, now).ok()?;
        reason.clone_into(&mut task.status.message);
        if let Some(record) = task.status.events.last_mut() {
            reason.clone_into(&mut record.reason);
        }
        Some(())
    })
}

fn edit(store: &Store, key: &Key, change: impl FnOnce(&mut Task) -> Option<()>) -> Option<Batch> {
    let stored = store.get(key)?;
    let mut task: Task = Task::from_json(stored.json()).ok()?;
    change(&mut task)?;
    put(key.clone(), Precondition::At(stored.revision), &mut task).map(Batch::of)
}

/// Deletes an object, or asks those who must agree.
pub fn deletion<S: Resource>(store: &Store, key: &Key, now: Millis) -> Option<Batch> {
    let stored = store.get(key)?;
    let object: Object<S> = Object::<S>::from_json(stored.json()).ok()?;
    delete(key.clone(), &stored, object, now).map(Batch::of)
}
