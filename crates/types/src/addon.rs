//! The Addon: the main container of a Task, chosen by name or by rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::container::Container;
use crate::metadata::{is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};

/// The main container of a Task.
pub type Addon = Object<AddonSpec>;

impl Resource for AddonSpec {
    type Status = AddonStatus;
    const NAMES: Names = Names::muster("Addon", "addons", "addon", &["maddon"]);
    const ABOUT: &'static str = "Addon is the program a Task runs. A task names it, or it is selected by the kind \
        of the task and the tags of its subject.";

    object_text!();
}

/// What the addon runs and which tasks select it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AddonSpec {
    /// Name of the TaskKind this addon serves, or a regular expression of such names. Default: none, so tasks must
    /// name the addon.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub task: String,
    /// Rule on the tags of the subject, for example tag:Language=Java || tag:Language=Kotlin. Default: matches
    /// every subject.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub selector: String,
    /// The program to run.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub container: Container,
    /// What its pods have besides their containers, in the words of a Kubernetes pod spec: nodeSelector, tolerations,
    /// affinity, imagePullSecrets, serviceAccountName, securityContext and the like. What a task says is merged over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Value>,
    /// What its attempts may write besides their own reports and files. Default: nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub grants: Vec<Grant>,
    /// Any document that describes the addon; not used by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

words! {
    /// Something that attempts of an addon may write.
    pub enum Grant {
        /// The tags of the Application that the task is about.
        SubjectTags = "subjectTags",
    }
}

/// What was observed of the addon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AddonStatus {
    /// Aspects of the addon's state, each type once. Only an addon that is Ready is selected.
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
            "kind": "Addon",
            "metadata": {"name": "java-analyzer", "resourceVersion": "7"},
            "spec": {
                "task": "analyzer", "selector": "tag:Language=Java", "container": {"image": "a"}, "grants": ["subjectTags"],
                "metadata": {"b": "c"},
            },
            "status": {
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
            },
        });
        let addon: Addon = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&addon).unwrap(), example);
    }
}
