//! The writes of whole objects, as all loops make them.

use muster_ports::clock::Millis;
use muster_ports::store::{Draft, Key, Precondition, Revision, Store, Stored, Write};
use muster_types::{JsonText, Object, Resource};

use crate::relay::awaits_new_sink;

/// The write that stores an object.
pub fn put<S: Resource>(key: Key, expect: Precondition, object: &mut Object<S>) -> Option<Write> {
    object.metadata.resource_version.clear();
    let draft = Draft::of_object(object.to_json().ok()?)?;
    Some(Write::Put { key, expect, draft })
}

/// The write that deletes a stored object, or asks those who must agree; `None` if they were asked.
pub fn delete<S: Resource>(key: Key, stored: &Stored, mut object: Object<S>, now: Millis) -> Option<Write> {
    let expect = Precondition::At(stored.revision);
    if object.metadata.finalizers.is_empty() {
        return Some(Write::Delete { key, expect });
    }
    if object.metadata.deletion_timestamp.is_some() {
        return None;
    }
    object.metadata.deletion_timestamp = Some(now.to_timestamp());
    put(key, expect, &mut object)
}

/// True if an object may not be deleted by time yet: a sink has not confirmed it, or a log of it is not stored. That is asked for.
pub fn must_stay(store: &Store, revision: Revision, uid: &str) -> bool {
    is_untold(store, revision) || store.pins().ask(uid)
}

/// True if an object changed so lately that a sink has not confirmed it yet: nothing is let go before it was told.
pub fn is_untold(store: &Store, revision: Revision) -> bool {
    store.held_after().is_some_and(|told| revision > told) || awaits_new_sink(store, revision)
}
