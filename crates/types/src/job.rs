//! The Job: a workflow of TaskGroups, and how it stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::Duration;
use crate::metadata::{StringMap, is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};
use crate::task_group::TaskGroupSpec;
use crate::timestamp::Timestamp;
use crate::work_state::{Counts, WorkState};

/// A workflow of TaskGroups.
pub type Job = Object<JobSpec>;

/// The most groups a job can have.
pub const MOST_GROUPS: usize = 2_000;

impl Resource for JobSpec {
    type Status = JobStatus;
    const NAMES: Names = Names::muster("Job", "jobs", "job", &["mjob"]);
    const ABOUT: &'static str = "Job is a workflow: groups of Tasks, each started when the groups it depends on have \
        succeeded, failed or ended.";

    object_text!();
}

/// The groups of the job and what they have in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// The groups; each becomes a TaskGroup when what it depends on has come.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub task_groups: Vec<JobGroup>,
    /// Priority of groups that have none; 0 is the lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub priority: Option<i32>,
    /// Labels a robot must have to be given tasks of this job, unless its groups or tasks say otherwise, label by label.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub robot_selector: StringMap,
    /// True if nothing more is to be submitted; what was submitted goes on. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub suspend: bool,
    /// True asks for everything that has not ended to be Canceled, and makes nothing more. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub cancel: bool,
    /// How long the job may take from its start, time in which it is suspended not counted; when it is over everything
    /// that has not ended is canceled and the job has failed. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// How long the job is kept after it ended; its groups and tasks go with it. Zero is no limit. Default: what the
    /// server says (72h) if it succeeded or was canceled; a job that failed is kept, and its files are let go after 720h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
    /// What happens to the others when a group has failed. Default: continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
}

words! {
    /// What happens to the other groups when one has failed.
    pub enum FailurePolicy {
        /// Those that wait for success are canceled or not made; clean-up and on-failure groups go on.
        Stop = "stop",
        /// Those that do not depend on it go on.
        Continue = "continue",
    }
}

words! {
    /// What a group waits for.
    pub enum When {
        /// All groups it depends on have succeeded.
        Succeeded = "succeeded",
        /// All have ended and at least one has failed.
        Failed = "failed",
        /// All have ended, in whatever way.
        Completed = "completed",
    }
}

group_spec! {
    /// A group of a job.
    pub struct JobGroup {
        /// Its name within the job; the TaskGroup is called after the job and it.
        #[serde(deserialize_with = "null_is_default")]
        pub name: String,
        /// Names of the groups that come first. Default: none, the group is made at once.
        #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
        #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
        pub depends_on: Vec<String>,
        /// How the groups it depends on must have ended; if that can no longer be, the group is skipped. Default:
        /// succeeded.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub when: Option<When>,
    }
}

impl JobGroup {
    /// How the groups it depends on must have ended.
    pub fn when(&self) -> When {
        self.when.unwrap_or(When::Succeeded)
    }

    /// What the TaskGroup asks for.
    pub fn group_spec(&self) -> TaskGroupSpec {
        let this = self.clone();
        TaskGroupSpec {
            mode: this.mode,
            count: this.count,
            parallelism: this.parallelism,
            tasks: this.tasks,
            kind: this.kind,
            addon: this.addon,
            extensions: this.extensions,
            priority: this.priority,
            policy: this.policy,
            data: this.data,
            robot_selector: this.robot_selector,
            constraints: this.constraints,
            affinity: this.affinity,
            restart: this.restart,
            reschedule: this.reschedule,
            disconnect: this.disconnect,
            suspend: this.suspend,
            cancel: this.cancel,
        }
    }
}

/// How the job stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// Where the job is in its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<WorkState>,
    /// How many of its tasks are in each state.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub counts: Counts,
    /// How many tasks it has, those of skipped groups left out.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub total: u32,
    /// How each group stands, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub groups: Vec<GroupSummary>,
    /// When its first groups were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Timestamp>,
    /// When its files and those of its tasks were let go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Timestamp>,
    /// Since when it is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_since: Option<Timestamp>,
    /// Seconds for which it was suspended before; they do not count for the deadline.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub suspended_seconds: i64,
    /// Why everything is being ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopping: Option<JobStopping>,
    /// How it stands, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
    /// Complete when it has succeeded, Failed when it ended otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl JobStatus {
    /// The state, which is Created until one was reported.
    pub fn current_state(&self) -> WorkState {
        self.state.unwrap_or_default()
    }
}

words! {
    /// Why all groups of a job are ended.
    pub enum JobStopping {
        /// The user no longer wants the job.
        Canceled = "Canceled",
        /// The job took longer than its deadline allows.
        DeadlineExceeded = "DeadlineExceeded",
    }
}

/// How a group of a job stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupSummary {
    /// Its name within the job.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Where it is in its life.
    #[serde(deserialize_with = "null_is_default")]
    pub state: WorkState,
    /// How many of its tasks are in each state.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub counts: Counts,
    /// How many tasks it has.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub total: u32,
    /// Why it was skipped, or how it stands.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "a", "resourceVersion": ""},
            "spec": {
                "taskGroups": [{
                    "name": "g", "dependsOn": ["f"], "when": "failed", "mode": "replicas", "count": 3, "parallelism": 2,
                    "tasks": [{"name": "one"}], "kind": "k", "addon": "a", "extensions": ["e"], "priority": 4,
                    "policy": {"isolated": true}, "data": {"a": 1}, "robotSelector": {"zone": "a"}, "suspend": true,
                    "cancel": true,
                }],
                "priority": 3, "robotSelector": {"zone": "b"}, "suspend": true, "cancel": true, "deadline": "1h",
                "ttl": "1m", "failurePolicy": "stop",
            },
            "status": {
                "state": "Running", "counts": {"running": 1}, "total": 3,
                "groups": [{"name": "g", "state": "Running", "counts": {"running": 1}, "total": 3, "message": "m"}],
                "started": "2026-11-15T14:00:00Z", "terminated": "2026-11-15T14:01:00Z", "released": "2026-11-15T14:02:00Z",
                "suspendedSince": "2026-11-15T14:00:30Z", "suspendedSeconds": 7, "stopping": "DeadlineExceeded",
                "message": "m",
                "conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
            },
        });
        let job: Job = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&job).unwrap(), example);
    }

    #[test]
    fn a_group_of_a_job_gives_its_task_group_every_field() {
        let example = json!({
            "mode": "replicas", "count": 3, "parallelism": 2, "tasks": [{"name": "one"}], "kind": "k", "addon": "a",
            "extensions": ["e"], "priority": 4, "policy": {"isolated": true}, "data": {"a": 1},
            "robotSelector": {"zone": "a"}, "suspend": true, "cancel": true,
        });
        let group: JobGroup = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(group.group_spec()).unwrap(), example);
    }
}
