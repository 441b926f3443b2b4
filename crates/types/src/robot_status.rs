//! What is reported about a Robot: the phase the engine decided on, and what the robot said of itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::metadata::{is_default, null_is_default};
use crate::timestamp::Timestamp;

/// The condition that says whether a robot is connected to the broker now.
pub const CONNECTED: &str = "Connected";

words! {
    /// Where a robot is in its life.
    #[derive(Default)]
    pub enum Phase {
        /// It asked to join and was not let in yet.
        #[default]
        Pending = "Pending",
        /// It works.
        Online = "Online",
        /// Nothing was heard of it for too long.
        Offline = "Offline",
    }
}

/// What was observed of the robot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RobotStatus {
    /// Where it is in its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// When it was last heard of, give or take a minute: not every sign of life is written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Timestamp>,
    /// How it stands, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
    /// How many tasks it said it runs.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub running: u32,
    /// What it says of itself.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub device_info: DeviceInfo,
    /// Aspects of its state, each type once.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl RobotStatus {
    /// The phase, which is Pending until another was decided on.
    pub fn phase(&self) -> Phase {
        self.phase.unwrap_or_default()
    }
}

/// What a robot says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceInfo {
    /// Its name on its network.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub hostname: String,
    /// Its operating system.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub platform: String,
    /// Its sort of processor.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub arch: String,
    /// Version of its kernel.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub kernel: String,
    /// Version of its agent.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub agent_version: String,
    /// Cores it has for tasks.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub cpus: u32,
    /// Bytes of memory it has for tasks.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub memory: u64,
}
