//! Ownership after a write that was not an apply.
//!
//! Ownership starts with the first apply: objects nobody ever applied carry no `metadata.managedFields`,
//! which keeps them small. Once somebody owns fields, every write moves what it changed to its writer and
//! takes what it removed from everybody. A write that changes nothing leaves ownership as it is stored, to
//! the letter.

use serde_json::{Value, json};

use crate::compare::{Comparison, compare_objects};
use crate::depth::{MAX_DEPTH, MAX_DOCUMENT_DEPTH, TooDeep, check_depth};
use crate::managed_fields::{
    Entry, ManagedFields, Operation, Writer, put_managed_fields, raw_managed_fields, without_managed_fields,
};
use crate::schema::Schema;

/// How many writers may own fields by updates; the oldest beyond are merged into one.
pub const MAX_UPDATERS: usize = 10;

/// Who owns the fields of updaters that were merged into one.
pub const ANCIENT_CHANGES: &str = "ancient-changes";

/// A write that was not an apply.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The object as stored, if it exists.
    pub old: Option<&'a Value>,
    /// The object to store.
    pub new: &'a Value,
    /// Who writes.
    pub manager: &'a str,
    /// The subresource written to, or none for the object itself.
    pub subresource: Option<&'a str>,
    /// How the kind merges.
    pub schema: &'a Schema,
    /// The API version of the write.
    pub api_version: &'a str,
    /// The time, as RFC 3339.
    pub now: &'a str,
}

/// The object to store, with `metadata.managedFields` as it is after the write.
pub fn track_update(update: Update<'_>) -> Result<Value, TooDeep> {
    let mut object = accept(update.new)?;
    let old = update.old.map_or_else(|| Ok(json!({})), accept)?;
    let Claim::Owned { managed, stored } = claim(&update) else { return Ok(object) };

    let comparison = compare_objects(&old, &object, update.schema);
    let managed_fields = if comparison.is_empty() {
        stored.clone()
    } else {
        cap_updaters(move_ownership(&update, managed, &comparison)).to_json()
    };
    if managed_fields.as_array().is_none_or(|entries| !entries.is_empty()) {
        put_managed_fields(&mut object, managed_fields);
    }
    Ok(object)
}

fn accept(object: &Value) -> Result<Value, TooDeep> {
    check_depth(object, MAX_DOCUMENT_DEPTH)?;
    let object = without_managed_fields(object);
    check_depth(&object, MAX_DEPTH)?;
    Ok(object)
}

/// Whose the object was before the write.
enum Claim<'a> {
    /// Nobody's: it was never applied, or the writer asked to forget its owners.
    Nobody,
    /// Somebody's, as decoded and as it stands.
    Owned { managed: ManagedFields, stored: &'a Value },
}

/// Clients may correct ownership by sending it; most send back what they read, or nothing.
fn claim<'a>(update: &Update<'a>) -> Claim<'a> {
    let sent = raw_managed_fields(update.new).filter(|_| update.subresource.is_none());
    if sent.is_some_and(is_reset) {
        return Claim::Nobody;
    }
    let candidates = [
        sent.map(|sent| (update.new, sent)),
        update.old.and_then(|old| raw_managed_fields(old).map(|raw| (old, raw))),
    ];
    for (object, stored) in candidates.into_iter().flatten() {
        match ManagedFields::of(object) {
            Ok(managed) if !managed.is_empty() => return Claim::Owned { managed, stored },
            // Ownership that says nothing or cannot be read does not replace what is stored.
            _ => {}
        }
    }
    Claim::Nobody
}

/// `[]` and `[{}]` ask to forget all owners.
fn is_reset(sent: &Value) -> bool {
    *sent == json!([]) || *sent == json!([{}])
}

fn move_ownership(update: &Update<'_>, mut managed: ManagedFields, comparison: &Comparison) -> ManagedFields {
    managed.map_fields(|fields| comparison.leave(fields));
    let writer = Writer {
        manager: update.manager.to_owned(),
        operation: Operation::Update,
        api_version: update.api_version.to_owned(),
        subresource: update.subresource.map(ToOwned::to_owned),
    };
    if comparison.changed.is_empty() {
        return managed;
    }
    let known = managed.take(&writer).map(|entry| entry.fields).unwrap_or_default();
    let fields = known.union(&comparison.changed);
    managed.add(Entry { writer, time: Some(update.now.to_owned()), fields });
    managed
}

fn cap_updaters(mut managed: ManagedFields) -> ManagedFields {
    let mut by_age: Vec<_> = managed
        .entries()
        .filter(|entry| entry.writer.operation == Operation::Update)
        .map(|entry| (entry.time.clone(), entry.writer.clone()))
        .collect();
    by_age.sort_by(|(one_time, one), (other_time, other)| {
        (one_time, &one.manager).cmp(&(other_time, &other.manager))
    });
    let mut count = by_age.len();
    for (_, mut writer) in by_age.into_iter().filter(|(_, writer)| writer.manager != ANCIENT_CHANGES) {
        if count <= MAX_UPDATERS {
            break;
        }
        let Some(entry) = managed.take(&writer) else { continue };
        ANCIENT_CHANGES.clone_into(&mut writer.manager);
        writer.subresource = None;
        if managed.entry(&writer).is_some() {
            count -= 1;
        }
        managed.add(Entry { writer, ..entry });
    }
    managed
}
