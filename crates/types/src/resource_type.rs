//! The ResourceType: declares a kind of managed resources, such as Cluster or NodePool.
//!
//! The name of a ResourceType is the plural of its kind, so two types can never claim the same path. Everything that
//! names a type (an adapter, a child type) names it by this plural.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::duration::Duration;
use crate::metadata::{is_default, null_is_default};
use crate::names::{Names, Scope};
use crate::object::{Object, Resource};

/// How old the oldest report of a Ready resource may be before it is pulsed, if its type does not say.
pub const READY_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// How old the oldest report of a resource that is not Ready may be before it is pulsed, if its type does not say.
pub const NOT_READY_INTERVAL: Duration = Duration::from_secs(10);

/// Declares a kind of managed resources.
pub type ResourceType = Object<ResourceTypeSpec>;

impl Resource for ResourceTypeSpec {
    type Status = ResourceTypeStatus;
    const NAMES: Names = Names {
        scope: Scope::Cluster,
        ..Names::muster("ResourceType", "resourcetypes", "resourcetype", &["mrt"])
    };
    const ABOUT: &'static str = "ResourceType declares a kind of managed resources, which is then served in the group \
        resources.muster.dev. Adapters bring its resources to what their specs say and report how they stand. The \
        name of a ResourceType is the plural of its kind.";

    object_text!();
}

/// What the kind is called, what its specs look like, and which adapters see to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceTypeSpec {
    /// What the kind is called.
    #[serde(deserialize_with = "null_is_default")]
    pub names: ResourceNames,
    /// Whether its resources live in a namespace. Default: Namespaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ResourceScope>,
    /// JSON Schema of the spec of its resources. Default: any spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Names of the adapters that must report before a resource is Available and Ready.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub adapters: Vec<String>,
    /// The type whose resources these belong to. Default: none, they stand for themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// When resources are looked at again although nothing changed.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub pulse: PulseRule,
    /// Further conditions of its resources, said by expressions. Available and Ready cannot be among them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<ConditionRule>,
    /// Columns that kubectl get shows besides name, Ready, Available and age.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub columns: Vec<PrinterColumn>,
}

impl ResourceTypeSpec {
    /// Whether its resources live in a namespace.
    pub fn scope(&self) -> ResourceScope {
        self.scope.unwrap_or(ResourceScope::Namespaced)
    }

    /// How old the oldest report may be before a resource is pulsed.
    pub fn interval(&self, ready: bool) -> Duration {
        if ready {
            self.pulse.ready.unwrap_or(READY_INTERVAL)
        } else {
            self.pulse.not_ready.unwrap_or(NOT_READY_INTERVAL)
        }
    }
}

/// What a declared kind is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceNames {
    /// CamelCase name of the kind, for example Cluster.
    #[serde(deserialize_with = "null_is_default")]
    pub kind: String,
    /// Lower-case plural, used in paths; also the name of the ResourceType.
    #[serde(deserialize_with = "null_is_default")]
    pub plural: String,
    /// Lower-case singular. Default: the kind in lower case.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub singular: String,
    /// Short names for kubectl.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub short_names: Vec<String>,
}

impl ResourceNames {
    /// The singular, given or derived.
    pub fn singular(&self) -> String {
        if self.singular.is_empty() { self.kind.to_ascii_lowercase() } else { self.singular.clone() }
    }
}

words! {
    /// Whether the resources of a type live in a namespace.
    pub enum ResourceScope {
        /// Each lives in a namespace, and is seen to by the adapters of that namespace.
        Namespaced = "Namespaced",
        /// They are global, and are seen to by the adapters of the namespace default.
        Cluster = "Cluster",
    }
}

/// The type whose resources are the parents of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Parent {
    /// The ResourceType of the parent, by its plural.
    #[serde(deserialize_with = "null_is_default")]
    pub resource_type: String,
    /// The field of the spec that names the parent, which is in the same namespace, for example cluster.
    #[serde(deserialize_with = "null_is_default")]
    pub field: String,
    /// What becomes of these when their parent is deleted. Default: Cascade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnParentDelete>,
}

words! {
    /// What becomes of resources whose parent is deleted.
    pub enum OnParentDelete {
        /// They are deleted first.
        Cascade = "Cascade",
        /// The parent cannot be deleted while there are any.
        Restrict = "Restrict",
    }
}

/// When resources are looked at again although nothing changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PulseRule {
    /// A Ready resource is pulsed when the oldest report of its required adapters is older than this. Default: 30m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<Duration>,
    /// A resource that is not Ready is pulsed when that report is older than this; longer each time an adapter keeps
    /// failing. Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<Duration>,
    /// CEL that says whether a pulse that is due by age is really made; otherwise it is asked again after the same
    /// time. New and changed resources are always pulsed. Default: true.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub when: String,
}

/// A condition said by expressions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConditionRule {
    /// The type of the condition; not Available or Ready.
    #[serde(deserialize_with = "null_is_default")]
    pub r#type: String,
    /// CEL that says whether the resource has this condition at all. Default: true.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub when: String,
    /// CEL that gives the status: true, false, or one of the words True, False and Unknown.
    #[serde(deserialize_with = "null_is_default")]
    pub status: String,
    /// CEL that gives the reason, one CamelCase word. Default: ByRule.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// CEL that gives a sentence for people. Default: none.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

/// A column of kubectl get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PrinterColumn {
    /// The heading.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// The field to show, such as .spec.region.
    #[serde(deserialize_with = "null_is_default")]
    pub path: String,
    /// One sentence about it.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub description: String,
    /// True shows it with -o wide alone. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub wide: bool,
}

/// What was observed of a type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceTypeStatus {
    /// The generation of the spec this was seen at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Aspects of the type's state, each type once.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "ResourceType",
            "metadata": {"name": "nodepools", "resourceVersion": ""},
            "spec": {
                "names": {"kind": "NodePool", "plural": "nodepools", "singular": "pool", "shortNames": ["np"]},
                "scope": "Namespaced",
                "schema": {"type": "object"},
                "adapters": ["validation"],
                "parent": {"resourceType": "clusters", "field": "cluster", "onDelete": "Restrict"},
                "pulse": {"ready": "30m", "notReady": "10s", "when": "!available"},
                "conditions": [{"type": "Small", "when": "true", "status": "true", "reason": "'A'", "message": "'b'"}],
                "columns": [{"name": "Size", "path": ".spec.size", "description": "How many.", "wide": true}],
            },
            "status": {
                "observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T01:00:00Z"}],
            },
        });
        let read: ResourceType = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), example);
    }

    #[test]
    fn what_is_not_said_is_derived() {
        let names = ResourceNames { kind: "NodePool".into(), ..ResourceNames::default() };
        assert_eq!(names.singular(), "nodepool");
        let spec = ResourceTypeSpec::default();
        assert_eq!(spec.scope(), ResourceScope::Namespaced);
        assert_eq!([spec.interval(true), spec.interval(false)].map(Duration::as_secs), [1800, 10]);
    }
}
