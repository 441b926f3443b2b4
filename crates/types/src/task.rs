//! The Task: the unit of work a user sees. What may be asked for is here; what is reported is in
//! [`crate::task_status`].
//!
//! Fields that have a default which is a setting of the server stay absent until the user sets them, so that a
//! stored task says exactly what was asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::container::{Container, Resources};
use crate::duration::Duration;
use crate::metadata::{OwnerReference, StringMap, is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};
use crate::placement::{Affinity, Constraint};
use crate::recovery::{Disconnect, Reschedule, Restart};
use crate::task_status::{State, TaskStatus};

/// A unit of work.
pub type Task = Object<TaskSpec>;

impl Resource for TaskSpec {
    type Status = TaskStatus;
    const NAMES: Names = Names::muster("Task", "tasks", "task", &["mtask"]);
    const ABOUT: &'static str = "Task is a unit of work that ends. It waits for its turn in one queue with all \
        others, runs as one or more attempts in a process, a pod or on a robot, and ends as Succeeded, Failed or \
        Canceled.";

    object_text!();
}

impl Task {
    /// Where it is in its life: the one answer for JSON, tables, selectors, `explain`, the console and messages.
    pub const fn state(&self) -> State {
        State::of(self.status.state, self.spec.suspend)
    }

    /// Records the state in which a new task begins. Whatever stores a new task calls this, so that its JSON says where it is from
    /// the answer to the create on.
    pub const fn record_initial_state(&mut self) {
        self.status.state = Some(State::initial(self.spec.suspend));
    }

    /// The group that this task is a member of.
    pub fn group(&self) -> Option<&OwnerReference> {
        let owners = self.metadata.owner_references.iter();
        owners.into_iter().find(|owner| owner.controller == Some(true) && owner.kind == "TaskGroup")
    }
}

/// What to run, when it may run and what happens when it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSpec {
    /// Name of the TaskKind: gives the default priority, the dependencies and default data, and selects the addon.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub kind: String,
    /// Name of the Addon to run. Default: the addon selected by kind.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub addon: String,
    /// The program to run, given here instead of by an addon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Several programs to run together, given here instead of by an addon. When the leading one ends, the others
    /// are stopped.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<Container>,
    /// A title for people. It need not be unique and can be selected by.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub name: String,
    /// Names of the extensions to run beside the addon; an empty list means none. Default: those selected by rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub extensions: Option<Vec<String>>,
    /// What the task is about. Tasks on the same subject wait for one another. Default: nothing, so the task waits
    /// for no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// Any document, handed to the addon. The kind's data is merged under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Tasks with a higher priority start first; 0 is the lowest. Default: the kind's priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub priority: Option<i32>,
    /// How the task shares the machine with others.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub policy: Policy,
    /// How long the task may stay in each state; when the time is over it is stopped and deleted; 0 is no
    /// limit. Default: no limit of its own, the server's reaping rules apply.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub ttl: Ttl,
    /// True keeps the task Created until it is set to false. Default: false, the task is Ready at once.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub suspend: bool,
    /// True asks for the task to be Canceled; it is stopped if it runs. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub cancel: bool,
    /// How long an attempt may run before it is stopped and fails. Default, and 0: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How long a stopped attempt may take to end before it is killed. Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_timeout: Option<Duration>,
    /// When a failed attempt is followed by another. Default: once, and only if the attempt was killed.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub retry: Retry,
    /// How long the pod or work directory of a finished attempt is kept.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub retention: Retention,
    /// Any text to find the task by.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub locator: String,
    /// Where attempts run. Default: on a robot if robotSelector, targetRobot or constraints are set, else a setting of the
    /// server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Labels a robot must have to be given this task. Default: any robot.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub robot_selector: StringMap,
    /// Name of the one robot this task must run on. Default: any robot that is selected.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub target_robot: String,
    /// What must hold of a robot to be given this task.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub constraints: Vec<Constraint>,
    /// Where it goes relative to tasks of other groups, and which robot is preferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// When an attempt that failed is followed by another. Default: what retry says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// When an attempt is made elsewhere, because its robot was lost or restarts are used up. Default: what retry says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reschedule: Option<Reschedule>,
    /// What happens while the robot of an attempt cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disconnect: Option<Disconnect>,
    /// How processes and robots run the program. Default: exec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// Name of the user of a robot as whom the program runs; needs an agent that runs as root. Default: as whom the agent runs.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub user: String,
    /// Any further settings of the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// What the task is given of the machine, in total. Default: no limit.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub resources: Resources,
    /// What pods of this task have besides their containers, in the words of a Kubernetes pod spec: nodeSelector,
    /// tolerations, affinity, imagePullSecrets, serviceAccountName, securityContext and the like. Merged over what the
    /// addon says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Value>,
    /// Files to fetch into the work directory before an attempt starts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub artifacts: Vec<Artifact>,
}

impl TaskSpec {
    /// Where attempts run, if that is said: a task that asks for a robot runs on one.
    pub fn stated_runtime(&self) -> Option<Runtime> {
        let names_robots = !self.robot_selector.is_empty() || !self.target_robot.is_empty();
        self.runtime.or((names_robots || !self.constraints.is_empty()).then_some(Runtime::Robot))
    }
}

/// What a task is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Kind of the subject: Application or a managed resource.
    pub kind: String,
    /// Name of the subject in the task's namespace.
    pub name: String,
}

/// How a task shares the machine with others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// True if nothing else may run while this task does. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub isolated: bool,
    /// True if this task may stop running tasks of lower priority when it has waited too long. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub preempt_enabled: bool,
    /// True if this task may not be stopped for one of higher priority. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub preempt_exempt: bool,
}

/// How long a task may stay in each state. Zero is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ttl {
    /// Time in Created. Default: 72h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Duration>,
    /// Time in Ready, Postponed, QuotaBlocked and Pending together. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Duration>,
    /// Time in Running. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Duration>,
    /// Time in Succeeded. Default: 72h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Duration>,
    /// Time in Failed. Default: 720h, after which the files are let go and the task is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Duration>,
    /// Time in Canceled. Default: as for succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canceled: Option<Duration>,
}

/// When a failed attempt is followed by another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    /// How many further attempts there may be. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The failures that are followed by another attempt; an empty list means none. Default: Killed.
    // kubectl reads YAML as version 1.1 says, where the key `on` is the boolean true.
    #[serde(alias = "true", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub on: Option<Vec<RetryOn>>,
    /// How many further attempts there may be because the executor was lost; these do not count towards limit, and
    /// those that end because the server is told to stop count towards neither. With 0 there is none in either case.
    /// Default: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_limit: Option<u32>,
    /// How long to wait before the next attempt.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub backoff: Backoff,
}

impl Retry {
    /// How many further attempts there may be.
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(1)
    }

    /// How many further attempts there may be because the executor was lost.
    pub fn lost_limit(&self) -> u32 {
        self.lost_limit.unwrap_or(3)
    }
}

words! {
    /// A way for an attempt to fail.
    pub enum RetryOn {
        /// It ended with an exit code other than zero.
        NonZeroExit = "NonZeroExit",
        /// It was killed (exit code 137).
        Killed = "Killed",
        /// The robot, node or server it ran on was lost.
        ExecutorLost = "ExecutorLost",
        /// It ran longer than its timeout.
        Timeout = "Timeout",
        /// It could not be started.
        StartFailed = "StartFailed",
    }
}

/// How long to wait before the next attempt: initial, then factor times as long each time, up to max. Whatever is said here, two
/// attempts that follow each other start at least a second apart, a setting of the server (--min-retry-interval).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Backoff {
    /// The first wait. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Duration>,
    /// By how much each wait is longer than the one before, at least 1. Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub factor: Option<f64>,
    /// The longest wait. Default: 5m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
}

/// How long the pod or work directory of a finished attempt is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Retention {
    /// After the attempt succeeded. Default: 1s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Duration>,
    /// After the attempt failed. Default: 72h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Duration>,
}

words! {
    /// Where attempts run.
    pub enum Runtime {
        /// A process on the server's machine.
        Process = "process",
        /// A pod in the Kubernetes cluster.
        Pod = "pod",
        /// A robot of the fleet.
        Robot = "robot",
    }
}

words! {
    /// How a program is run on the server's machine or on a robot.
    pub enum Driver {
        /// As a process of its own.
        Exec = "exec",
        /// As a container of docker.
        Docker = "docker",
        /// As a container of podman.
        Podman = "podman",
    }
}

/// A file to fetch before an attempt starts. Robots fetch; other runtimes do not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Where it is: `http://…`, `https://…`, `file:///…` or a path on the machine that runs the task.
    pub source: String,
    /// Path below the work directory to put it at. Default: the last part of the source; for an archive that is unpacked, the
    /// work directory.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub destination: String,
    /// What it must be, as `sha256:HEX` or `sha512:HEX`. Default: it is taken as it comes.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub checksum: String,
    /// True if it is an archive (`.tar`, `.tar.gz`, `.tgz`, `.zip`) whose files are wanted. Default: false.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub unpack: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The example of the design, as JSON.
    fn example() -> Value {
        json!({
            "kind": "analyzer",
            "addon": "java-analyzer",
            "container": {"image": "a", "command": ["b"], "args": ["c"], "env": [{"name": "D", "value": "e"}]},
            "containers": [{"name": "main", "leading": true}, {"name": "side", "resources": {"cpu": "1"}}],
            "name": "any title",
            "extensions": ["java"],
            "subject": {"kind": "Application", "name": "inventory"},
            "data": {"any": "document"},
            "priority": 10,
            "policy": {"isolated": true, "preemptEnabled": true, "preemptExempt": true},
            "ttl": {"created": "72h", "pending": "0s", "running": "1s", "succeeded": "72h", "failed": "720h", "canceled": "1h"},
            "suspend": true,
            "cancel": true,
            "timeout": "2m",
            "killTimeout": "10s",
            "retry": {"limit": 1, "on": ["Killed"], "lostLimit": 3, "backoff": {"initial": "1s", "factor": 2.0, "max": "5m"}},
            "retention": {"succeeded": "1s", "failed": "72h"},
            "locator": "any-text",
            "runtime": "process",
            "robotSelector": {"zone": "a"},
            "targetRobot": "r1",
            "constraints": [{"attribute": "device.cpus", "operator": ">=", "value": "4"}],
            "affinity": {"with": ["a"], "apart": ["b"], "prefer": "binPack"},
            "restart": {"attempts": 2, "interval": "10m", "delay": "5s", "mode": "delay"},
            "reschedule": {"attempts": 3, "interval": "1h", "delay": "30s", "delayFunction": "fibonacci", "maxDelay": "10m", "unlimited": true},
            "disconnect": {"lostAfter": "30s", "stopOnClientAfter": "1m", "reconcile": "keepOriginal"},
            "driver": "exec",
            "config": {"any": ["thing"]},
            "resources": {"cpu": "500m", "memory": "256Mi"},
            "user": "robot",
            "artifacts": [
                {"source": "https://example.com/a", "destination": "b", "checksum": "sha256:c", "unpack": true},
            ],
        })
    }

    #[test]
    fn every_field_reads_and_writes_back() {
        let spec: TaskSpec = serde_json::from_value(example()).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap(), example());
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<TaskSpec>(&text).unwrap(), spec);
    }

    #[test]
    fn nulls_and_defaults_are_not_stored() {
        let nulls: Value =
            example().as_object().unwrap().keys().map(|key| (key.clone(), Value::Null)).collect();
        assert_eq!(serde_json::from_value::<TaskSpec>(nulls).unwrap(), TaskSpec::default());
        let spec: TaskSpec = serde_json::from_value(json!({
            "policy": {"isolated": false}, "ttl": {}, "retry": {"backoff": {}}, "suspend": false, "containers": [],
        }))
        .unwrap();
        assert_eq!(serde_json::to_string(&spec).unwrap(), "{}");
    }

    #[test]
    fn an_empty_list_is_not_an_absent_one() {
        let spec: TaskSpec = serde_json::from_value(json!({"extensions": [], "retry": {"on": []}})).unwrap();
        assert_eq!(spec.extensions, Some(vec![]));
        assert_eq!(serde_json::to_value(&spec).unwrap(), json!({"extensions": [], "retry": {"on": []}}));
    }

    #[test]
    fn durations_are_read_in_every_form_and_written_in_one() {
        let spec: TaskSpec =
            serde_json::from_value(json!({"timeout": "PT2M", "killTimeout": 90, "ttl": {"pending": 0}}))
                .unwrap();
        assert_eq!(
            serde_json::to_value(&spec).unwrap(),
            json!({"timeout": "2m", "killTimeout": "1m30s", "ttl": {"pending": "0s"}})
        );
    }

    #[test]
    fn a_wrong_word_is_refused_with_the_right_ones() {
        let error = serde_json::from_value::<TaskSpec>(json!({"runtime": "Pod"})).unwrap_err();
        assert_eq!(error.to_string(), "unknown variant `Pod`, expected one of `process`, `pod`, `robot`");
        assert!(serde_json::from_value::<TaskSpec>(json!({"retry": {"on": ["killed"]}})).is_err());
    }

    #[test]
    fn an_object_names_its_kind() {
        let task = Task::new("default", "a", TaskSpec { priority: Some(1), ..TaskSpec::default() });
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(
            text,
            r#"{"apiVersion":"muster.dev/v1alpha1","kind":"Task","metadata":{"name":"a","namespace":"default","resourceVersion":""},"spec":{"priority":1}}"#
        );
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task);
    }
}
