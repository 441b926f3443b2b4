//! What is written down about a task as it goes: records of what happened, and errors. Both are bounded, so that no task
//! grows for ever; nothing here decides what happens.
//!
//! Records (seed 000, H11): the same thing again for the same reason as the last time *that kind of thing* happened is
//! counted, whatever happened in between; anything else is a new record. When there are too many, the oldest go first that
//! only say how the task waited and ran, then the oldest. The latest record of each kind always stays, because rules ask
//! when a thing last happened.
//!
//! Errors: `(reporter) text`. The same error again adds nothing. When there are too many, the first stays, which is
//! mostly the cause of the others, and the oldest of the rest go.

use std::collections::BTreeSet;

use muster_types::Timestamp;
use muster_types::task_status::{Record, RecordKind, TaskError};

/// Most records of a task.
pub const MAX_RECORDS: usize = 64;
/// Most errors of a task.
pub const MAX_ERRORS: usize = 64;
/// Most bytes of a reason or an error; the rest is cut.
pub const MAX_TEXT: usize = 1024;

/// Writes down that something happened.
pub fn add_record(records: &mut Vec<Record>, kind: RecordKind, reason: &str, now: Timestamp) {
    let reason = cut(reason.to_owned());
    let latest = records.iter_mut().rev().find(|record| record.kind == kind);
    if let Some(same) = latest.filter(|record| record.reason == reason) {
        same.count = same.count.saturating_add(1);
        same.last = now;
    } else {
        records.push(Record { kind, count: 1, reason, last: now });
    }
    drop_oldest(records);
}

/// Writes down that something went wrong, and who says so.
pub fn add_error(errors: &mut Vec<TaskError>, severity: &str, reporter: &str, text: &str) {
    let error = TaskError { severity: severity.to_owned(), description: cut(format!("({reporter}) {text}")) };
    if errors.contains(&error) {
        return;
    }
    errors.push(error);
    let excess = errors.len().saturating_sub(MAX_ERRORS);
    errors.drain(1..=excess);
}

fn drop_oldest(records: &mut Vec<Record>) {
    let excess = records.len().saturating_sub(MAX_RECORDS);
    if excess == 0 {
        return;
    }
    let mut kinds = BTreeSet::new();
    let mut is_latest: Vec<bool> = records.iter().rev().map(|record| kinds.insert(record.kind)).collect();
    is_latest.reverse();
    let older: Vec<usize> =
        (0..).zip(is_latest).filter(|(_, latest)| !latest).map(|(index, _)| index).collect();
    let is_outcome = |index: &usize| records.get(*index).is_some_and(|record| is_outcome(record.kind));
    let (outcomes, steps): (Vec<usize>, Vec<usize>) = older.into_iter().partition(is_outcome);
    let dropped: BTreeSet<usize> = steps.into_iter().chain(outcomes).take(excess).collect();
    let mut index = 0..;
    records.retain(|_| index.next().is_none_or(|index| !dropped.contains(&index)));
}

/// True for what changed the course of a task; the rest says how it waited and ran.
const fn is_outcome(kind: RecordKind) -> bool {
    match kind {
        RecordKind::ImageError
        | RecordKind::PodNotFound
        | RecordKind::Preempted
        | RecordKind::PodSucceeded
        | RecordKind::PodFailed
        | RecordKind::Released
        | RecordKind::ContainerKilled
        | RecordKind::Canceled
        | RecordKind::Timeout => true,
        RecordKind::AddonSelected
        | RecordKind::ExtensionSelected
        | RecordKind::PodCreated
        | RecordKind::PodPending
        | RecordKind::PodRunning
        | RecordKind::PodDeleted
        | RecordKind::Escalated
        | RecordKind::Postponed
        | RecordKind::QuotaBlocked => false,
    }
}

/// The text, at most [`MAX_TEXT`] bytes of it.
fn cut(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT - MARK.len()));
        text.push_str(MARK);
    }
    text
}
