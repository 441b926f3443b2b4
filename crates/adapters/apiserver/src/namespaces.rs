//! Namespaces: they need not be made, so every name that could be one is one.
//!
//! kubectl looks a namespace up to say whether it or the object in it is missing.

use muster_types::name_rules::dns1123_label;
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::target::ResourcePath;

/// True if the path names a namespace.
pub fn is_one(path: &ResourcePath) -> bool {
    path.group.is_empty()
        && path.version == "v1"
        && path.plural == "namespaces"
        && path.name.is_some()
        && path.subresource.is_none()
}

/// The namespace of this name.
pub fn show(name: &str) -> Result<Value, Refusal> {
    dns1123_label(name)
        .map_err(|why| Refusal::bad_request(format!("the namespace \"{name}\" is not valid: {why}")))?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name },
        "spec": {},
        "status": { "phase": "Active" },
    }))
}
