//! What a shepherd is told and what it says. Both only ever get additions: a shepherd may be older than the agent that takes it over.

use std::time::Duration;

use muster_types::attempt::{Fact, Handle, Launch};
use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// What a shepherd is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// How to work. Comes first, and once on each connection; one that works already stays as it is, but for how long it goes on
    /// when it is deserted.
    Begin(Settings),
    /// Start an attempt.
    Start(Launch),
    /// Say what became of an attempt that was asked for in an earlier life.
    TakeUp(Handle),
    /// Give an attempt back that has not started.
    Recall(Handle),
    /// End an attempt.
    Stop {
        /// Which one.
        handle: Handle,
        /// Time between asking and killing.
        grace: Duration,
    },
    /// End every attempt, and start none that waits.
    StopAll {
        /// Time between asking and killing.
        grace: Duration,
    },
    /// Whether whoever gives the orders hears from its own server. Attempts that may not run unseen end when it did not for too long,
    /// or is gone itself.
    Hears(bool),
    /// Kill what still runs, and end.
    End,
    /// What runs may run up to this moment of [`machine_time`](crate::machine_time), in place of any that was named before; then
    /// everything is killed and the shepherd ends, without being told. Attempts that were never given one have no such limit.
    RunUntil(Duration),
    /// The server is stopped: end every attempt with its own grace, and start none that waits.
    StopWithServer {
        /// The longest time between asking and killing.
        at_most: Duration,
    },
}

/// What a shepherd says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// It is ready. Answers `Begin`, before anything else is said.
    Ready {
        /// Its process.
        shepherd: u32,
    },
    /// Something that the machine does not allow, in words.
    Notice(String),
    /// Something was seen.
    Fact(Fact),
    /// It cannot work, and ends.
    Failed {
        /// Why, for people.
        message: String,
    },
}
