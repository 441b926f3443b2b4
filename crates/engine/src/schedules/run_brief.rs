//! What of a stored Task or Job schedules must know, read without the rest.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use muster_types::metadata::StringMap;
use muster_types::schedule::TriggerKind;
use muster_types::{State, Timestamp};
use muster_workflows::schedule_run::{BACKFILL, REPLACED_BY, SCHEDULED_AT, depth_of};
use muster_workflows::trigger::EndedWork;
use serde::Deserialize;

/// Every run of a schedule has it in its owner references, hardly anything else does.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"kind\":\"Schedule\""));

/// A Task or a Job, in brief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunBrief {
    /// Uid of the schedule that made it.
    pub owner: Option<String>,
    /// How it ended; `None` if it has not.
    pub ended: Option<EndedWork>,
    /// Name of the backfill it was made for; empty if it was made for none.
    pub backfill: String,
    /// The time it was made for.
    pub scheduled_at: Option<Timestamp>,
    /// It was canceled for another run and did not succeed: its time is made again.
    pub is_replaced: bool,
    /// Its end was asked for, or it is being deleted.
    pub is_leaving: bool,
    /// Its labels.
    pub labels: StringMap,
}

/// True if an object may be a run of a schedule.
pub fn may_be_run(json: &[u8]) -> bool {
    MARK.find(json).is_some()
}

impl RunBrief {
    /// Reads a stored object. `None` if it cannot be read.
    pub fn read(kind: TriggerKind, json: &[u8]) -> Option<Self> {
        let Stored { mut metadata, spec, status } = serde_json::from_slice(json).ok()?;
        let is_schedule = |owner: &&Owner| owner.controller == Some(true) && owner.kind == "Schedule";
        let owner = metadata.owner_references.iter().find(is_schedule).map(|owner| owner.uid.clone());
        // A job that was skipped is as good as canceled.
        let state = match status.state.as_deref() {
            Some("Succeeded") => Some(State::Succeeded),
            Some("Failed") => Some(State::Failed),
            Some("Canceled" | "Skipped") => Some(State::Canceled),
            _ => None,
        };
        let ended = state.map(|state| EndedWork {
            kind,
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            at: status.terminated.or(metadata.creation_timestamp).unwrap_or(Timestamp::MIN),
            state,
            depth: depth_of(&metadata.annotations),
        });
        let backfill = metadata.annotations.remove(BACKFILL).unwrap_or_default();
        let scheduled_at = metadata.annotations.get(SCHEDULED_AT).and_then(|time| time.parse().ok());
        // One that succeeded before its cancel was taken in has made its time.
        let has_succeeded = ended.as_ref().is_some_and(|work| work.state == State::Succeeded);
        let is_replaced = metadata.annotations.contains_key(REPLACED_BY) && !has_succeeded;
        let is_leaving = spec.cancel || metadata.deletion_timestamp.is_some();
        Some(Self { owner, ended, backfill, scheduled_at, is_replaced, is_leaving, labels: metadata.labels })
    }
}

#[derive(Deserialize)]
struct Stored {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: String,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    labels: StringMap,
    #[serde(default)]
    annotations: StringMap,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    kind: String,
    uid: String,
    controller: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    cancel: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    state: Option<String>,
    terminated: Option<Timestamp>,
}
