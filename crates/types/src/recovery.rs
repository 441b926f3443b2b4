//! What happens after an attempt failed or its robot was lost, in the words of fleets. Where a task says nothing of this, its
//! `retry` holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::metadata::{is_default, null_is_default};

words! {
    /// What happens when there were as many restarts as an interval allows.
    #[derive(Default)]
    pub enum RestartMode {
        /// The task fails, or is rescheduled.
        #[default]
        Fail = "fail",
        /// It waits until the interval is over.
        Delay = "delay",
    }
}

/// Another attempt after one that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Restart {
    /// How many further attempts there may be within an interval, at most 9.
    #[serde(deserialize_with = "null_is_default")]
    pub attempts: u32,
    /// The interval. Default: all the time the task has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// How long to wait before each. Default: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// What happens when there were as many as the interval allows. Default: fail.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub mode: RestartMode,
}

words! {
    /// How waits grow.
    #[derive(Default)]
    pub enum DelayFunction {
        /// They do not.
        Constant = "constant",
        /// Each is twice the one before.
        #[default]
        Exponential = "exponential",
        /// Each is the sum of the two before.
        Fibonacci = "fibonacci",
    }
}

/// Another attempt, wherever there is room, after the robot was lost or restarts are used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Reschedule {
    /// How many there may be, at most 9 within an interval. Default: none, unless unlimited.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub attempts: u32,
    /// The interval in which they are counted. Default: all the time the task has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// The first wait. Default: 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// How further waits grow. Default: exponential.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub delay_function: DelayFunction,
    /// The longest wait. Default: 1h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Duration>,
    /// True if there may be any number of them. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub unlimited: bool,
}

words! {
    /// Which attempt goes on when the robot of one that counted as lost comes back.
    #[derive(Default)]
    pub enum Reconcile {
        /// The one that replaced it; the first one is ended.
        #[default]
        KeepReplacement = "keepReplacement",
        /// The first one, if it runs still or has succeeded, and the one that replaced it has not ended.
        KeepOriginal = "keepOriginal",
    }
}

/// What happens while the robot of an attempt cannot be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Disconnect {
    /// How long the robot may be disconnected before the attempt counts as lost. Default: until the robot is Offline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_after: Option<Duration>,
    /// How long the robot goes on with the attempt while it cannot reach the server; then it stops it by itself. Default:
    /// until it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_on_client_after: Option<Duration>,
    /// Which attempt goes on when the robot of one that counted as lost comes back. Default: keepReplacement.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub reconcile: Reconcile,
}
