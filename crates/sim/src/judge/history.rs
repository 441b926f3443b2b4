//! A history: what was committed and what happened outside, in the order in which it happened.
//!
//! It is all that the judge reads. A simulation records it, and so can whoever watches real servers: one entry is one line
//! of JSON.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Something that happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// When, by a clock that never jumps, in milliseconds.
    pub at: i64,
    /// What clocks on the wall showed then, in milliseconds since 1970.
    pub wall: i64,
    /// How long before that it happened at most, where it could only be noted later, in milliseconds. A commit was decided so long
    /// before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: i64,
    /// What happened.
    pub what: What,
}

/// What can happen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// A change was committed.
    Change(Commit),
    /// A quota refused the program of an attempt.
    Refused(Program),
    /// It was let in, and waits for a node.
    Admitted(Program),
    /// The program of an attempt was started.
    Started(Program),
    /// The program of an attempt is over: with an exit code, or killed with whatever it ran on.
    Ended(Program, Option<i32>),
    /// The logs of an attempt were kept.
    Kept(Program),
    /// The files of an attempt were let go.
    Removed(Program),
    /// A message reached a sink.
    Delivered(Delivery),
    /// A user asked for something that a change alone does not show.
    Asked(Request),
    /// A server began to lead, or stopped to.
    Server(String, Standing),
    /// A robot can be reached, or cannot.
    Link(String, bool),
    /// The clock on the wall jumped by so many milliseconds.
    ClockJumped(i64),
    /// The store refused a commit.
    StoreRefused,
    /// How much runs at once where processes run.
    Room(Room),
    /// From here on nobody asks for anything, and nothing goes wrong.
    Quiet,
    /// How much went wrong in all.
    Faults(u32),
}

/// A committed change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Commit {
    /// Its place in the order of changes.
    pub revision: u64,
    /// Plural and group, such as `tasks.muster.dev`.
    pub resource: String,
    /// Namespace and name.
    pub path: String,
    /// The object is gone; what it was is the last there is of it.
    #[serde(default)]
    pub deleted: bool,
    /// The object.
    pub object: Box<RawValue>,
}

/// The program of an attempt, and where it runs: `server/NAME`, `robot/NAME` or `cluster/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Program {
    /// Uid of the task.
    pub task: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// Where.
    pub place: String,
}

/// A message that reached a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Name of the sink.
    pub sink: String,
    /// Id of the message.
    pub id: String,
    /// Uid of the object it is about.
    pub about: String,
    /// What it says.
    pub topic: String,
}

/// What a user asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// For example `delete`.
    pub verb: String,
    /// Plural and group.
    pub resource: String,
    /// Namespace and name.
    pub path: String,
}

/// What became of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// It decides what runs.
    Leads,
    /// It stands still, and whatever it runs goes on.
    Paused,
    /// It is gone, and whatever it ran with it.
    Crashed,
    /// It goes on, but what runs its processes is gone with them, and is started again: what was to run there starts later.
    WithoutShepherd,
}

/// How much runs at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Programs.
    pub slots: u64,
    /// Memory they are given, in bytes; `None` has no limit.
    pub memory: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The history as lines of JSON.
pub fn to_lines(history: &[Entry]) -> Result<String, serde_json::Error> {
    let mut lines = String::new();
    for entry in history {
        lines += &serde_json::to_string(entry)?;
        lines.push('\n');
    }
    Ok(lines)
}

/// The history that lines of JSON hold.
pub fn of_lines(lines: &str) -> Result<Vec<Entry>, serde_json::Error> {
    lines.lines().map(serde_json::from_str).collect()
}
