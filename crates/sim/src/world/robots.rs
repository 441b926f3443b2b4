//! What robots say of themselves reaches the store, whoever leads: signs of life, and whether they are connected.

use std::collections::BTreeMap;

use muster_ports::store::Precondition;
use muster_types::Robot;
use serde_json::json;

use super::World;
use super::users::key;

/// Robots of a seed, and tasks each runs at once.
pub const ROBOTS: u64 = 3;
const TASKS: u32 = 2;
/// Seconds of silence after which a robot is Offline.
pub const OFFLINE_AFTER: i64 = 60;
/// Milliseconds between two signs of life.
const HEARTBEAT: i64 = 15_000;

/// When each was last heard of, by the steady clock, and how.
#[derive(Debug, Default)]
pub struct Robots {
    heard: BTreeMap<String, (i64, bool)>,
}

impl World {
    pub(super) async fn declare_robots(&mut self) -> Result<(), String> {
        for number in 0..ROBOTS {
            let zone = if number % 2 == 0 { "even" } else { "odd" };
            let robot = json!({
                "apiVersion": "muster.dev/v1alpha1",
                "kind": "Robot",
                "metadata": {
                    "name": format!("r{number}"), "namespace": "d", "generation": 1,
                    "uid": format!("00000000-0000-7000-9000-{number:012x}"),
                    "creationTimestamp": self.now().to_timestamp(),
                },
                "spec": {"maxTasks": TASKS, "labels": {"zone": zone}},
                "status": {"lastHeartbeatTime": self.now().to_timestamp()},
            });
            self.put::<Robot>("robots", robot, Precondition::Absent).await?;
        }
        Ok(())
    }

    /// Whoever is connected gives a sign of life from time to time.
    pub(super) async fn beat_hearts(&mut self) -> Result<(), String> {
        let (at, now) = (self.recorder.at(), self.now());
        for number in 0..ROBOTS {
            let name = format!("r{number}");
            let connected = self.fleet.is_connected(&name);
            let last = self.robots.heard.get(&name).copied();
            let is_due =
                last.is_none_or(|(last, was)| was != connected || connected && at - last >= HEARTBEAT);
            if !is_due {
                continue;
            }
            let Some(stored) = self.store.get(&key("robots", &name)) else { continue };
            let mut robot: Robot =
                serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
            self.fleet.fold_connection(&mut robot, &name, now);
            if connected {
                robot.status.last_heartbeat_time = Some(now.to_timestamp());
            }
            robot.metadata.resource_version.clear();
            self.put_typed(key("robots", &name), &robot, Precondition::At(stored.revision)).await?;
            // What the store did not take is said again.
            if self.store.get(&key("robots", &name)).is_some_and(|now| now.revision > stored.revision) {
                self.robots.heard.insert(name, (at, connected));
            }
        }
        Ok(())
    }
}
