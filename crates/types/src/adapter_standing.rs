//! How one adapter stands to one managed resource: its current report, what it made last, and a short history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapter_report::ReportedCondition;
use crate::condition::ConditionStatus;
use crate::metadata::{is_default, null_is_default};
use crate::timestamp::{MicroTimestamp, Timestamp};

/// One adapter's part of the status of a managed resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdapterStanding {
    /// Name of the adapter.
    #[serde(deserialize_with = "null_is_default")]
    pub adapter: String,
    /// The generation of the resource the current report is about; 0 if there is none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub observed_generation: i64,
    /// When what the current report says was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_time: Option<MicroTimestamp>,
    /// When the resource's age is counted from: the last report that was not Unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_report_time: Option<Timestamp>,
    /// What the current report says.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<ReportedCondition>,
    /// The document of the current report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// How often in a row its work failed.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub failures: u32,
    /// The last pulse it answered; 0 if there was none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub answered_pulse: u64,
    /// What it made last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<AdapterWork>,
    /// The latest reports, oldest first, those that say the same as one.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<ReportTrace>,
}

/// What an adapter made last: a Task, a manifest or a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdapterWork {
    /// Which in the order this adapter made for this resource, from 1.
    #[serde(deserialize_with = "null_is_default")]
    pub number: u64,
    /// The generation it was made for.
    #[serde(deserialize_with = "null_is_default")]
    pub generation: i64,
    /// Name of the Task; empty for a manifest or a call.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub task: String,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<WorkPhase>,
    /// When it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended; absent while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// True if it cleans up after a deletion.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub delete: bool,
}

words! {
    /// Where the work of an adapter is.
    pub enum WorkPhase {
        /// It was decided on and goes on.
        InProgress = "InProgress",
        /// It ended well.
        Succeeded = "Succeeded",
        /// It ended badly.
        Failed = "Failed",
    }
}

impl AdapterWork {
    /// True if it has not ended.
    pub fn goes_on(&self) -> bool {
        !matches!(self.phase, Some(WorkPhase::Succeeded | WorkPhase::Failed))
    }
}

/// Reports that said the same one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportTrace {
    /// The generation they were about.
    pub generation: i64,
    /// What they said of Available.
    pub available: ConditionStatus,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// How many there were.
    pub count: u32,
    /// When the last of them was seen.
    pub last: MicroTimestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "adapter": "dns",
            "observedGeneration": 2,
            "observedTime": "2026-11-15T14:00:00.000000Z",
            "lastReportTime": "2026-11-15T14:00:00Z",
            "conditions": [{"type": "Available", "status": "True"}],
            "data": {"a": 1},
            "failures": 1,
            "answeredPulse": 3,
            "work": {
                "number": 1, "generation": 2, "task": "x-dns-1", "phase": "Succeeded",
                "started": "2026-11-15T14:00:00Z", "ended": "2026-11-15T14:00:00Z", "delete": true,
            },
            "history": [{
                "generation": 2, "available": "True", "reason": "Done", "count": 1,
                "last": "2026-11-15T14:00:00.000000Z",
            }],
        });
        let standing: AdapterStanding = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&standing).unwrap(), example);
        assert!(!standing.work.unwrap().goes_on());
        assert!(AdapterWork::default().goes_on());
    }
}
