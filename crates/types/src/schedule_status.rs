//! What is reported about a Schedule: what it made, what comes next, and what it left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::metadata::{is_default, null_is_default};
use crate::task_status::State;
use crate::timestamp::Timestamp;

/// What was observed of the schedule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleStatus {
    /// The generation of the spec this was seen at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The time of the latest occurrence that a run was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Timestamp>,
    /// The time of the next occurrence; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_scheduled_time: Option<Timestamp>,
    /// Runs that ended last, the latest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub recent_runs: Vec<RunResult>,
    /// How many runs failed since one succeeded. Runs that were canceled do not count.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub consecutive_failures: u64,
    /// When a run last succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Timestamp>,
    /// How the timeSpec was understood.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub normal_time_spec: String,
    /// Occurrences before this time are not made: the schedule was suspended, or had another timeSpec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Times are counted from here and not from creation, which lay ahead of the clock by more than a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_from: Option<Timestamp>,
    /// Where occurrences before the last one were not made: no server ran, another run was active, or the clock leapt ahead. Those that
    /// lie ahead, because the clock was set back, are made when they come.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dropped_times: Vec<TimeRange>,
    /// How many occurrences are still to come; absent if there is no end to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    /// How many occurrences were left out because they were outdated, passed while the schedule was suspended, or belonged to a backfill and
    /// were replaced four times.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub dropped: u64,
    /// How many runs were made.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub made: u64,
    /// Runs that have not ended, the first hundred of them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub active: Vec<RunRef>,
    /// How far the backfills of the spec are.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub backfills: Vec<BackfillStatus>,
    /// Work whose end made the latest runs, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub triggered: Vec<TriggeredBy>,
    /// Work that ended up to here made its runs, or is too old to make any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_before: Option<TriggeredBy>,
    /// Aspects of the schedule's state, each type once.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A part of the time on the wall clock, between two times that do not belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeRange {
    /// Behind which it begins.
    pub from: Timestamp,
    /// Before which it ends.
    pub to: Timestamp,
}

/// A run of a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRef {
    /// Task or Job.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Name of the backfill it was made for, if it was made for one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub backfill: String,
    /// The time it was made for; absent if the end of other work made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
}

/// How a run of a schedule ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Task or Job.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Succeeded, Failed or Canceled.
    pub state: State,
    /// When it ended.
    pub at: Timestamp,
}

/// How far a backfill is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackfillStatus {
    /// Name of the backfill.
    pub name: String,
    /// The last time that can belong to it: later ones had not passed when it began.
    pub until: Timestamp,
    /// The next time; absent when all its runs were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// How many runs it made, those included that took the place of replaced ones. Runs that were there already are not among them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub made: u64,
    /// The time whose run was replaced last. Its run is made again three times; then the time is left out and counts as dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedTime>,
}

/// A time of a backfill whose run was canceled for another run of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplacedTime {
    /// The time.
    pub time: Timestamp,
    /// How often its run was replaced.
    pub count: u32,
}

/// Work whose end made a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TriggeredBy {
    /// When it ended.
    pub at: Timestamp,
    /// Its uid.
    pub uid: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "observedGeneration": 2,
            "lastScheduledTime": "2026-11-15T01:00:00Z",
            "nextScheduledTime": "2026-11-15T02:00:00Z",
            "recentRuns": [{"kind": "Task", "name": "r", "state": "Failed", "at": "2026-11-15T01:00:10Z"}],
            "consecutiveFailures": 1,
            "lastSuccessfulTime": "2026-11-15T01:00:09Z",
            "normalTimeSpec": "R5/2026-11-15T01:00:00Z/PT1H",
            "notBefore": "2026-11-15T00:30:00Z",
            "countedFrom": "2026-11-15T00:20:00Z",
            "remaining": 4,
            "dropped": 1,
            "made": 2,
            "active": [{
                "kind": "Task", "name": "nightly-20261115t010000", "backfill": "b",
                "scheduledAt": "2026-11-15T01:00:00Z",
            }],
            "backfills": [
                {"name": "b", "until": "2026-11-14T00:00:00Z", "next": "2026-11-13T00:00:00Z", "made": 3},
            ],
            "triggered": [{"at": "2026-11-15T01:00:00Z", "uid": "b"}],
            "triggeredBefore": {"at": "2026-11-15T00:00:00Z", "uid": "a"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T01:00:00Z"}],
        });
        let status: ScheduleStatus = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&status).unwrap(), example);
    }
}
