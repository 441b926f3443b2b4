//! What a robot needs to know of an attempt, besides what every runtime does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::Artifact;

/// An attempt on a robot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RobotLaunch {
    /// The id of the robot.
    pub robot: String,
    /// Namespace and name of the task, for people.
    pub task: String,
    /// The user of the robot whose program it is; empty for that of the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Files it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The robot stops it by itself after it could not reach the server for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after_silence: Option<Duration>,
}
