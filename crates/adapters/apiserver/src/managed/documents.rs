//! What clients are told of a declared kind.

use std::sync::LazyLock;

use muster_merge::Schema;
use muster_types::managed_resource::ManagedStatus;
use muster_types::metadata::Metadata;
use muster_types::schema::structural_schema;
use serde_json::{Value, json};

/// What every declared kind has: metadata and status.
static COMMON: LazyLock<(Value, Value)> =
    LazyLock::new(|| (structural_schema::<Metadata>(), structural_schema::<ManagedStatus>()));

/// The schema of whole objects whose spec has this schema.
pub fn openapi(kind: &str, spec: &Value) -> Value {
    let (metadata, status) = &*COMMON;
    let mut spec = spec.clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.entry("description").or_insert_with(|| json!("What is asked for."));
    }
    let about = format!(
        "{kind} is a managed resource: adapters bring it to what its spec says and report how it stands."
    );
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "apiVersion": { "type": "string", "description": "Version of the schema of this object." },
            "kind": { "type": "string", "description": "The kind this object is of." },
            "metadata": metadata,
            "spec": spec,
            "status": status,
        },
    })
}

/// The same schema as merging sees it.
pub fn merge_schema(openapi: &Value) -> Result<Schema, String> {
    Schema::from_json(openapi).map_err(|error| error.to_string())
}
