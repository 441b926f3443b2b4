//! From the status of an object to events: one per record, error and condition, one for the runs that a schedule made and one
//! for each of its runs that ended, of the last hour. Pure.

use std::collections::BTreeMap;

use muster_ports::clock::Millis;
use muster_ports::store::Stored;
use muster_types::condition::{Condition, ConditionStatus};
use muster_types::schedule_status::RunResult;
use muster_types::task_status::{Record, RecordKind, TaskError};
use muster_types::{State, Timestamp};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::event::Event;
use crate::ids;

/// What is older is not shown.
const HOUR: i64 = 3600;
/// What an error is called.
const ERROR: &str = "TaskError";
/// What the latest run of a schedule is called.
const RUN: &str = "RunMade";
/// Conditions that are nothing to be glad of when they hold; of all others it is the reverse.
const TROUBLES: [&str; 3] = ["Failed", "Lagging", "Failing"];
/// Conditions that say what was asked for or what is, neither good nor bad.
const PLAIN: [&str; 3] = ["Suspended", "Exhausted", "Complete"];
/// Why a condition may be False without anything being wrong.
const ASKED_FOR: [&str; 2] = ["Suspended", "Exhausted"];

/// What of an object events are derived from.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    api_version: String,
    kind: String,
    metadata: HeadMetadata,
    #[serde(default)]
    status: HeadStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    uid: String,
    #[serde(default)]
    creation_timestamp: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HeadStatus {
    events: Vec<Record>,
    errors: Vec<TaskError>,
    conditions: Vec<Condition>,
    terminated: Option<Timestamp>,
    state_since: Option<Timestamp>,
    last_scheduled_time: Option<Timestamp>,
    made: u32,
    recent_runs: Vec<RunResult>,
}

/// The events of a stored object, oldest records first. None of one that cannot be read or is in no namespace.
pub fn events_of(stored: &Stored, now: Millis) -> Vec<Event> {
    if stored.namespace().is_empty() {
        return Vec::new();
    }
    let Ok(head) = serde_json::from_slice::<Head>(stored.json()) else { return Vec::new() };
    let oldest = now.0.div_euclid(1000) - HOUR;
    let is_recent = |event: &Event| event.last.as_second() >= oldest;
    let mut maker = Maker { stored, head: &head, seen: BTreeMap::new() };
    let records: Vec<Event> = head.status.events.iter().map(|record| maker.of_record(record)).collect();
    let errors: Vec<Event> = head.status.errors.iter().filter_map(|error| maker.of_error(error)).collect();
    let conditions: Vec<Event> =
        head.status.conditions.iter().filter_map(|condition| maker.of_condition(condition)).collect();
    let runs = maker.of_runs();
    let results: Vec<Event> = head.status.recent_runs.iter().map(|run| maker.of_result(run)).collect();
    let events = records.into_iter().chain(errors).chain(conditions).chain(runs).chain(results);
    events.filter(is_recent).collect()
}

struct Maker<'a> {
    stored: &'a Stored,
    head: &'a Head,
    /// How often each thing came before: the same thing may have happened again after another.
    seen: BTreeMap<(String, String), u32>,
}

impl Maker<'_> {
    fn of_record(&mut self, record: &Record) -> Event {
        let reason = record.kind.to_string();
        let is_warning = is_warning(record.kind);
        let created = self.head.metadata.creation_timestamp;
        // Of what happened several times only the last time is recorded; it was all since the task was made.
        let first = if record.count > 1 { created.unwrap_or(record.last) } else { record.last };
        self.event(reason, &record.reason, is_warning, record.count, first, record.last)
    }

    /// Errors have no time of their own: they are as old as the end of the task, or the state it is in.
    fn of_error(&mut self, error: &TaskError) -> Option<Event> {
        let status = &self.head.status;
        let at = status.terminated.or(status.state_since).or(self.head.metadata.creation_timestamp)?;
        Some(self.event(ERROR.to_owned(), &error.description, true, 1, at, at))
    }

    /// The word of a condition that was not given is its type. What is not known yet is no news.
    fn of_condition(&mut self, condition: &Condition) -> Option<Event> {
        let Condition { r#type, status, reason, message, last_transition_time: at, .. } = condition;
        let is_plain = PLAIN.contains(&r#type.as_str()) || ASKED_FOR.contains(&reason.as_str());
        let is_trouble = TROUBLES.contains(&r#type.as_str());
        let is_warning = match status {
            ConditionStatus::Unknown => return None,
            ConditionStatus::True => is_trouble,
            ConditionStatus::False if is_trouble => return None,
            ConditionStatus::False => !is_plain,
        };
        let reason = if reason.is_empty() { r#type } else { reason };
        let note = match message.as_str() {
            "" => format!("{type} is {status}"),
            message => format!("{type} is {status}: {message}"),
        };
        Some(self.event(reason.clone(), &note, is_warning, 1, *at, *at))
    }

    fn of_runs(&mut self) -> Option<Event> {
        let status = &self.head.status;
        let last = status.last_scheduled_time.filter(|_| status.made > 0)?;
        let first = self.head.metadata.creation_timestamp.filter(|_| status.made > 1).unwrap_or(last);
        Some(self.event(RUN.to_owned(), "a run was made", false, status.made, first, last))
    }

    /// How a run of a schedule ended: `RunSucceeded`, `RunFailed` or `RunCanceled`.
    fn of_result(&mut self, run: &RunResult) -> Event {
        let RunResult { kind, name, state, at } = run;
        let note = format!("{kind} {name} ended: {state}");
        self.event(format!("Run{state}"), &note, *state == State::Failed, 1, *at, *at)
    }

    fn event(
        &mut self,
        reason: String,
        note: &str,
        is_warning: bool,
        count: u32,
        first: Timestamp,
        last: Timestamp,
    ) -> Event {
        let uid = &self.head.metadata.uid;
        let times = self.seen.entry((reason.clone(), note.to_owned())).or_insert(0);
        *times += 1;
        let digest = Sha256::digest(format!("{uid}\n{reason}\n{times}\n{note}"));
        let hex = ids::hex(&digest[..16]);
        let object = self.stored.name();
        Event {
            name: format!("{object}.{}", &hex[..16]),
            uid: format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]),
            revision: self.stored.revision.to_string(),
            namespace: self.stored.namespace().to_owned(),
            api_version: self.head.api_version.clone(),
            kind: self.head.kind.clone(),
            object: object.to_owned(),
            object_uid: uid.clone(),
            reason,
            note: note.to_owned(),
            is_warning,
            count,
            first,
            last,
        }
    }
}

/// True for what somebody should look at.
const fn is_warning(kind: RecordKind) -> bool {
    match kind {
        RecordKind::ImageError
        | RecordKind::PodNotFound
        | RecordKind::PodFailed
        | RecordKind::Preempted
        | RecordKind::QuotaBlocked
        | RecordKind::Timeout => true,
        RecordKind::AddonSelected
        | RecordKind::ExtensionSelected
        | RecordKind::PodCreated
        | RecordKind::PodPending
        | RecordKind::PodRunning
        | RecordKind::PodSucceeded
        | RecordKind::PodDeleted
        | RecordKind::Escalated
        | RecordKind::Released
        | RecordKind::ContainerKilled
        | RecordKind::Postponed
        | RecordKind::Canceled => false,
    }
}
