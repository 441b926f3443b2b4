//! Rules on metadata that hold for every kind.

use muster_types::metadata::Metadata;
use muster_types::name_rules;

use crate::refusal::Causes;

/// Most finalizers, owners and labels an object may carry.
const MAX_ENTRIES: usize = 1000;

/// Says what is wrong with the metadata of an object that is about to be stored.
pub fn validate(metadata: &Metadata, causes: &mut Causes) {
    let mut check = |field: &str, value: &str, outcome: Result<(), String>| {
        if let Err(why) = outcome {
            causes.invalid(field, value, why);
        }
    };
    check("metadata.name", &metadata.name, name_rules::dns1123_subdomain(&metadata.name));
    if !metadata.namespace.is_empty() {
        check("metadata.namespace", &metadata.namespace, name_rules::dns1123_label(&metadata.namespace));
    }
    if !metadata.generate_name.is_empty() {
        check(
            "metadata.generateName",
            &metadata.generate_name,
            name_rules::generate_name(&metadata.generate_name),
        );
    }
    for (key, value) in &metadata.labels {
        check("metadata.labels", key, name_rules::qualified_name(key));
        check("metadata.labels", value, name_rules::label_value(value));
    }
    for key in metadata.annotations.keys() {
        check("metadata.annotations", key, name_rules::annotation_key(key));
    }
    check("metadata.annotations", "", name_rules::annotations_size(&metadata.annotations));
    for finalizer in &metadata.finalizers {
        check("metadata.finalizers", finalizer, name_rules::finalizer_name(finalizer));
    }
    validate_owners(metadata, causes);
    for (field, count) in [
        ("metadata.labels", metadata.labels.len()),
        ("metadata.finalizers", metadata.finalizers.len()),
        ("metadata.ownerReferences", metadata.owner_references.len()),
    ] {
        if count > MAX_ENTRIES {
            causes.invalid(field, count, format!("must have at most {MAX_ENTRIES} entries"));
        }
    }
}

fn validate_owners(metadata: &Metadata, causes: &mut Causes) {
    for (index, owner) in metadata.owner_references.iter().enumerate() {
        let at = |field: &str| format!("metadata.ownerReferences[{index}].{field}");
        for (field, value) in [
            ("apiVersion", &owner.api_version),
            ("kind", &owner.kind),
            ("name", &owner.name),
            ("uid", &owner.uid),
        ] {
            if value.is_empty() {
                causes.required(at(field), "must not be empty");
            }
        }
        if owner.uid == metadata.uid && !owner.uid.is_empty() {
            causes.invalid(at("uid"), &owner.uid, "an object cannot own itself");
        }
    }
    let controllers = metadata.owner_references.iter().filter(|owner| owner.controller == Some(true)).count();
    if controllers > 1 {
        causes.invalid(
            "metadata.ownerReferences",
            controllers,
            "only one reference can have controller set to true",
        );
    }
}

/// Says which fields of the metadata a change may not touch, and puts back those that only the server sets.
pub fn keep_fixed(old: &Metadata, new: &mut Metadata, causes: &mut Causes) {
    if new.uid.is_empty() {
        new.uid.clone_from(&old.uid);
    } else if new.uid != old.uid {
        causes.invalid("metadata.uid", &new.uid, "field is immutable");
    }
    if old.deletion_timestamp.is_some() {
        let added = new.finalizers.iter().find(|&finalizer| !old.finalizers.contains(finalizer));
        if let Some(added) = added {
            let why =
                format!("no new finalizers can be added if the object is being deleted, found \"{added}\"");
            causes.forbidden("metadata.finalizers", why);
        }
    }
    new.generate_name.clone_from(&old.generate_name);
    new.creation_timestamp = old.creation_timestamp;
    new.deletion_timestamp = old.deletion_timestamp;
    new.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
}
