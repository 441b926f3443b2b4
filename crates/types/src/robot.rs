//! The Robot: a machine of the fleet that runs attempts. What may be asked for is here; what is reported is in
//! [`crate::robot_status`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::{StringMap, is_default, null_is_default};
use crate::names::Names;
use crate::object::{Object, Resource};
use crate::robot_status::RobotStatus;

/// A machine of the fleet.
pub type Robot = Object<RobotSpec>;

/// Tasks a robot runs at once if nothing else is said.
pub const DEFAULT_MAX_TASKS: u32 = 1;

impl Resource for RobotSpec {
    type Status = RobotStatus;
    const NAMES: Names = Names::muster("Robot", "robots", "robot", &["mrobot"]);
    const ABOUT: &'static str = "Robot is a machine of the fleet. It joins by itself with a join token, says that it is \
        alive every 30 seconds, and runs the attempts it is given. It is Offline when nothing was heard of it for five \
        minutes; its tasks then get a new attempt elsewhere.";

    object_text!();
}

/// Which robot it is and what it is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RobotSpec {
    /// The name it proves itself under, unique among all robots. Default: its name.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub robot_id: String,
    /// Labels it is selected by. A robot brings its own when it joins; what is changed here stays.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: StringMap,
    /// What it is, for people.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub description: String,
    /// How many tasks it runs at once. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tasks: Option<u32>,
    /// True if it gets no new tasks; those it has go on. Default: false.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub unschedulable: bool,
    /// True if it may work; false if it may not. Default: a setting of the server, usually yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
}

impl RobotSpec {
    /// How many tasks it runs at once.
    pub fn max_tasks(&self) -> u32 {
        self.max_tasks.unwrap_or(DEFAULT_MAX_TASKS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "Robot",
            "metadata": {"name": "r1", "resourceVersion": ""},
            "spec": {
                "robotId": "r1", "labels": {"zone": "a"}, "description": "d", "maxTasks": 3, "unschedulable": true,
                "approved": false,
            },
            "status": {
                "phase": "Online", "lastHeartbeatTime": "2026-11-15T14:00:00Z", "message": "m", "running": 2,
                "deviceInfo": {
                    "hostname": "h", "platform": "linux", "arch": "x86_64", "kernel": "6.1", "agentVersion": "0.1.0",
                    "cpus": 4, "memory": 1024,
                },
                "conditions": [{"type": "Connected", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
            },
        });
        let robot: Robot = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&robot).unwrap(), example);
    }
}
