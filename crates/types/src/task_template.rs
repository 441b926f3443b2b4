//! The TaskTemplate: a Task written down to be made later, and the shape such a Task has inside other kinds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::{StringMap, is_default, null_is_default};
use crate::names::Names;
use crate::object::{NoStatus, Object, Resource};
use crate::task::TaskSpec;

/// A Task to be made later.
pub type TaskTemplate = Object<TaskTemplateSpec>;

impl Resource for TaskTemplateSpec {
    type Status = NoStatus;
    const NAMES: Names = Names::muster("TaskTemplate", "tasktemplates", "tasktemplate", &["mtt"]);
    const ABOUT: &'static str =
        "TaskTemplate is a Task written down to be made later; schedules point at it with templateRef.";

    object_text!();
}

/// What the tasks made from this template look like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskTemplateSpec {
    /// The task to make.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub template: EmbeddedTask,
}

/// A task as it stands inside another kind: without a name, which it gets when it is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddedTask {
    /// Labels and annotations the task gets.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub metadata: EmbeddedMetadata,
    /// What the task does.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub spec: TaskSpec,
}

/// The metadata that can be given before a task is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddedMetadata {
    /// Selectable key-value pairs.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: StringMap,
    /// Free key-value pairs.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: StringMap,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "TaskTemplate",
            "metadata": {"name": "nightly", "resourceVersion": ""},
            "spec": {"template": {
                "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                "spec": {"container": {"command": ["true"]}},
            }},
        });
        let template: TaskTemplate = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&template).unwrap(), example);
    }
}
