//! The Extension: a sidecar of an Addon, chosen by name or by rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::container::Container;
use crate::metadata::{is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};

/// A sidecar of an Addon.
pub type Extension = Object<ExtensionSpec>;

impl Resource for ExtensionSpec {
    type Status = ExtensionStatus;
    const NAMES: Names = Names::muster("Extension", "extensions", "extension", &["mext"]);
    const ABOUT: &'static str = "Extension is a program that runs beside an Addon. A task names it, or it is \
        selected by the addon and the tags of the task's subject.";

    object_text!();
}

/// What the extension runs and which tasks select it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionSpec {
    /// Name of the Addon this extension belongs to, or a regular expression of such names. Default: none, so tasks
    /// must name the extension.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub addon: String,
    /// Rule on the tags of the subject, for example tag:Language=Java || tag:Language=Kotlin. Default: matches
    /// every subject.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub selector: String,
    /// The program to run.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub container: Container,
    /// Any document that describes the extension; not used by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// What was observed of the extension.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionStatus {
    /// Aspects of the extension's state, each type once. Only an extension that is Ready is selected.
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
            "kind": "Extension",
            "metadata": {"name": "java", "resourceVersion": "7"},
            "spec": {"addon": "^analyzer$", "selector": "tag:Language=Java", "container": {"image": "a"}, "metadata": {"b": "c"}},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
            },
        });
        let extension: Extension = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&extension).unwrap(), example);
    }
}
