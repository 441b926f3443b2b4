//! What is reported about an EventSink: how far its messages were confirmed, and what stands in the way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::Duration;
use crate::metadata::{is_default, null_is_default};
use crate::timestamp::Timestamp;

/// What was observed of the sink.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventSinkStatus {
    /// The generation of the spec this was seen at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Every change up to this revision was told, and that was confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_revision: Option<u64>,
    /// When a message was last confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_confirmed_time: Option<Timestamp>,
    /// Messages that were confirmed.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub confirmed: u64,
    /// Messages that are not confirmed yet.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub backlog: u64,
    /// Changes that were not looked at yet.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub behind: u64,
    /// Age of the oldest change that was not told yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Duration>,
    /// Messages that were refused for good and set aside.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub dead_lettered: u64,
    /// How often changes were forgotten before they were told, so that what is there was told instead.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub resyncs: u64,
    /// What became of the latest test message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<SinkRequest>,
    /// What became of the latest request to send messages again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<SinkRequest>,
    /// Aspects of the sink's state, each type once.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// What became of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SinkRequest {
    /// The value of the annotation that asked.
    pub request: String,
    /// When it was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// True if it succeeded.
    pub done: bool,
    /// What happened, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "observedGeneration": 1,
            "confirmedRevision": 1234,
            "lastConfirmedTime": "2026-11-15T01:00:00Z",
            "confirmed": 10,
            "backlog": 2,
            "behind": 3,
            "lag": "5s",
            "deadLettered": 1,
            "resyncs": 1,
            "test": {"request": "a", "at": "2026-11-15T01:00:00Z", "done": true, "message": "confirmed"},
            "replay": {"request": "5#b", "done": false},
            "conditions": [{"type": "Connected", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
        });
        let status: EventSinkStatus = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&status).unwrap(), example);
        assert_eq!(serde_json::to_value(EventSinkStatus::default()).unwrap(), json!({}));
    }
}
