//! What comes in and what is to be done about it.

use muster_types::Timestamp;
use muster_types::explanation::Explanation;
use serde_json::Value;

use super::key::Key;
use super::robot::Robot;
use super::row::{Id, Row};

/// Something happened.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// The terminal has so many columns and lines.
    Size(u16, u16),
    /// It is so late.
    Time(Timestamp),
    /// All tasks there are will come.
    Listing,
    /// All tasks came.
    Listed,
    /// Tasks as they are now.
    Tasks(Vec<Row>),
    /// A task is gone.
    Gone(Id),
    /// The server does not answer, in words.
    Lost(String),
    /// The server answers again.
    Back,
    /// This server knows robots; those there are will come.
    ListingRobots,
    /// Robots as they are now.
    Robots(Vec<Robot>),
    /// A robot is gone.
    RobotGone(Id),
    /// What was asked for by [`Effect::Look`].
    Looked(Id, Result<Box<Looked>, String>),
    /// A part of the log with this ticket.
    LogPart(u64, Vec<u8>),
    /// A remark about the log with this ticket.
    LogNote(u64, String),
    /// The log with this ticket is over.
    LogEnd(u64),
    /// What came of an [`Effect::Cancel`] or [`Effect::Retry`].
    Done(Result<String, String>),
    /// The terminal is gone.
    NoInput,
}

/// A task in full.
#[derive(Debug, Clone)]
pub struct Looked {
    /// The task.
    pub task: Value,
    /// Why it is where it is, if the server says so.
    pub why: Option<Explanation>,
}

/// Something is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Get a task in full.
    Look(Id),
    /// Ask for the end of a task.
    Cancel(Id),
    /// Make a new task like one that has ended.
    Retry(Id),
    /// Follow the log of a task's container, and no other log.
    Follow { id: Id, container: Option<String>, ticket: u64 },
    /// Follow no log.
    Unfollow,
}
