//! The TaskKind: a named sort of Task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metadata::null_is_default;
use crate::names::Names;
use crate::object::{NoStatus, Object, Resource};

/// A named sort of Task.
pub type TaskKind = Object<TaskKindSpec>;

impl Resource for TaskKindSpec {
    type Status = NoStatus;
    const NAMES: Names = Names::muster("TaskKind", "taskkinds", "taskkind", &["mtk"]);
    const ABOUT: &'static str = "TaskKind is a named sort of Task: it gives tasks their default priority and data, \
        and says which other kinds must be done first on the same subject.";

    object_text!();
}

/// What tasks of this kind have in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskKindSpec {
    /// Priority of tasks that have none of their own; 0 is the lowest. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub priority: Option<i32>,
    /// Names of the kinds whose tasks on the same subject must be done first. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dependencies: Vec<String>,
    /// What counts as done for the dependencies of this kind. Default: completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Require>,
    /// Any document, merged under the data of each task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Any document that describes the kind; not used by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

words! {
    /// What counts as done.
    pub enum Require {
        /// It ended, well or badly.
        Completed = "completed",
        /// It ended well; one that failed holds back its dependents.
        Succeeded = "succeeded",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "priority": 10, "dependencies": ["language-discovery"], "require": "succeeded", "data": {"a": 1}, "metadata": {"b": [2]},
        });
        let spec: TaskKindSpec = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap(), example);
    }
}
