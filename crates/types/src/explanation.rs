//! Why a task is where it is, in words: what `explain` answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task_status::{State, WaitingFor};
use crate::timestamp::Timestamp;

/// The reason of a task that is not started before some time. Its status says why.
pub const RESTING: &str = "Resting";

/// Why a task is where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Explanation {
    /// Where the task is in its life.
    pub state: State,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What happens now, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What it waits for; absent if nothing holds it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The priority that was asked for, or that of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The priority it has because others depend on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_priority: Option<i32>,
    /// `namespace/name` of the task that lends it that priority.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub raised_by: String,
    /// Its place among the tasks that wait for the same runtime, from 1; absent if it does not wait for room or is far back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Whether it takes the place of others: whose and when, or why not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preemption: String,
    /// True if no engine answered here, so that this is what was last recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}
