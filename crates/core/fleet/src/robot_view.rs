//! What placement needs to know of a robot.

use std::sync::Arc;

use muster_types::Robot;
use muster_types::metadata::StringMap;
use muster_types::robot_status::{CONNECTED, DeviceInfo, Phase};

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
    /// Its name on its network.
    pub hostname: Box<str>,
    /// What it has in common with others.
    pub traits: Arc<Traits>,
    /// The first whole second in which it was not connected any more, if it is not.
    pub cut_since: Option<i64>,
}

/// What robots of a fleet have in common: there are many that are alike, and they share one of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Traits {
    /// What they are selected by.
    pub labels: StringMap,
    /// What they say of themselves, without what each is called.
    pub device: DeviceInfo,
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
            hostname: robot.status.device_info.hostname.as_str().into(),
            traits: Arc::new(Traits {
                labels: robot.spec.labels.clone(),
                device: DeviceInfo { hostname: String::new(), ..robot.status.device_info.clone() },
            }),
            cut_since: connected.map(|it| it.last_transition_time.next_second()),
        }
    }

    /// Its namespace and its name.
    pub fn names(&self) -> (&str, &str) {
        self.path.split_once('/').unwrap_or(("", &self.path))
    }

    /// The value of an attribute that constraints name.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let Traits { labels, device } = &*self.traits;
        if let Some(label) = name.strip_prefix("label.") {
            return labels.get(label).cloned();
        }
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let number = |number: u64| (number > 0).then(|| number.to_string());
        match name {
            "robot.id" => Some(self.names().1.to_owned()),
            "device.hostname" => text(&self.hostname),
            "device.platform" => text(&device.platform),
            "device.arch" => text(&device.arch),
            "device.kernel" => text(&device.kernel),
            "device.agentVersion" => text(&device.agent_version),
            "device.cpus" => number(u64::from(device.cpus)),
            "device.memory" => number(device.memory),
            _ => None,
        }
    }
}
