//! The TaskGroup: Tasks made together, and how they stand.
//!
//! What a group may ask for is written down once, in [`group_spec`], and is the spec of a TaskGroup and of each group of
//! a Job alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::metadata::{is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};
use crate::task::TaskSpec;
use crate::task_template::EmbeddedMetadata;
use crate::timestamp::Timestamp;
use crate::work_state::{Counts, WorkState};

/// Tasks made together.
pub type TaskGroup = Object<TaskGroupSpec>;

/// The most tasks a group can have.
pub const MOST_MEMBERS: u32 = 100_000;

impl Resource for TaskGroupSpec {
    type Status = TaskGroupStatus;
    const NAMES: Names = Names::muster("TaskGroup", "taskgroups", "taskgroup", &["mtg"]);
    const ABOUT: &'static str = "TaskGroup is several Tasks made together: all at once (batch), one after the other \
        (pipeline), or as many copies (replicas).";

    object_text!();
}

words! {
    /// How the tasks of a group follow each other.
    pub enum GroupMode {
        /// All at once.
        Batch = "batch",
        /// Each when the one before it has succeeded.
        Pipeline = "pipeline",
        /// So many copies of each.
        Replicas = "replicas",
    }
}

/// Declares a type with some fields of its own and all that a group may ask for.
macro_rules! group_spec {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$field_about:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $type,)*
            /// How the tasks follow each other. Default: replicas if count is set, else batch.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub mode: Option<$crate::task_group::GroupMode>,
            /// How many copies there are of each task, numbered from 0; a copy finds its number in MUSTER_INDEX.
            /// Default: 1.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub count: Option<u32>,
            /// How many tasks may be submitted at once; the others wait as Created. Default: no limit.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub parallelism: Option<u32>,
            /// The tasks, in their order.
            #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::metadata::null_is_default")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub tasks: Vec<$crate::task_group::GroupTask>,
            /// TaskKind of tasks that name none.
            #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "crate::metadata::null_is_default")]
            pub kind: String,
            /// Addon of tasks that name none and have no container of their own.
            #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "crate::metadata::null_is_default")]
            pub addon: String,
            /// Extensions of tasks that name none.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub extensions: Option<Vec<String>>,
            /// Priority of tasks that have none; 0 is the lowest.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 0))]
            pub priority: Option<i32>,
            /// Policy of tasks that have none.
            #[serde(
                skip_serializing_if = "crate::metadata::is_default",
                deserialize_with = "crate::metadata::null_is_default"
            )]
            pub policy: $crate::task::Policy,
            /// Any document, merged under the data of each task.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub data: Option<serde_json::Value>,
            /// Labels a robot must have to be given tasks that do not say so themselves, label by label.
            #[serde(
                skip_serializing_if = "crate::metadata::StringMap::is_empty",
                deserialize_with = "crate::metadata::null_is_default"
            )]
            pub robot_selector: $crate::metadata::StringMap,
            /// What must hold of a robot to be given tasks that have no constraints themselves.
            #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::metadata::null_is_default")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub constraints: Vec<$crate::placement::Constraint>,
            /// Affinity of tasks that have none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub affinity: Option<$crate::placement::Affinity>,
            /// Restart policy of tasks that have none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub restart: Option<$crate::recovery::Restart>,
            /// Reschedule policy of tasks that have none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub reschedule: Option<$crate::recovery::Reschedule>,
            /// Disconnect policy of tasks that have none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub disconnect: Option<$crate::recovery::Disconnect>,
            /// True if nothing more is to be submitted; what was submitted goes on. Default: false.
            #[serde(
                skip_serializing_if = "crate::metadata::is_default",
                deserialize_with = "crate::metadata::null_is_default"
            )]
            pub suspend: bool,
            /// True asks for all tasks that have not ended to be Canceled. Default: false.
            #[serde(
                skip_serializing_if = "crate::metadata::is_default",
                deserialize_with = "crate::metadata::null_is_default"
            )]
            pub cancel: bool,
        }
    };
}

group_spec! {
    /// The tasks of the group and what they have in common.
    pub struct TaskGroupSpec {}
}

impl TaskGroupSpec {
    /// How the tasks follow each other.
    pub fn mode(&self) -> GroupMode {
        let default = if self.count.is_some() { GroupMode::Replicas } else { GroupMode::Batch };
        self.mode.unwrap_or(default)
    }

    /// How many tasks there are in all.
    pub fn total(&self) -> u32 {
        let tasks = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        let copies = self.count.filter(|_| self.mode() == GroupMode::Replicas).unwrap_or(1);
        tasks.saturating_mul(copies)
    }

    /// The name of a task within the group.
    pub fn task_name(&self, place: usize) -> String {
        let name = self.tasks.get(place).map_or("", |task| &task.name);
        if name.is_empty() { format!("t{place}") } else { name.to_owned() }
    }
}

/// A task of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupTask {
    /// Its name within the group, part of the name it is made with. Default: t and its place, counted from 0.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub name: String,
    /// Labels and annotations the task gets.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub metadata: EmbeddedMetadata,
    /// What the task does.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub spec: TaskSpec,
}

/// How the group stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskGroupStatus {
    /// Where the group is in its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<WorkState>,
    /// How many of its tasks are in each state; those that were deleted count as they ended.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub counts: Counts,
    /// How many tasks it has when all are made.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub total: u32,
    /// How many of its tasks were made. They are made in their order, each once.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub made: u32,
    /// How the tasks that are no longer there had ended.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub gone: Counts,
    /// When the first of its tasks was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Timestamp>,
    /// When its files and those of its tasks were let go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Timestamp>,
    /// How it stands, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
    /// Complete when it has succeeded, Failed when it ended otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl TaskGroupStatus {
    /// The state, which is Created until one was reported.
    pub fn current_state(&self) -> WorkState {
        self.state.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "TaskGroup",
            "metadata": {"name": "a", "resourceVersion": ""},
            "spec": {
                "mode": "replicas", "count": 3, "parallelism": 2,
                "tasks": [{"name": "one", "metadata": {"labels": {"a": "b"}}, "spec": {"container": {"command": ["true"]}}}],
                "kind": "k", "addon": "a", "extensions": ["e"], "priority": 4, "policy": {"isolated": true},
                "data": {"a": 1}, "robotSelector": {"zone": "a"},
                "constraints": [{"attribute": "label.arm", "value": "left"}], "affinity": {"apart": ["a"]},
                "restart": {"attempts": 1}, "reschedule": {"unlimited": true}, "disconnect": {"lostAfter": "1m"},
                "suspend": true, "cancel": true,
            },
            "status": {
                "state": "Running", "counts": {"running": 1, "succeeded": 2}, "total": 3, "made": 3, "gone": {"succeeded": 1},
                "started": "2026-11-15T14:00:00Z", "terminated": "2026-11-15T14:01:00Z", "released": "2026-11-15T14:02:00Z", "message": "m",
                "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
            },
        });
        let group: TaskGroup = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&group).unwrap(), example);
    }

    #[test]
    fn the_mode_follows_from_the_count() {
        let read = |spec| serde_json::from_value::<TaskGroupSpec>(spec).unwrap();
        assert_eq!(read(json!({})).mode(), GroupMode::Batch);
        assert_eq!(read(json!({"count": 2})).mode(), GroupMode::Replicas);
        assert_eq!(read(json!({"count": 1, "mode": "pipeline"})).mode(), GroupMode::Pipeline);
        assert_eq!(read(json!({"count": 5, "tasks": [{}, {}]})).total(), 10);
        assert_eq!(read(json!({"count": u32::MAX, "tasks": [{}, {}]})).total(), u32::MAX);
    }

    #[test]
    fn a_task_without_a_name_is_called_after_its_place() {
        let spec: TaskGroupSpec = serde_json::from_value(json!({"tasks": [{"name": "a"}, {}]})).unwrap();
        assert_eq!([spec.task_name(0), spec.task_name(1)], ["a", "t1"]);
    }
}
