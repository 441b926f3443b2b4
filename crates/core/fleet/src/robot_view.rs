//! What placement needs to know of a robot.

use std::sync::Arc;

use muster_types::metadata::StringMap;
use muster_types::robot_status::{CONNECTED, DeviceInfo, Phase};
use muster_types::{Robot, Timestamp};

/// A robot as placement sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotView {
    /// `namespace/name`.
    pub path: Arc<str>,
    /// Where it is in its life.
    pub phase: Phase,
    /// It gets no new tasks.
    pub unschedulable: bool,
    /// Tasks at once.
    pub max_tasks: u32,
    /// What it is selected by.
    pub labels: StringMap,
    /// What it says of itself.
    pub device: DeviceInfo,
    /// Since when it is not connected, in seconds, if it is not.
    pub cut_since: Option<i64>,
}

impl RobotView {
    /// Reads a robot.
    pub fn of(robot: &Robot, path: Arc<str>) -> Self {
        let connected =
            robot.status.conditions.iter().find(|it| it.r#type == CONNECTED).filter(|it| !it.is_true());
        Self {
            path,
            phase: robot.status.phase(),
            unschedulable: robot.spec.unschedulable || robot.metadata.deletion_timestamp.is_some(),
            max_tasks: robot.spec.max_tasks(),
            labels: robot.spec.labels.clone(),
            device: robot.status.device_info.clone(),
            cut_since: connected.map(|it| Timestamp::as_second(it.last_transition_time)),
        }
    }

    /// Its namespace and its name.
    pub fn names(&self) -> (&str, &str) {
        self.path.split_once('/').unwrap_or(("", &self.path))
    }

    /// The value of an attribute that constraints name.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        if let Some(label) = name.strip_prefix("label.") {
            return self.labels.get(label).cloned();
        }
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let number = |number: u64| (number > 0).then(|| number.to_string());
        match name {
            "robot.id" => Some(self.names().1.to_owned()),
            "device.hostname" => text(&self.device.hostname),
            "device.platform" => text(&self.device.platform),
            "device.arch" => text(&self.device.arch),
            "device.kernel" => text(&self.device.kernel),
            "device.agentVersion" => text(&self.device.agent_version),
            "device.cpus" => number(u64::from(self.device.cpus)),
            "device.memory" => number(self.device.memory),
            _ => None,
        }
    }
}
