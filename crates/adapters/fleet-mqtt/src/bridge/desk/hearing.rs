//! What robots say, one message at a time: whether it counts, and what of it is handed on.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use muster_ports::runtime::{Handle, Observation};
use muster_types::name_rules;
use serde::de::DeserializeOwned;

use super::{Desk, encode};
use crate::bridge::joining::join;
use crate::connection::Connection;
use crate::credentials::Claim;
use crate::messages::{ConnectionNews, Heartbeat, KnownAttempts, LogPiece, Register, Status};
use crate::topics::Inbound;

impl Desk {
    pub(super) async fn hear(&mut self, about: Inbound<'_>, payload: &[u8], connection: &Connection) {
        match about {
            Inbound::Register => {
                if let Some(asked) = decode::<Register>(payload)
                    && self.may_speak(&asked.robot_id)
                {
                    self.register(asked, connection);
                }
            }
            Inbound::Heartbeat => {
                if let Some(heartbeat) = decode::<Heartbeat>(payload)
                    && self.may_speak(&heartbeat.robot_id)
                {
                    self.hear_heartbeat(&heartbeat).await;
                }
            }
            Inbound::Connection { robot } => {
                if let Some(news) = decode::<ConnectionNews>(payload)
                    && self.may_speak(robot)
                    && self.is_robot(robot)
                {
                    self.hear_connection(robot, news.connected);
                }
            }
            Inbound::State { robot } => {
                if let Some(known) = decode::<KnownAttempts>(payload)
                    && self.may_speak(robot)
                {
                    self.hear_state(robot, &known.attempts, connection).await;
                }
            }
            Inbound::Status { robot, task } => {
                if let Some(status) = decode::<Status>(payload)
                    && self.may_speak(robot)
                    && status.robot_name == robot
                    && status.task_uid == task
                {
                    self.hear_status(robot, &status, connection).await;
                }
            }
            Inbound::Log { robot, task } => {
                if let Some(piece) = decode::<LogPiece>(payload)
                    && self.may_speak(robot)
                {
                    self.hear_log(robot, task, &piece);
                }
            }
        }
    }

    /// A robot that is cut off is to be given nothing: that is written down at once, unless many are.
    fn hear_connection(&mut self, robot: &str, connected: bool) {
        self.pulses.hear_connection(robot, connected);
        let now = self.clock.now();
        if !connected
            && self.at_once > 0
            && let Some(pulse) = self.pulses.take_news(robot, now)
        {
            self.at_once -= 1;
            self.write_down(robot.to_owned(), pulse, now);
        }
    }

    fn register(&self, asked: Register, connection: &Connection) {
        let (store, robots, credentials) =
            (self.store.clone(), self.robots.clone(), self.credentials.clone());
        let (settings, connection) = (self.settings.clone(), connection.clone());
        let now = self.clock.now();
        tokio::spawn(async move {
            let answer = join(&store, &robots, &settings.namespace, &credentials, &asked, now).await;
            if !answer.success {
                tracing::warn!(robot = asked.robot_id, why = answer.message, "a robot was not let in");
            }
            if name_rules::dns1123_label(&asked.robot_id).is_ok() {
                connection.publish(&settings.topics.response(&asked.robot_id), encode(&answer), None).await;
            }
        });
    }

    async fn hear_heartbeat(&mut self, heartbeat: &Heartbeat) {
        let robot = &heartbeat.robot_id;
        if self.credentials.check(robot, &heartbeat.token) != Claim::Robot {
            return tracing::debug!(robot, "a sign of life with a wrong credential is ignored");
        }
        self.pulses.hear(robot, &heartbeat.device_info, heartbeat.running, self.clock.now());
    }

    /// A robot connected and says what it knows: it is asked how that stands, and told what it does not know and what nobody
    /// wants any more.
    async fn hear_state(&mut self, robot: &str, known: &[Handle], connection: &Connection) {
        for handle in known {
            let wanted = self.open.get(handle).is_some_and(|open| open.robot == robot && open.stop.is_none());
            let kept = self.logs.has_ended(handle) && self.logs.robot(handle).as_deref() == Some(robot);
            if !wanted && !kept {
                let grace = self.open.get(handle).and_then(|open| open.stop);
                self.tell_to_delete(robot, handle, grace, connection).await;
            }
        }
        let wanted: Vec<Handle> = self.by_robot.get(robot).into_iter().flatten().cloned().collect();
        for handle in wanted {
            self.send(&handle, connection).await;
        }
    }

    async fn hear_status(&mut self, robot: &str, status: &Status, connection: &Connection) {
        let handle = status.handle();
        let now = self.clock.now();
        let Some(open) = self.open.get_mut(&handle).filter(|open| open.robot == robot) else {
            // It ended, and everybody knows; or it is somebody's invention.
            if !self.logs.has_ended(&handle) {
                self.tell_to_delete(robot, &handle, None, connection).await;
            }
            return;
        };
        if status.sequence != 0 && status.sequence <= open.sequence {
            return;
        }
        open.sequence = status.sequence.max(open.sequence);
        open.acknowledged = true;
        // That the robot has it is all that an acknowledgement says.
        let Some(what) = status.seen(now).filter(|what| *what != Observation::Created) else { return };
        open.ran |= what == Observation::Started;
        self.keep_tails(&handle, &status.log_tails);
        self.report(handle, what);
    }

    fn hear_log(&self, robot: &str, task: &str, piece: &LogPiece) {
        let handle = Handle { task: task.to_owned(), attempt: piece.attempt };
        let is_open = self.open.get(&handle).is_some_and(|open| open.robot == robot);
        if !is_open || name_rules::dns1123_subdomain(&piece.container).is_err() {
            return;
        }
        let Ok(bytes) = BASE64_STANDARD.decode(&piece.data) else { return };
        self.keep_log(&handle, &piece.container, piece.offset, &bytes);
    }

    /// A robot that sends no logs says the last of them with the end.
    fn keep_tails(&self, handle: &Handle, tails: &BTreeMap<String, String>) {
        for (container, tail) in tails.iter().filter(|(name, _)| name_rules::dns1123_subdomain(name).is_ok())
        {
            if matches!(self.logs.find(handle, container), Ok(None)) {
                self.keep_log(handle, container, 0, tail.as_bytes());
            }
        }
    }

    fn keep_log(&self, handle: &Handle, container: &str, offset: u64, bytes: &[u8]) {
        if let Err(error) = self.logs.append(handle, container, offset, bytes) {
            tracing::warn!(%handle, %error, "part of a log could not be kept");
        }
    }

    /// Takes one message of a robot, if it has not said too much already.
    fn may_speak(&mut self, robot: &str) -> bool {
        let may = self.buckets.take(robot, self.clock.now());
        if !may {
            tracing::debug!(robot, "a robot says too much; some of it is ignored");
        }
        may
    }

    fn is_robot(&self, robot: &str) -> bool {
        let key = muster_ports::store::Key::new(&self.robots, &self.settings.namespace, robot);
        self.store.get(&key).is_some()
    }
}

/// Reads a message; whatever is none is nobody's business.
fn decode<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload)
        .inspect_err(|error| tracing::debug!(%error, "a message cannot be read"))
        .ok()
}
