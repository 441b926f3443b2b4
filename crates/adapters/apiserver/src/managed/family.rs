//! Parents and children among managed resources.
//!
//! A type may declare a field of the spec that names the parent. The server turns that into an owner reference when a
//! resource is made; from then on the reference counts, and the field does not change.

use muster_ports::store::{Check, Key, Precondition, ResourceName, Store, Stored};
use muster_types::JsonText;
use muster_types::managed_resource::ManagedResource;
use muster_types::metadata::{Metadata, OwnerReference};
use muster_types::names::RESOURCES_GROUP;
use muster_types::resource_type::{OnParentDelete, Parent, ResourceScope, ResourceType};
use serde_json::Value;

use crate::declared::types_resource;
use crate::refusal::Causes;

/// Where the resources of a type are kept.
pub fn resource_of(plural: &str) -> ResourceName {
    ResourceName::new(&format!("{plural}.{RESOURCES_GROUP}"))
}

/// The key of a type.
pub fn type_key(plural: &str) -> Key {
    Key::new(&types_resource(), "", plural)
}

/// The name of the parent that a spec gives.
fn parent_name<'a>(parent: &Parent, spec: &'a Value) -> Option<&'a str> {
    spec.get(&parent.field).and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// The type of the parent.
fn parent_type(parent: &Parent, store: &Store) -> Option<ResourceType> {
    let stored = store.get(&type_key(&parent.resource_type))?;
    ResourceType::from_json(stored.json()).ok()
}

/// The key of the parent that a spec names, whether it is there or not.
pub fn parent_key(parent: &Parent, resource: &ManagedResource, store: &Store) -> Option<Key> {
    let name = parent_name(parent, &resource.spec)?;
    let scope = parent_type(parent, store)?.spec.scope();
    let namespace =
        if scope == ResourceScope::Namespaced { resource.metadata.namespace.as_str() } else { "" };
    Some(Key::new(&resource_of(&parent.resource_type), namespace, name))
}

/// What must be there when a resource is made: its type, and its parent.
pub fn needs(plural: &str, parent: Option<Key>) -> Vec<Check> {
    let exists = |key: Key| Check { key, expect: Precondition::Exists };
    parent.into_iter().chain([type_key(plural)]).map(exists).collect()
}

/// Makes a new resource belong to its parent.
pub fn join(parent: &Parent, resource: &mut ManagedResource, store: &Store, causes: &mut Causes) {
    let field = format!("spec.{}", parent.field);
    let Some(name) = parent_name(parent, &resource.spec) else {
        return causes.required(field, format!("the name of the parent, one of {}", parent.resource_type));
    };
    let found = parent_key(parent, resource, store).and_then(|key| store.get(&key));
    let found = found.and_then(|stored| ManagedResource::from_json(stored.json()).ok());
    let name = name.to_owned();
    match found {
        None => causes.invalid(field, name, format!("there is no such one among {}", parent.resource_type)),
        Some(owner) if owner.is_deleting() => {
            causes.invalid(field, name, "it is being deleted; nothing new can belong to it");
        }
        Some(owner) => add_owner(&mut resource.metadata, owner.owner_reference()),
    }
}

/// Adds the reference to the parent, which is the one that controls.
fn add_owner(metadata: &mut Metadata, owner: OwnerReference) {
    metadata.owner_references.retain(|known| known.uid != owner.uid);
    metadata.owner_references.push(owner);
}

/// Puts back the reference to the parent if a change lost it.
pub fn keep_owner(parent: &Parent, old: &ManagedResource, new: &mut ManagedResource) {
    let Some(name) = parent_name(parent, &old.spec) else { return };
    let is_parent = |owner: &&OwnerReference| {
        owner.name == name && owner.controller == Some(true) && owner.api_version == old.api_version
    };
    let Some(owner) = old.metadata.owner_references.iter().find(is_parent) else { return };
    if !new.metadata.owner_references.iter().any(|known| known.uid == owner.uid) {
        new.metadata.owner_references.push(owner.clone());
    }
}

/// Why a resource cannot be deleted: children that hold it back, with their number.
pub fn restrained(plural: &str, resource: &ManagedResource, store: &Store) -> Option<String> {
    let types = store.snapshot(&types_resource());
    let types = types.range(None, None).filter_map(|stored| {
        let child: ResourceType = ResourceType::from_json(stored.json()).ok()?;
        let parent = child.spec.parent.as_ref()?;
        let restricts = parent.on_delete == Some(OnParentDelete::Restrict);
        (restricts && parent.resource_type == plural).then(|| child.spec.names.plural.clone())
    });
    let held: Vec<String> = types
        .filter_map(|child| {
            let count = children(&child, &resource.metadata.uid, store);
            (count > 0).then(|| format!("{count} {child}"))
        })
        .collect();
    (!held.is_empty()).then(|| format!("it still has {}; delete them first", held.join(" and ")))
}

/// How many resources of a type belong to one with this uid.
fn children(plural: &str, uid: &str, store: &Store) -> usize {
    let finder = memchr::memmem::Finder::new(uid);
    let snapshot = store.snapshot(&resource_of(plural));
    let owns = |metadata: Metadata| metadata.owner_references.iter().any(|owner| owner.uid == uid);
    let belongs =
        |stored: &&Stored| finder.find(stored.json()).is_some() && stored.metadata().is_some_and(owns);
    snapshot.range(None, None).filter(belongs).count()
}
