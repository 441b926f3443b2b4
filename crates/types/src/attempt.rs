//! One try at a task on one executor: what is to be run, and what was seen of it.
//!
//! A runtime carries out what was committed and reports what it sees; it decides nothing. An attempt is named by its
//! [`Handle`], so starting one twice starts it once and stopping one that is gone does nothing.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::image_launch::ImageLaunch;
use crate::millis::Millis;
use crate::pod_launch::PodLaunch;
use crate::robot_launch::RobotLaunch;

/// Names one attempt at one task, for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle {
    /// Uid of the task.
    pub task: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

impl Handle {
    /// What the pod of the attempt is called.
    pub fn pod_name(&self) -> String {
        format!("task-{self}")
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.task, self.attempt)
    }
}

/// Names the file with the data of the task, in the environment of every program of an attempt whose task has some.
pub const DATA_FILE_VARIABLE: &str = "MUSTER_TASK_DATA_FILE";
/// Holds the data itself, as JSON, if it is no longer than [`MAX_DATA_VARIABLE`].
pub const DATA_VARIABLE: &str = "MUSTER_TASK_DATA";
/// Bytes of data that an attempt is given at most. As much fits into the annotations of a pod and into a message to a robot.
pub const MAX_DATA: usize = 128 << 10;
/// Bytes of data that are also in a variable: every program of the attempt has a copy, and no variable may be as long as a file.
pub const MAX_DATA_VARIABLE: usize = 32 << 10;

/// The data of a task, merged over that of its kind, as JSON text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskData(String);

impl TaskData {
    /// Keeps a document.
    pub fn new(json: String) -> Self {
        Self(json)
    }

    /// The document.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TaskData {
    /// The document is left out: it may be long, and nobody else's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskData({} bytes)", self.0.len())
    }
}

/// An attempt to be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Its name.
    pub handle: Handle,
    /// What runs, the leading container first. Never empty.
    pub containers: Vec<LaunchContainer>,
    /// The attempt is ended after this time.
    pub timeout: Option<Duration>,
    /// Time between asking to end and ending.
    pub kill_timeout: Duration,
    /// Effective priority of its task: where attempts wait for a slot, the highest starts first, then the oldest task.
    #[serde(default)]
    pub priority: i32,
    /// How often it was handed over ahead of a free slot, this time included; 0 if there is a slot for it.
    #[serde(default)]
    pub prefetch: u32,
    /// Limits, where the machine can enforce them.
    pub limits: Limits,
    /// What a pod needs to know besides; nothing for other runtimes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Box<PodLaunch>>,
    /// What a robot needs to know besides; nothing for other runtimes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robot: Option<Box<RobotLaunch>>,
    /// What docker or podman run; nothing for plain processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Box<ImageLaunch>>,
    /// What the task hands to its programs. The runtime makes it a file and names that in [`DATA_FILE_VARIABLE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<TaskData>,
}

/// One program of an attempt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchContainer {
    /// Unique within the attempt; names its log.
    pub name: String,
    /// The program and its arguments. Never empty but in a container of an image, which may say it.
    pub command: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
}

impl fmt::Debug for LaunchContainer {
    /// Values of variables are left out: some of them are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("LaunchContainer")
            .field("name", &self.name)
            .field("command", &self.command)
            .field("env", &names)
            .finish()
    }
}

/// Limits of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Bytes.
    pub memory: Option<u64>,
}

/// What was observed of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Which attempt.
    pub handle: Handle,
    /// When, on the wall clock of whoever observed it; the engine puts it on its steady clock.
    pub at: Millis,
    /// What.
    pub what: Observation,
}

/// What can be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observation {
    /// The executor took it in; nothing of it runs yet.
    Created,
    /// It waits to run.
    Waiting {
        /// CamelCase, for machines: `Unschedulable`, `ImagePullBackOff`, …
        reason: String,
        /// For people.
        message: String,
    },
    /// A quota refused it; nothing of it is there.
    Blocked {
        /// Which one, for people.
        message: String,
        /// How often it was refused now, this time included: it keeps its name, and is asked for again under it.
        #[serde(default)]
        refusal: u32,
    },
    /// It was taken back before it started; nothing of it ran.
    Returned {
        /// How often it had been handed over.
        prefetch: u32,
    },
    /// All its programs run.
    Started,
    /// It could not be started; nothing of it runs.
    StartFailed {
        /// CamelCase, for machines: `NoCommand`, `CommandNotFound`, `NotPermitted`, `WorkDirectory`, …
        reason: String,
        /// For people.
        message: String,
        /// True if trying again may help.
        transient: bool,
    },
    /// It ended and all its logs are stored.
    Ended(Ending),
    /// Its pod is gone from the cluster, whoever removed it and whenever it ended.
    Removed,
    /// The runtime no longer knows it: it will never end.
    Lost {
        /// CamelCase, for machines: [`EXECUTOR_LOST`], `Evicted`, `NodeLost`, `PodDeleted`, …
        reason: String,
        /// Why, for people.
        message: String,
    },
}

/// The reason of an attempt whose executor is gone, where nothing more is known.
pub const EXECUTOR_LOST: &str = "ExecutorLost";
/// The reason of an attempt that was ended because the server that ran it was told to stop.
pub const SERVER_STOPPED: &str = "ServerStopped";
/// The reason of an attempt whose image cannot be had, or has a name that is none.
pub const IMAGE_ERROR: &str = "ImageError";
/// The reason of an attempt for which no node has room.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// The reason of an attempt that nobody can ask for now, because its cluster does not answer.
pub const CLUSTER_UNAVAILABLE: &str = "ClusterUnavailable";
/// The reason of an attempt that this server may not make or see.
pub const NOT_PERMITTED: &str = "NotPermitted";
/// Reasons of a pod that waits and may have no node yet. With any other, a node has taken it.
pub const WITHOUT_NODE: [&str; 3] = [UNSCHEDULABLE, CLUSTER_UNAVAILABLE, NOT_PERMITTED];

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// How each container ended, the leading one first.
    pub containers: Vec<ContainerEnding>,
    /// Why the runtime ended it, if it did.
    pub cause: Cause,
    /// When the leading container ended.
    pub at: Millis,
    /// For people, where the codes do not say it all: which sidecar failed first, why the log could not be written,
    /// that memory ran out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// CamelCase, for machines, where the cause does not say it all: `OOMKilled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Files besides logs that were kept among the attachments of the task: name and size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, u64)>,
}

impl Ending {
    /// How an attempt ended of which no more is known than what became of its leading container.
    pub fn of_leader(exit_code: i32, cause: Cause, at: Millis) -> Self {
        let leader = ContainerEnding {
            name: LEADER.to_owned(),
            exit_code,
            signal: None,
            killed_as_leftover: false,
            log_bytes: 0,
        };
        Self { containers: vec![leader], ..Self::without_containers(cause, at) }
    }

    /// How an attempt ended of which nothing ran.
    pub fn without_containers(cause: Cause, at: Millis) -> Self {
        Self { containers: Vec::new(), cause, at, message: None, reason: None, files: Vec::new() }
    }

    /// How an attempt ended that was stopped before it started.
    pub fn before_start(at: Millis) -> Self {
        let message = Some("it was stopped before it started".to_owned());
        Self { message, ..Self::without_containers(Cause::Stopped, at) }
    }
}

/// What the leading container is called where nobody says it.
const LEADER: &str = "addon";

/// Who ended an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Its own programs.
    Itself,
    /// It took longer than its timeout.
    Timeout,
    /// It was told to stop.
    Stopped,
    /// Its log could not be written.
    LogFailed,
}

/// How one container ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerEnding {
    /// Which one.
    pub name: String,
    /// Exit code; 128 + signal if a signal ended it.
    pub exit_code: i32,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
    /// It was killed because the leading container ended. Its code then says nothing about the attempt; a sidecar that
    /// is not leftover and ended with a code other than 0 failed before the leading container ended.
    pub killed_as_leftover: bool,
    /// How much it wrote. Less may be kept: logs have a cap, and their oldest part goes first.
    pub log_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let container = LaunchContainer {
            name: "addon".to_owned(),
            command: vec!["true".to_owned()],
            env: vec![("MUSTER_TOKEN".to_owned(), "muster_a_secret".to_owned())],
        };
        let shown = format!("{container:?} {:?}", TaskData::new("{\"password\": \"secret\"}".to_owned()));
        assert!(shown.contains("MUSTER_TOKEN") && !shown.contains("secret"), "{shown}");
    }
}
