//! What robots say of attempts, one message at a time: whether it counts, and what of it is handed on.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use muster_ports::runtime::{Handle, Observation};
use muster_types::name_rules;

use super::{Desk, ends};
use crate::bridge::decode;
use crate::messages::{KnownAttempts, LogPiece, Status};
use crate::topics::Inbound;

impl Desk {
    pub(super) fn hear(&mut self, about: Inbound<'_>, payload: &[u8]) {
        match about {
            // The reception hears these.
            Inbound::Register | Inbound::Heartbeat | Inbound::Connection { .. } => {}
            Inbound::State { robot } => {
                if let Some(known) = decode::<KnownAttempts>(payload)
                    && self.may_speak(robot)
                {
                    self.hear_state(robot, known.attempts);
                }
            }
            Inbound::Status { robot, task } => {
                if let Some(status) = decode::<Status>(payload)
                    && self.may_speak(robot)
                    && status.robot_name == robot
                    && status.task_uid == task
                {
                    self.hear_status(robot, &status);
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

    /// A robot connected and says what it knows: it is asked how that stands, and told what it does not know and what nobody
    /// wants any more.
    fn hear_state(&mut self, robot: &str, known: Vec<Handle>) {
        for handle in known {
            let kept = self.logs.has_ended(&handle) && self.logs.robot(&handle).as_deref() == Some(robot);
            if !self.is_of(&handle, robot) && !kept {
                self.says.note_stray(robot, handle);
            }
        }
        for handle in self.by_robot.get(robot).into_iter().flatten() {
            self.says.say_again(handle.clone());
            // What it said before counts once more: it may have been taken for lost since.
            if let Some(open) = self.open.get_mut(handle) {
                open.sequence = 0;
            }
        }
    }

    fn hear_status(&mut self, robot: &str, status: &Status) {
        let handle = status.handle();
        let now = self.clock.now();
        let Some(open) = self.open.get_mut(&handle).filter(|open| open.robot == robot) else {
            // It ended, and everybody knows; or it is somebody's invention.
            if !self.logs.has_ended(&handle) {
                self.says.note_stray(robot, handle);
            }
            return;
        };
        if status.sequence != 0 && status.sequence <= open.sequence {
            return;
        }
        let what = status.seen(now);
        // What came before it, the log as well, went to a former leader: the robot is asked to say all of it to this server.
        let follows = status.sequence > 1 && !open.acknowledged;
        if follows && !open.asked_again && what.as_ref().is_some_and(ends) {
            open.asked_again = true;
            self.says.say_again(handle);
            return;
        }
        open.sequence = status.sequence.max(open.sequence);
        open.acknowledged = true;
        // That the robot has it is all that an acknowledgement says.
        let Some(what) = what.filter(|what| *what != Observation::Created) else { return };
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

    fn may_speak(&mut self, robot: &str) -> bool {
        self.patience.hears(robot, self.clock.now())
    }
}
