//! Robot: what may be asked for, and how it is shown.

use std::borrow::Cow;

use muster_types::Robot;
use muster_types::condition::find_condition;
use muster_types::robot::RobotSpec;
use muster_types::robot_status::CONNECTED;
use serde_json::json;

use crate::kind::{Column, FieldOf, Strategy};
use crate::refusal::Causes;

/// Most tasks at once.
const MOST_TASKS: u32 = 1000;

impl Strategy for RobotSpec {
    fn validate(robot: &Robot, causes: &mut Causes) {
        let spec = &robot.spec;
        if !spec.robot_id.is_empty() && spec.robot_id != robot.metadata.name {
            causes.invalid("spec.robotId", &spec.robot_id, "must be the name of the object");
        }
        if let Some(tasks) = spec.max_tasks.filter(|tasks| *tasks > MOST_TASKS) {
            causes.invalid("spec.maxTasks", tasks, format!("must be no more than {MOST_TASKS}"));
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Phase", "Where in its life it is.", |robot| {
                json!(robot.status.phase().to_string())
            }),
            Column::<Self>::text("Connected", "Whether the broker has a connection to it.", |robot| {
                let connected = find_condition(&robot.status.conditions, CONNECTED);
                json!(connected.map_or("Unknown", |condition| condition.status.as_str()))
            }),
            Column::<Self>::number("Running", "Tasks it said it runs.", |robot| json!(robot.status.running)),
            Column::<Self>::number("Slots", "Tasks it runs at once, at most.", |robot| {
                json!(robot.spec.max_tasks())
            }),
            Column::<Self>::text("Takes", "Whether it gets new tasks.", |robot| {
                json!(if robot.spec.unschedulable { "no" } else { "yes" })
            }),
            Column::<Self>::text("Heartbeat", "When it was last heard of.", |robot| {
                json!(robot.status.last_heartbeat_time)
            }),
            Column::<Self>::text("Labels", "What it is selected by.", |robot| {
                let labels = robot.spec.labels.iter().map(|(name, value)| format!("{name}={value}"));
                json!(labels.collect::<Vec<_>>().join(","))
            })
            .wide(),
            Column::<Self>::text("Host", "Its name on its network.", |robot| {
                json!(robot.status.device_info.hostname)
            })
            .wide(),
            Column::<Self>::text("Arch", "Its sort of processor.", |robot| {
                json!(robot.status.device_info.arch)
            })
            .wide(),
            Column::<Self>::text("Agent", "Version of its agent.", |robot| {
                json!(robot.status.device_info.agent_version)
            })
            .wide(),
            Column::<Self>::text("Message", "How it stands.", |robot| json!(robot.status.message)).wide(),
        ]
    }

    fn fields() -> &'static [(&'static str, FieldOf<Self>)] {
        &[("status.phase", |robot| Cow::Owned(robot.status.phase().to_string()))]
    }
}
