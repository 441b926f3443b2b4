//! Which robots may run a task, and which of them is preferred.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::{StringMap, is_default, null_is_default};

words! {
    /// How an attribute of a robot is compared.
    pub enum Operator {
        /// It is the value.
        Equal = "=",
        /// It is not the value; a robot without the attribute fits.
        NotEqual = "!=",
        /// It is less than the value: as quantities if both are, else as text.
        Less = "<",
        /// It is the value or less.
        LessOrEqual = "<=",
        /// It is greater than the value.
        Greater = ">",
        /// It is the value or greater.
        GreaterOrEqual = ">=",
        /// The value is a regular expression that matches somewhere in it.
        Regexp = "regexp",
        /// It is a version that the value allows, such as `>= 1.2, < 2`.
        Version = "version",
        /// It is a list, separated by commas, that contains all of the value's list.
        SetContains = "set_contains",
    }
}

/// Something that must hold of a robot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Constraint {
    /// What is looked at: `label.NAME` is a label of the robot; `device.hostname`, `device.platform`, `device.arch`,
    /// `device.kernel`, `device.agentVersion`, `device.cpus` and `device.memory` are what it says of itself; `robot.id`
    /// is its name.
    pub attribute: String,
    /// How it is compared. Default: `=`.
    #[serde(default = "equal", skip_serializing_if = "is_equal")]
    pub operator: Operator,
    /// What it is compared with.
    #[serde(default, deserialize_with = "null_is_default")]
    pub value: String,
}

fn equal() -> Operator {
    Operator::Equal
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_equal(operator: &Operator) -> bool {
    *operator == Operator::Equal
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.attribute, self.operator, self.value)
    }
}

words! {
    /// Which robot is preferred among those that may run a task.
    #[derive(Default)]
    pub enum Spread {
        /// The one that runs the fewest tasks.
        #[default]
        Spread = "spread",
        /// The one that runs the most and still has room.
        BinPack = "binPack",
    }
}

/// Where tasks go relative to tasks of other groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Names of TaskGroups: only robots that run a task of each of them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub with: Vec<String>,
    /// Names of TaskGroups, its own among them if its tasks are to be apart: only robots that run no task of any of them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub apart: Vec<String>,
    /// Which robot is preferred. Default: spread.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub prefer: Spread,
}

/// All that a task asks of a robot. Tasks with the same demand wait for the same robots.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// The namespace: tasks run on robots of their own.
    pub namespace: String,
    /// Labels a robot must have.
    pub selector: StringMap,
    /// The one robot it must be, if not empty.
    pub target: String,
    /// What must hold of a robot.
    pub constraints: Vec<Constraint>,
    /// Where it goes relative to others.
    pub affinity: Affinity,
    /// The group the task belongs to; empty if it belongs to none.
    pub group: String,
    /// Thousandths of a core.
    pub cpu_millis: u64,
    /// Bytes.
    pub memory: u64,
}
