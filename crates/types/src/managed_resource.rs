//! The managed resource: an object of a kind that a ResourceType declares, such as a Cluster.
//!
//! Its kind is data, so it is not an [`crate::Object`]; it looks the same in JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapter_report::AVAILABLE;
use crate::adapter_standing::AdapterStanding;
use crate::condition::{Condition, find_condition};
use crate::json_text::JsonText;
use crate::metadata::{Metadata, OwnerReference, is_default, null_is_default};
use crate::names::{RESOURCES_GROUP, VERSION};
use crate::timestamp::Timestamp;

/// The root condition that says a resource is at its latest spec and runs.
pub const READY: &str = "Ready";
/// The root condition that says somebody had a resource deleted without its adapters, and why.
pub const FORCE_DELETED: &str = "ForceDeleted";
/// The condition type that is False while the expressions about it cost too much; it is not there otherwise.
pub const EVALUATED: &str = "Evaluated";
/// Keeps a managed resource until its adapters have cleaned up.
pub const FINALIZER: &str = "resources.muster.dev/adapters";
/// The annotation that lets a deleted resource go without its adapters; its value is the reason.
pub const FORCE_DELETE: &str = "resources.muster.dev/force-delete";
/// The label of an adapter's task that names the adapter.
pub const ADAPTER_LABEL: &str = "resources.muster.dev/adapter";
/// The label of an adapter's task that names the resource.
pub const RESOURCE_LABEL: &str = "resources.muster.dev/resource";
/// The label of an adapter's task that names the type of the resource, by its plural.
pub const TYPE_LABEL: &str = "resources.muster.dev/type";
/// The label of an adapter's task that says which generation of the resource it is for.
pub const GENERATION_LABEL: &str = "resources.muster.dev/generation";

/// An object of a declared kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedResource {
    /// `resources.muster.dev/v1alpha1`.
    pub api_version: String,
    /// The kind its type declares.
    pub kind: String,
    /// Names, labels, owners and the like.
    #[serde(deserialize_with = "null_is_default")]
    pub metadata: Metadata,
    /// What the user asks for, as the type's schema allows.
    pub spec: Value,
    /// What was observed.
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "is_default")]
    pub status: ManagedStatus,
}

impl JsonText for ManagedResource {
    fn read(json: &[u8]) -> serde_json::Result<(Self, Vec<usize>)> {
        crate::strict::from_slice(json)
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        crate::json_text::write(self)
    }
}

impl ManagedResource {
    /// A new object with a name, as a client would write it.
    pub fn new(kind: &str, namespace: &str, name: &str, spec: Value) -> Self {
        Self {
            api_version: format!("{RESOURCES_GROUP}/{VERSION}"),
            kind: kind.to_owned(),
            metadata: Metadata {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                ..Metadata::default()
            },
            spec,
            status: ManagedStatus::default(),
        }
    }

    /// True if its deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The reference by which what belongs to it names it.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.metadata.name.clone(),
            uid: self.metadata.uid.clone(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }
}

/// What was observed of a managed resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedStatus {
    /// The generation of the spec this was seen at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Aspects of the resource's state, each type once: Available, Ready and those its type adds.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How each adapter stands to it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["adapter"]))]
    pub adapters: Vec<AdapterStanding>,
    /// The last time it was decided to look at the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pulse: Option<Pulse>,
}

impl ManagedStatus {
    /// How an adapter stands, if anything is known.
    pub fn standing(&self, adapter: &str) -> Option<&AdapterStanding> {
        self.adapters.iter().find(|standing| standing.adapter == adapter)
    }

    /// How an adapter stands, to be changed; adapters are kept in the order of their names.
    pub fn standing_mut(&mut self, adapter: &str) -> &mut AdapterStanding {
        let place = self.adapters.binary_search_by(|standing| standing.adapter.as_str().cmp(adapter));
        let place = place.unwrap_or_else(|place| {
            let standing = AdapterStanding { adapter: adapter.to_owned(), ..AdapterStanding::default() };
            self.adapters.insert(place, standing);
            place
        });
        &mut self.adapters[place]
    }

    /// True if the resource is at its latest spec and runs.
    pub fn is_ready(&self) -> bool {
        find_condition(&self.conditions, READY).is_some_and(Condition::is_true)
    }

    /// True if the resource runs, at some generation.
    pub fn is_available(&self) -> bool {
        find_condition(&self.conditions, AVAILABLE).is_some_and(Condition::is_true)
    }
}

/// The decision to look at a managed resource now. Adapters are woken by this change of its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pulse {
    /// Which pulse of this resource, from 1.
    pub sequence: u64,
    /// The generation it is about.
    pub generation: i64,
    /// Why.
    pub reason: PulseReason,
    /// When.
    pub time: Timestamp,
}

words! {
    /// Why a managed resource is looked at.
    pub enum PulseReason {
        /// It is new.
        Created = "Created",
        /// Its spec changed.
        Changed = "Changed",
        /// Its deletion was asked for.
        Deleted = "Deleted",
        /// The oldest report is too old.
        Stale = "Stale",
        /// An adapter was done that others may have waited for.
        Progress = "Progress",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "resources.muster.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": "x", "resourceVersion": "", "generation": 2},
            "spec": {"any": ["thing"]},
            "status": {
                "observedGeneration": 2,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T01:00:00Z"}],
                "adapters": [{"adapter": "dns"}],
                "pulse": {"sequence": 1, "generation": 2, "reason": "Created", "time": "2026-11-15T01:00:00Z"},
            },
        });
        let read: ManagedResource = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), example);
        assert!(read.status.is_ready());
        assert!(!read.status.is_available());
    }

    #[test]
    fn adapters_are_kept_in_order() {
        let mut status = ManagedStatus::default();
        for adapter in ["dns", "a", "z", "dns"] {
            status.standing_mut(adapter).failures += 1;
        }
        let names: Vec<_> = status.adapters.iter().map(|standing| standing.adapter.as_str()).collect();
        assert_eq!(names, ["a", "dns", "z"]);
        assert_eq!(status.standing("dns").map(|standing| standing.failures), Some(2));
    }

    #[test]
    fn what_belongs_to_it_names_it() {
        let mut resource = ManagedResource::new("Cluster", "n", "x", json!({}));
        resource.metadata.uid = "u".to_owned();
        let owner = resource.owner_reference();
        assert_eq!([owner.kind, owner.name, owner.uid], ["Cluster", "x", "u"]);
        assert_eq!(owner.api_version, "resources.muster.dev/v1alpha1");
    }
}
