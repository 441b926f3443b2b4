//! What goes over the wire: JSON, with the fields of the seed, a version, and what reliability needs besides.
//!
//! Fields that are not known are ignored, so that either side may be newer.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_types::attempt::{Cause, Ending, Handle, Launch, Observation};
use muster_types::metadata::StringMap;
use muster_types::robot_status::DeviceInfo;
use muster_types::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

/// The version of these messages.
pub const VERSION: u32 = 1;
/// No message is larger, logs included.
pub const MAX_PAYLOAD: usize = 256 << 10;
/// How much of a log goes into one message.
pub const LOG_PIECE: usize = 48 << 10;

/// A robot wants to join: `register`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Register {
    /// The version of the message.
    #[serde(default)]
    pub version: u32,
    /// Who.
    pub robot_id: String,
    /// A join token.
    pub token: String,
    /// What it is.
    #[serde(default)]
    pub device_info: DeviceInfo,
    /// Its labels.
    #[serde(default)]
    pub labels: StringMap,
    /// Tasks it can run at once.
    #[serde(default)]
    pub max_tasks: Option<u32>,
}

/// A robot is alive: `heartbeat`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// The version of the message.
    #[serde(default)]
    pub version: u32,
    /// Who.
    pub robot_id: String,
    /// Its own credential.
    pub token: String,
    /// What it is.
    #[serde(default)]
    pub device_info: DeviceInfo,
    /// Tasks it runs now.
    #[serde(default)]
    pub running: u32,
}

/// The answer to a robot that wants to join, and news about it later: `robots/{id}/response`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The version of the message.
    #[serde(default)]
    pub version: u32,
    /// Whether it was let in, or its wish was at least taken down.
    pub success: bool,
    /// Why, in a sentence.
    #[serde(default)]
    pub message: String,
    /// Who.
    pub robot_id: String,
    /// What it proves itself with from now on; shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// What a robot is to do: `robots/{id}/tasks/dispatch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dispatch {
    /// The version of the message.
    #[serde(default)]
    pub version: u32,
    /// What to do.
    pub action: Action,
    /// Uid of the task.
    pub task_uid: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// What to run, for `create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Launch>,
    /// It ran already as far as the server knows: a robot that knows nothing of it does not start it but says so.
    #[serde(default)]
    pub ran: bool,
    /// Up to where the server has the log of each container, for `create`: a robot that knows the attempt sends what follows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub log_offsets: BTreeMap<String, u64>,
    /// Time to end in, for `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
}

/// What a robot can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Run it, or say how it stands if it was run already.
    Create,
    /// End it and say so; if it has ended, forget it.
    Delete,
}

impl Dispatch {
    /// Which attempt it is about.
    pub fn handle(&self) -> Handle {
        Handle { task: self.task_uid.clone(), attempt: self.attempt }
    }
}

/// The words for how a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateWord {
    /// The robot has it; this acknowledges a dispatch.
    Dispatching,
    /// It runs.
    Running,
    /// It ended well.
    Completed,
    /// It ended otherwise.
    Failed,
}

/// How an attempt stands: `robots/{id}/tasks/{uid}/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of the message.
    #[serde(default)]
    pub version: u32,
    /// Uid of the task.
    pub task_uid: String,
    /// The robot.
    pub robot_name: String,
    /// Number of the attempt. Default: 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// Place of the report among those of this attempt, from 1; older ones change nothing. 0 is always taken.
    #[serde(default)]
    pub sequence: u64,
    /// How it stands.
    pub state: StateWord,
    /// Exit code, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// In a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What happened, in one word: Assigned, Downloading, Started, StartFailed, Completed, Failed, Timeout, Lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// When, by the robot's clock; for people alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// The last of what each container wrote, once it has ended. Kept if its log did not come otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub log_tails: BTreeMap<String, String>,
    /// All that was seen, where the words above do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
}

fn first() -> u32 {
    1
}

impl Status {
    /// A report of an attempt; nothing seen is the acknowledgement of its dispatch.
    pub fn of(handle: &Handle, robot: &str, sequence: u64, seen: Option<&Observation>, at: Millis) -> Self {
        let (state, event, exit_code, message) = match seen {
            None | Some(Observation::Created | Observation::Removed) => {
                (StateWord::Dispatching, "Assigned", None, String::new())
            }
            Some(Observation::Waiting { reason, message }) => {
                (StateWord::Dispatching, reason.as_str(), None, message.clone())
            }
            Some(Observation::Blocked { message, .. }) => {
                (StateWord::Dispatching, "Assigned", None, message.clone())
            }
            // Only a server takes back what it handed to its own executor.
            Some(Observation::Returned { .. }) => (StateWord::Dispatching, "Assigned", None, String::new()),
            Some(Observation::Started) => (StateWord::Running, "Started", None, String::new()),
            Some(Observation::StartFailed { reason, message, .. }) => {
                (StateWord::Failed, "StartFailed", None, format!("{reason}: {message}"))
            }
            Some(Observation::Lost { message, .. }) => (StateWord::Failed, "Lost", None, message.clone()),
            Some(Observation::Ended(ending)) => describe_end(ending),
        };
        Self {
            version: VERSION,
            task_uid: handle.task.clone(),
            robot_name: robot.to_owned(),
            attempt: handle.attempt,
            sequence,
            state,
            exit_code,
            message,
            event: event.to_owned(),
            updated_at: Some(at.to_timestamp()),
            log_tails: BTreeMap::new(),
            observation: seen.cloned(),
        }
    }

    /// Which attempt it is about.
    pub fn handle(&self) -> Handle {
        Handle { task: self.task_uid.clone(), attempt: self.attempt }
    }

    /// What was seen; `None` for the acknowledgement of a dispatch. The clock of a robot may be hours off: what ended did so when
    /// it was heard of.
    pub fn seen(&self, now: Millis) -> Option<Observation> {
        match &self.observation {
            Some(Observation::Ended(ending)) => {
                return Some(Observation::Ended(Ending { at: now, ..ending.clone() }));
            }
            Some(other) => return Some(other.clone()),
            None => {}
        }
        let ended = |exit_code: i32| {
            let cause = if self.event == "Timeout" { Cause::Timeout } else { Cause::Itself };
            let message = Some(self.message.clone()).filter(|message| !message.is_empty());
            Some(Observation::Ended(Ending { message, ..Ending::of_leader(exit_code, cause, now) }))
        };
        match self.state {
            StateWord::Dispatching => None,
            StateWord::Running => Some(Observation::Started),
            StateWord::Completed => ended(0),
            StateWord::Failed => ended(self.exit_code.filter(|code| *code != 0).unwrap_or(1)),
        }
    }
}

fn describe_end(ending: &Ending) -> (StateWord, &'static str, Option<i32>, String) {
    let code = ending.containers.first().map(|leader| leader.exit_code);
    let message = ending.message.clone().unwrap_or_default();
    match (ending.cause, code) {
        (Cause::Timeout, code) => {
            (StateWord::Failed, "Timeout", code, "Task terminated: Task timeout".to_owned())
        }
        (Cause::Itself, Some(0)) => (StateWord::Completed, "Completed", Some(0), message),
        (_, code) => (StateWord::Failed, "Failed", code, message),
    }
}

/// What a robot knows of its attempts: `robots/{id}/tasks/state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownAttempts {
    /// The version of the message.
    #[serde(default)]
    pub version: u32,
    /// The attempts that it runs, or that have ended and were not forgotten.
    pub attempts: Vec<Handle>,
}

/// A connection came or went: `robots/{id}/connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionNews {
    /// Whether there is one.
    pub connected: bool,
}

/// Part of what a container wrote: `robots/{id}/tasks/{uid}/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogPiece {
    /// The version of the message.
    #[serde(default)]
    pub version: u32,
    /// Number of the attempt.
    pub attempt: u32,
    /// Which container.
    pub container: String,
    /// Place of the first byte, from the first that was ever written.
    pub offset: u64,
    /// The bytes, in base64.
    pub data: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Handle {
        Handle { task: "u".to_owned(), attempt: 2 }
    }

    #[test]
    fn what_a_robot_saw_comes_through_whole() {
        for seen in [
            Observation::Started,
            Observation::Lost { reason: "A".to_owned(), message: "b".to_owned() },
            Observation::StartFailed { reason: "A".to_owned(), message: "b".to_owned(), transient: true },
        ] {
            let status = Status::of(&handle(), "r1", 3, Some(&seen), Millis(5000));
            let text = serde_json::to_string(&status).unwrap();
            let read: Status = serde_json::from_str(&text).unwrap();
            assert_eq!((read.handle(), read.seen(Millis(0))), (handle(), Some(seen)));
        }
    }

    #[test]
    fn a_robot_that_only_speaks_the_words_of_the_seed_is_understood() {
        let read = |text: &str| serde_json::from_str::<Status>(text).unwrap().seen(Millis(7));
        let status = |rest: &str| format!(r#"{{"taskUid":"u","robotName":"r1",{rest}}}"#);
        assert_eq!(read(&status(r#""state":"dispatching""#)), None);
        assert_eq!(read(&status(r#""state":"running""#)), Some(Observation::Started));
        let code = |rest: &str| match read(&status(rest)) {
            Some(Observation::Ended(ending)) => (ending.containers[0].exit_code, ending.cause),
            other => panic!("{other:?}"),
        };
        assert_eq!(code(r#""state":"completed""#), (0, Cause::Itself));
        assert_eq!(code(r#""state":"failed","exitCode":3"#), (3, Cause::Itself));
        assert_eq!(code(r#""state":"failed","exitCode":0"#), (1, Cause::Itself), "failed is not zero");
        assert_eq!(code(r#""state":"failed","exitCode":143,"event":"Timeout""#), (143, Cause::Timeout));
    }

    #[test]
    fn a_timeout_is_reported_in_the_words_of_the_seed() {
        let ending = Ending::of_leader(143, Cause::Timeout, Millis(0));
        let status = Status::of(&handle(), "r1", 2, Some(&Observation::Ended(ending)), Millis(0));
        assert_eq!((status.state, status.exit_code), (StateWord::Failed, Some(143)));
        assert_eq!(status.message, "Task terminated: Task timeout");
    }
}
