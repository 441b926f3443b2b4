//! From the status of a task to events: one per record and one per error, of the last hour. Pure.

use std::collections::BTreeMap;

use muster_ports::clock::Millis;
use muster_ports::store::Stored;
use muster_types::Timestamp;
use muster_types::task_status::{Record, RecordKind, TaskError};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::event::Event;
use crate::ids;

/// What is older is not shown.
const HOUR: i64 = 3600;
/// What an error is called.
const ERROR: &str = "TaskError";

/// What of a task events are derived from.
#[derive(Deserialize)]
struct Head {
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
    terminated: Option<Timestamp>,
    state_since: Option<Timestamp>,
}

/// The events of a stored task, oldest records first. None of a task that cannot be read.
pub fn events_of(stored: &Stored, now: Millis) -> Vec<Event> {
    let Ok(head) = serde_json::from_slice::<Head>(stored.json()) else { return Vec::new() };
    let oldest = now.0.div_euclid(1000) - HOUR;
    let is_recent = |event: &Event| event.last.as_second() >= oldest;
    let mut maker = Maker { stored, head: &head, seen: BTreeMap::new() };
    let records: Vec<Event> = head.status.events.iter().map(|record| maker.of_record(record)).collect();
    let errors: Vec<Event> = head.status.errors.iter().filter_map(|error| maker.of_error(error)).collect();
    records.into_iter().chain(errors).filter(is_recent).collect()
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
        let task = self.stored.name();
        Event {
            name: format!("{task}.{}", &hex[..16]),
            uid: format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]),
            revision: self.stored.revision.to_string(),
            namespace: self.stored.namespace().to_owned(),
            task: task.to_owned(),
            task_uid: uid.clone(),
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
