//! What an addon says of its own work, folded into the status of its task (seed 000, H9; design promise 7).
//!
//! A report is keyed by attempt and sequence: one of an older attempt, or one that is not newer than the last of its
//! attempt, changes nothing. A task that has no attempt or has ended takes no reports. What is kept is bounded, and more
//! than that is refused instead of cut, so that an addon learns of it. Nothing here changes the state of a task.

use std::fmt;

use muster_types::State;
use muster_types::task_status::{ReportSequence, TaskError, TaskStatus};
use serde::Deserialize;
use serde_json::Value;

use crate::progress::highest_attempt;
use crate::records::{MAX_ERRORS, MAX_TEXT, add_error};

/// Most lines of activity.
pub const MAX_LINES: usize = 1000;
/// Most bytes of one line.
pub const MAX_LINE: usize = 1024;
/// Most bytes of the result, as JSON.
pub const MAX_RESULT: usize = 64 * 1024;
/// Most bytes of a severity.
const MAX_SEVERITY: usize = 64;
/// Who errors are recorded for.
const REPORTER: &str = "addon";
/// How bad an error is that does not say.
const DEFAULT_SEVERITY: &str = "Error";

/// What an addon says. Numbers and the result replace what was reported before; lists are added to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// The attempt that reports; the latest if absent.
    pub attempt: Option<u32>,
    /// Place of this report among those of the attempt; absent if the reporter does not count.
    pub sequence: Option<u64>,
    /// What it does, line by line.
    pub activity: Vec<String>,
    /// How many steps it expects.
    pub total: Option<u64>,
    /// How many steps it has done.
    pub completed: Option<u64>,
    /// How many steps more it has done.
    pub increment: Option<u64>,
    /// What went wrong.
    pub errors: Vec<TaskError>,
    /// Any document.
    pub result: Option<Value>,
}

/// What becomes of earlier reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// They stay, and this one is added.
    Kept,
    /// They go.
    Replaced,
}

/// Why a report changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// It comes too late, which is nobody's mistake.
    Ignored(Ignored),
    /// The task takes none now.
    NotNow(NotNow),
    /// A part of it is not allowed.
    Invalid {
        /// Which part.
        field: String,
        /// Why.
        why: String,
    },
}

/// How a report comes too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// A later attempt has begun.
    OldAttempt {
        /// The one that reports.
        reported: u32,
        /// The latest.
        latest: u32,
    },
    /// A later report of the same attempt was taken, or this very one.
    OldSequence {
        /// Its place.
        reported: u64,
        /// The last that was taken.
        last: u64,
    },
}

/// Why a task takes no reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotNow {
    /// It never had an attempt.
    NoAttempt,
    /// It has ended.
    Ended(State),
}

impl Ignored {
    /// One word, for counting.
    pub const fn word(self) -> &'static str {
        match self {
            Self::OldAttempt { .. } => "attempt",
            Self::OldSequence { .. } => "sequence",
        }
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldAttempt { reported, latest } => {
                write!(f, "attempt {reported} is over; the latest is {latest}")
            }
            Self::OldSequence { reported, last } => {
                write!(f, "report {reported} comes too late; report {last} was taken already")
            }
        }
    }
}

impl fmt::Display for NotNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAttempt => f.write_str("the task has no attempt yet, so there is nothing to report on"),
            Self::Ended(state) => write!(f, "the task has ended ({state}) and takes no more reports"),
        }
    }
}

/// Takes in a report.
pub fn fold_report(status: &mut TaskStatus, report: &Report, earlier: Earlier) -> Result<(), Unfit> {
    check_open(status).map_err(Unfit::NotNow)?;
    check_place(status, report)?;
    check_parts(report)?;
    let mut folded = status.clone();
    if earlier == Earlier::Replaced {
        forget(&mut folded);
    }
    add(&mut folded, report);
    check_bounds(&folded)?;
    *status = folded;
    Ok(())
}

/// Forgets all reports. The place of the last one stays, so that older ones come too late still.
pub fn clear_report(status: &mut TaskStatus) -> Result<(), NotNow> {
    check_open(status)?;
    forget(status);
    Ok(())
}

/// The errors that the addon reported.
pub fn reported_errors(status: &TaskStatus) -> impl Iterator<Item = &TaskError> {
    status.errors.iter().filter(|error| is_reported(error))
}

fn check_open(status: &TaskStatus) -> Result<(), NotNow> {
    let state = status.state.unwrap_or_default();
    if state.is_terminal() {
        return Err(NotNow::Ended(state));
    }
    if status.current_attempt() == 0 { Err(NotNow::NoAttempt) } else { Ok(()) }
}

fn check_place(status: &TaskStatus, report: &Report) -> Result<(), Unfit> {
    let latest = status.current_attempt();
    let highest = highest_attempt(status).max(latest);
    let reported = report.attempt.unwrap_or(latest);
    if reported > highest {
        let why = format!("attempt {reported} has not begun; the latest is {highest}");
        return Err(Unfit::Invalid { field: "attempt".to_owned(), why });
    }
    if reported != latest {
        return Err(Unfit::Ignored(Ignored::OldAttempt { reported, latest }));
    }
    let last = status.report_sequence.filter(|last| last.attempt == latest).map(|last| last.sequence);
    match (report.sequence, last) {
        (Some(reported), Some(last)) if reported <= last => {
            Err(Unfit::Ignored(Ignored::OldSequence { reported, last }))
        }
        _ => Ok(()),
    }
}

fn check_parts(report: &Report) -> Result<(), Unfit> {
    let refuse = |field: String, why: String| Err(Unfit::Invalid { field, why });
    if let Some(index) = report.activity.iter().position(|line| line.len() > MAX_LINE) {
        return refuse(format!("activity[{index}]"), format!("a line has at most {MAX_LINE} bytes"));
    }
    for (index, error) in report.errors.iter().enumerate() {
        if error.description.is_empty() {
            return refuse(format!("errors[{index}].description"), "must say what went wrong".to_owned());
        }
        if error.severity.len() > MAX_SEVERITY {
            let why = format!("has at most {MAX_SEVERITY} bytes, for example Error or Warning");
            return refuse(format!("errors[{index}].severity"), why);
        }
    }
    if report.completed.is_some() && report.increment.is_some() {
        return refuse("increment".to_owned(), "cannot be given together with completed".to_owned());
    }
    let size = report.result.as_ref().map_or(0, |result| result.to_string().len());
    if size > MAX_RESULT {
        let why = format!(
            "has {size} bytes as JSON; at most {MAX_RESULT} are kept, attach what is larger as a file"
        );
        return refuse("result".to_owned(), why);
    }
    Ok(())
}

fn forget(status: &mut TaskStatus) {
    status.activity.clear();
    status.errors.retain(|error| !is_reported(error));
    status.total = None;
    status.completed = None;
    status.result = None;
}

fn add(status: &mut TaskStatus, report: &Report) {
    status.activity.extend(report.activity.iter().cloned());
    status.total = report.total.or(status.total);
    status.completed = report.completed.or(status.completed);
    if let Some(increment) = report.increment {
        status.completed = Some(status.completed.unwrap_or(0).saturating_add(increment));
    }
    if report.result.is_some() {
        status.result.clone_from(&report.result);
    }
    for error in &report.errors {
        let severity = if error.severity.is_empty() { DEFAULT_SEVERITY } else { &error.severity };
        // What was read from here may be sent back as it is.
        let text = error.description.strip_prefix(&prefix()).unwrap_or(&error.description);
        // Beyond the bound the oldest would go; one more than that shows that it was passed.
        if status.errors.len() <= MAX_ERRORS {
            push_error(status, severity, text);
        }
    }
    if let Some(sequence) = report.sequence {
        status.report_sequence = Some(ReportSequence { attempt: status.current_attempt(), sequence });
    }
}

/// Adds an error, also one too many, which [`check_bounds`] then refuses.
fn push_error(status: &mut TaskStatus, severity: &str, text: &str) {
    let mut one = Vec::new();
    add_error(&mut one, severity, REPORTER, text);
    one.retain(|error| !status.errors.contains(error));
    status.errors.append(&mut one);
}

fn check_bounds(status: &TaskStatus) -> Result<(), Unfit> {
    if status.activity.len() > MAX_LINES {
        let why = format!("a task keeps at most {MAX_LINES} lines; replace the report to begin anew");
        return Err(Unfit::Invalid { field: "activity".to_owned(), why });
    }
    if status.errors.len() > MAX_ERRORS {
        let why = format!("a task keeps at most {MAX_ERRORS} errors; attach a file for more");
        return Err(Unfit::Invalid { field: "errors".to_owned(), why });
    }
    Ok(())
}

fn is_reported(error: &TaskError) -> bool {
    error.description.starts_with(&prefix())
}

fn prefix() -> String {
    format!("({REPORTER}) ")
}

const _: () = assert!(MAX_TEXT <= MAX_LINE, "an error is no longer than a line");
