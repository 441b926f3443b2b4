//! Which fields of an object the token of an attempt may change. [`crate::access`] decides which objects; its addon was granted the
//! tags of its subject, so nothing but those may differ.

use serde_json::Value;

use crate::access::{Bound, User};
use crate::kind::AnyObject;
use crate::refusal::Refusal;

/// What the server itself changes with every write.
const BOOKKEEPING: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

/// Refuses a change by an attempt of more than it was granted; others change what they like.
pub fn check_change(user: &User, old: &dyn AnyObject, new: &dyn AnyObject) -> Result<(), Refusal> {
    if !matches!(user.bound, Some(Bound::Attempt(_))) {
        return Ok(());
    }
    if without_tags(old)? == without_tags(new)? {
        return Ok(());
    }
    Err(Refusal::forbidden(format!(
        "user \"{}\" with role {} may change spec.tags of its subject and no other field",
        user.name, user.role
    )))
}

/// Refuses to an attempt to make what it was granted to change.
pub fn check_create(user: &User, name: &str) -> Result<(), Refusal> {
    if !matches!(user.bound, Some(Bound::Attempt(_))) {
        return Ok(());
    }
    Err(Refusal::forbidden(format!(
        "user \"{}\" with role {} may change the tags of its subject; \"{name}\" does not exist and is not created",
        user.name, user.role
    )))
}

/// An object without what may change.
fn without_tags(object: &dyn AnyObject) -> Result<Value, Refusal> {
    let internal = |error: serde_json::Error| Refusal::internal(error.to_string());
    let mut document: Value =
        serde_json::from_slice(&object.encode().map_err(internal)?).map_err(internal)?;
    if let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("tags");
    }
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !BOOKKEEPING.contains(&field.as_str()));
    }
    // A spec without anything else may be left out.
    if let Some(fields) = document.as_object_mut()
        && fields.get("spec").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty)
    {
        fields.remove("spec");
    }
    Ok(document)
}
