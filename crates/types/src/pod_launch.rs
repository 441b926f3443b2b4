//! What a pod is made from, besides the programs of an attempt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attempt::Limits;

/// The part of a launch that only pods need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodLaunch {
    /// Namespace of the task.
    pub namespace: String,
    /// Name of the task.
    pub task: String,
    /// What is special about each container, in the order of the launch.
    pub containers: Vec<PodContainer>,
    /// What the addon and the task say about pods, later ones over earlier ones.
    pub overrides: Vec<Value>,
    /// How often a quota refused this attempt before.
    pub refusals: u32,
    /// How many refusals of attempts, of any task, were known when this one was chosen.
    pub knows_refusals: u64,
}

/// The part of a container that only pods need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodContainer {
    /// Its image.
    pub image: String,
    /// Arguments, which follow the command or what the image says.
    pub args: Vec<String>,
    /// What it is given of the machine.
    pub limits: Limits,
}
