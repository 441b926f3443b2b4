//! The report of an adapter on a managed resource: the body of `PUT …/statuses`, and what became of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::ConditionStatus;
use crate::metadata::null_is_default;
use crate::timestamp::MicroTimestamp;

/// The condition that says the work was started.
pub const APPLIED: &str = "Applied";
/// The condition that says how the work came out.
pub const AVAILABLE: &str = "Available";
/// The condition that says whether the adapter itself could tell.
pub const HEALTH: &str = "Health";
/// The condition that says whether everything was cleaned up after a deletion.
pub const FINALIZED: &str = "Finalized";
/// The conditions every report has.
pub const MANDATORY: [&str; 3] = [APPLIED, AVAILABLE, HEALTH];

/// What an adapter saw of a resource, at one generation of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdapterReport {
    /// Name of the adapter that reports.
    #[serde(deserialize_with = "null_is_default")]
    pub adapter: String,
    /// The generation of the resource this is about.
    #[serde(deserialize_with = "null_is_default")]
    pub observed_generation: i64,
    /// When it was seen. Default: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_time: Option<MicroTimestamp>,
    /// What was seen; Applied, Available and Health are needed.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<ReportedCondition>,
    /// Any document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Uid of the resource this is about, so that a report never falls on a later one of the same name. Default: any.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub uid: String,
}

/// One aspect of what an adapter saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedCondition {
    /// What it is about, for example Available.
    pub r#type: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One CamelCase word that says why.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

/// The condition of a type among those reported.
pub fn find_reported<'a>(conditions: &'a [ReportedCondition], r#type: &str) -> Option<&'a ReportedCondition> {
    conditions.iter().find(|condition| condition.r#type == r#type)
}

words! {
    /// What became of a report.
    pub enum ReportOutcome {
        /// It is the adapter's current report.
        Accepted = "Accepted",
        /// Available is Unknown: it is kept for tracing, and counts for nothing else.
        Traced = "Traced",
        /// It changes nothing.
        Discarded = "Discarded",
    }
}

/// The answer to a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportAnswer {
    /// What became of it.
    pub outcome: ReportOutcome,
    /// One CamelCase word that says why.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_report_of_the_guide_reads_and_writes_back() {
        let example = json!({
            "adapter": "dns",
            "observedGeneration": 2,
            "observedTime": "2026-11-15T14:00:00.000000Z",
            "conditions": [{"type": "Applied", "status": "True", "reason": "Done", "message": "all there"}],
            "data": {"zone": "a"},
            "uid": "u",
        });
        let report: AdapterReport = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&report).unwrap(), example);
        assert!(find_reported(&report.conditions, APPLIED).is_some());
        assert!(find_reported(&report.conditions, HEALTH).is_none());
    }

    #[test]
    fn the_answer_says_why_in_words() {
        let answer = ReportAnswer {
            outcome: ReportOutcome::Discarded,
            reason: "StaleGeneration".into(),
            message: String::new(),
        };
        let json = json!({"outcome": "Discarded", "reason": "StaleGeneration"});
        assert_eq!(serde_json::to_value(answer).unwrap(), json);
    }
}
