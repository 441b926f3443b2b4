//! What a container runs: shared by tasks, addons and extensions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::{is_default, null_is_default};
use crate::quantity::Quantity;

/// A program to run, and what it runs with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Name of the container, unique within the task; logs are found by it. Default: addon for the main
    /// container, the extension's name for a sidecar.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub name: String,
    /// Image to run. Needed by pods and by the drivers docker and podman; not used by plain processes.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub image: String,
    /// Program and its first arguments. Default: what the image says; a plain process must have one.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub command: Vec<String>,
    /// Arguments that follow the command. Macros such as ${seq:8000} are replaced.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub args: Vec<String>,
    /// Environment variables, each name once.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// What the container is given of the machine. Default: no limit.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub resources: Resources,
    /// True for the container whose end is the end of the attempt; at most one has it. Default: the first.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub leading: bool,
}

/// One environment variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvVar {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable; macros such as ${seq:8000} are replaced. Default: empty.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub value: String,
}

/// Amounts of what a machine has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// Processor time in cores, for example 500m for half a core. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Quantity>,
    /// Memory in bytes, for example 256Mi; at least 4Mi. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_container_is_an_empty_object() {
        let container: Container =
            serde_json::from_value(json!({"name": null, "resources": {}, "leading": false})).unwrap();
        assert_eq!(serde_json::to_value(container).unwrap(), json!({}));
    }

    #[test]
    fn a_variable_needs_a_name_and_not_a_value() {
        let variable: EnvVar = serde_json::from_value(json!({"name": "A", "value": null})).unwrap();
        assert_eq!(variable, EnvVar { name: "A".to_owned(), value: String::new() });
        assert!(serde_json::from_value::<EnvVar>(json!({"value": "a"})).is_err());
    }
}
