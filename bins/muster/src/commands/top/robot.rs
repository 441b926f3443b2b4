//! What is shown of a robot.

use muster_types::Timestamp;
use serde_json::Value;

use super::row::{Id, short};

/// Longest phase that is shown.
const PHASE: usize = 20;

/// A robot in brief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Robot {
    /// Which one.
    pub id: Id,
    /// Whether it is there.
    pub phase: Box<str>,
    /// When it was last heard of.
    pub heard: Option<Timestamp>,
    /// How many tasks it runs.
    pub running: u64,
}

impl Robot {
    /// Reads a robot.
    pub fn read(object: &Value) -> Self {
        let status = &object["status"];
        Self {
            id: Id::of(object),
            phase: short(status["phase"].as_str().unwrap_or("Pending"), PHASE),
            heard: status["lastHeartbeatTime"].as_str().and_then(|text| text.parse().ok()),
            running: status["running"].as_u64().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_robot_says_whether_it_is_there_and_what_it_runs() {
        let status = json!({"phase": "Online", "lastHeartbeatTime": "1970-01-01T00:00:09Z", "running": 2});
        let robot = Robot::read(&json!({"metadata": {"name": "r1"}, "status": status}));
        assert_eq!((&*robot.id.name, &*robot.phase, robot.running), ("r1", "Online", 2));
        assert_eq!(robot.heard, Some(Timestamp::from_second(9)));
        let new = Robot::read(&json!({"metadata": {"name": "r2"}}));
        assert_eq!((&*new.phase, new.running, new.heard), ("Pending", 0, None));
    }
}
