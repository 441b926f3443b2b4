//! Conditions: what is true of an object, since when, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metadata::null_is_default;
use crate::timestamp::Timestamp;

words! {
    /// Whether a condition holds.
    pub enum ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// It cannot be told.
        Unknown = "Unknown",
    }
}

/// One aspect of an object's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, for example Ready.
    pub r#type: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation of the object this was seen at; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed from one word to another.
    pub last_transition_time: Timestamp,
    /// One CamelCase word that says why.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "null_is_default")]
    pub message: String,
}

impl Condition {
    /// A condition seen at `now`.
    pub fn new(
        r#type: impl Into<String>,
        status: ConditionStatus,
        reason: impl Into<String>,
        message: impl Into<String>,
        now: Timestamp,
    ) -> Self {
        Self {
            r#type: r#type.into(),
            status,
            observed_generation: None,
            last_transition_time: now,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// True if it holds.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// Adds a condition or replaces the one of its type, and says whether anything changed.
///
/// The old transition time stays unless the status flips.
pub fn set_condition(conditions: &mut Vec<Condition>, mut condition: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.r#type == condition.r#type) else {
        conditions.push(condition);
        return true;
    };
    if old.status == condition.status {
        condition.last_transition_time = old.last_transition_time;
    }
    let changed = *old != condition;
    *old = condition;
    changed
}

/// The condition of a type, if there is one.
pub fn find_condition<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == r#type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: ConditionStatus, reason: &str, second: i64) -> Condition {
        Condition::new("Ready", status, reason, "", Timestamp::from_second(second))
    }

    #[test]
    fn a_new_condition_is_added() {
        let mut conditions = vec![];
        assert!(set_condition(&mut conditions, ready(ConditionStatus::True, "Checked", 1)));
        assert!(find_condition(&conditions, "Ready").is_some_and(Condition::is_true));
        assert_eq!(find_condition(&conditions, "Other"), None);
    }

    #[test]
    fn the_transition_time_stays_while_the_status_does() {
        let mut conditions = vec![ready(ConditionStatus::True, "Checked", 1)];
        assert!(set_condition(&mut conditions, ready(ConditionStatus::True, "CheckedAgain", 2)));
        assert_eq!(conditions, [ready(ConditionStatus::True, "CheckedAgain", 1)]);
    }

    #[test]
    fn the_transition_time_moves_when_the_status_flips() {
        let mut conditions = vec![ready(ConditionStatus::True, "Checked", 1)];
        assert!(set_condition(&mut conditions, ready(ConditionStatus::Unknown, "Gone", 2)));
        assert_eq!(conditions, [ready(ConditionStatus::Unknown, "Gone", 2)]);
    }

    #[test]
    fn the_same_condition_again_changes_nothing() {
        let mut conditions = vec![ready(ConditionStatus::False, "Checked", 1)];
        assert!(!set_condition(&mut conditions, ready(ConditionStatus::False, "Checked", 2)));
        assert_eq!(conditions, [ready(ConditionStatus::False, "Checked", 1)]);
    }

    #[test]
    fn json_is_what_kubernetes_clients_expect() {
        let mut condition = ready(ConditionStatus::True, "Checked", 0);
        condition.observed_generation = Some(3);
        assert_eq!(
            serde_json::to_string(&condition).unwrap(),
            r#"{"type":"Ready","status":"True","observedGeneration":3,"lastTransitionTime":"1970-01-01T00:00:00Z","reason":"Checked"}"#
        );
    }
}
