//! Why a task is where it is, in words: what `explain` answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task_status::{State, WaitingFor};
use crate::timestamp::Timestamp;

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
    /// How many tasks are offered before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// True if no engine answered here, so that this is what was last recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}
