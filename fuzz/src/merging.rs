//! Patches and server-side apply as functions, held against the standards and against what was promised of ownership.

use std::sync::LazyLock;

use muster_merge::{
    Apply, FieldSet, ManagedFields, PatchError, PatchKind, Schema, Update, apply, fields_of, patch,
    track_update,
};
use serde_json::{Value, json};

use crate::Target;
use crate::json_reference;

pub const MERGING: Target = Target {
    name: "merging",
    property: "a merge patch and a JSON patch give what their standards say, and no result is larger than allowed",
    run: merging,
};
pub const OWNERSHIP: Target = Target {
    name: "ownership",
    property: "applying twice is applying once, the applier owns exactly its fields, and what is written of owners reads back the same",
    run: ownership,
};

const MAX_BYTES: usize = 1 << 16;
/// Writes of one input.
const MAX_STEPS: usize = 12;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "number": {"type": "integer"},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic"},
        "plain": {"type": "array"},
        "set": {"type": "array", "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                 "items": {"type": "object", "properties": {
                     "name": {"type": "string"}, "number": {"type": "integer"},
                     "set": {"type": "array", "x-kubernetes-list-type": "set"},
                 }}},
    }}}});
    Schema::from_json(&schema).unwrap()
});

/// A list of a document and a patch.
fn merging(input: &[u8]) {
    let Ok(Value::Array(pair)) = serde_json::from_slice::<Value>(input) else { return };
    let [target, change] = &pair[..] else { return };
    if let Ok(merged) = patch(PatchKind::Merge, target, change, &SCHEMA, MAX_BYTES) {
        assert_eq!(merged, json_reference::merge_patch(target, change), "merge patch");
        assert!(merged.to_string().len() <= MAX_BYTES);
    }
    match patch(PatchKind::Json, target, change, &SCHEMA, MAX_BYTES) {
        Ok(patched) => {
            assert_eq!(Some(&patched), json_reference::json_patch(target, change).as_ref(), "JSON patch");
            assert!(patched.to_string().len() <= MAX_BYTES);
        }
        Err(PatchError::TestFailed { .. } | PatchError::OperationFailed { .. }) => {
            let wanted = json_reference::json_patch(target, change);
            assert_eq!(wanted, None, "a JSON patch is refused that can be done");
        }
        Err(_) => {}
    }
    if let Ok(merged) = patch(PatchKind::Strategic, target, change, &SCHEMA, MAX_BYTES) {
        assert!(merged.to_string().len() <= MAX_BYTES);
        assert_eq!(
            patch(PatchKind::Strategic, target, change, &SCHEMA, MAX_BYTES),
            Ok(merged),
            "the same each time"
        );
    }
}

/// A list of writes: `{"apply": config, "manager": name, "force": true}` or `{"update": object, "manager": name}`.
fn ownership(input: &[u8]) {
    let Ok(Value::Array(steps)) = serde_json::from_slice::<Value>(input) else { return };
    let mut live: Option<Value> = None;
    for step in steps.iter().take(MAX_STEPS) {
        let manager = step["manager"].as_str().unwrap_or("m");
        let written = if let Some(config) = step.get("apply") {
            apply_one(live.as_ref(), config, manager, step["force"] == true)
        } else {
            let Some(new) = step.get("update") else { continue };
            let update = Update {
                old: live.as_ref(),
                new,
                manager,
                subresource: None,
                schema: &SCHEMA,
                api_version: "v1",
                now: "T1",
            };
            track_update(update).ok().filter(|_| manager.len() <= MOST_OF_MANAGER)
        };
        live = written.or(live);
        if let Some(object) = &live {
            check_owners(object);
        }
    }
}

/// Bytes of the name of a manager.
const MOST_OF_MANAGER: usize = 128;

fn apply_one(live: Option<&Value>, config: &Value, manager: &str, force: bool) -> Option<Value> {
    // The API takes no longer names of managers, and what is stored of one is read up to 1024 bytes.
    if manager.len() > MOST_OF_MANAGER {
        return None;
    }
    let request = Apply {
        live,
        config,
        manager,
        force,
        subresource: None,
        schema: &SCHEMA,
        api_version: "v1",
        now: "T1",
    };
    let once = apply(request).ok()?;
    let twice = apply(Apply { live: Some(&once), now: "T2", ..request });
    assert_eq!(twice.as_ref(), Ok(&once), "applying twice is applying once");
    let owners = ManagedFields::of(&once).expect("what was written can be read");
    let own = owners.entries().find(|entry| {
        entry.writer.manager == manager && entry.writer.operation == muster_merge::Operation::Apply
    });
    let fields = fields_of(config, &SCHEMA).expect("it was not too deep");
    assert_eq!(
        own.map_or(&FieldSet::default(), |entry| &entry.fields),
        &fields,
        "the applier owns its fields"
    );
    Some(once)
}

/// What is written down of owners reads back the same. An object may come with anything there.
fn check_owners(object: &Value) {
    let Ok(owners) = ManagedFields::of(object) else { return };
    let written = json!({"metadata": {"managedFields": owners.to_json()}});
    let read = ManagedFields::of(&written).expect("what was written can be read");
    assert_eq!(read.to_json(), owners.to_json());
    for entry in owners.entries() {
        let fields = entry.fields.to_fields_v1();
        let read = FieldSet::from_fields_v1(&fields).expect("what was written can be read");
        assert_eq!(read, entry.fields, "{fields}");
    }
}
