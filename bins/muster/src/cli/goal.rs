//! What `wait` waits for.

use std::str::FromStr;

use muster_types::State;
use serde_json::Value;

/// Something that becomes true of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// It has ended, however.
    Ended,
    /// It is gone.
    Deleted,
    /// It is in a state.
    State(State),
    /// A condition has a status.
    Condition { kind: String, status: String },
}

/// How far a task is from its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// It is there.
    Yes,
    /// It may still come there.
    NotYet,
    /// It has ended and will never come there.
    Never,
}

impl Goal {
    /// How far a task is.
    pub fn look(&self, task: &Value) -> Reached {
        let state = state_of(task);
        let reached = match self {
            Self::Ended => state.is_terminal(),
            Self::Deleted => return Reached::NotYet,
            Self::State(wanted) => state == *wanted,
            Self::Condition { kind, status } => {
                let conditions = task["status"]["conditions"].as_array().map(Vec::as_slice);
                conditions.unwrap_or_default().iter().any(|condition| {
                    let is = |name: &str, wanted: &str| {
                        condition[name].as_str().is_some_and(|found| found.eq_ignore_ascii_case(wanted))
                    };
                    is("type", kind) && is("status", status)
                })
            }
        };
        match reached {
            true => Reached::Yes,
            false if state.is_terminal() => Reached::Never,
            false => Reached::NotYet,
        }
    }
}

/// The state of a task, also of one that an older server stored without it.
pub fn state_of(task: &Value) -> State {
    let recorded = task["status"]["state"].as_str().and_then(|word| word.parse().ok());
    State::of(recorded, task["spec"]["suspend"] == true)
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.split_once('=')) {
            ("ended", _) => Ok(Self::Ended),
            ("deleted" | "delete", _) => Ok(Self::Deleted),
            (_, Some(("state", word))) => {
                let known = State::ALL.iter().find(|state| state.as_str().eq_ignore_ascii_case(word));
                known.copied().map(Self::State).ok_or_else(|| {
                    let words: Vec<_> = State::ALL.iter().map(|state| state.as_str()).collect();
                    format!("there is no state \"{word}\"; there are {}", words.join(", "))
                })
            }
            (_, Some(("condition", rest))) if !rest.is_empty() => {
                let (kind, status) = rest.split_once('=').unwrap_or((rest, "True"));
                Ok(Self::Condition { kind: kind.to_owned(), status: status.to_owned() })
            }
            _ => Err("write ended, deleted, state=Succeeded or condition=Ready".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn look(goal: &str, status: &Value) -> Reached {
        goal.parse::<Goal>().unwrap().look(&json!({"status": status}))
    }

    #[test]
    fn a_state_that_cannot_come_any_more_is_told_from_one_that_may() {
        assert_eq!(look("state=Succeeded", &json!({"state": "Running"})), Reached::NotYet);
        assert_eq!(look("state=succeeded", &json!({"state": "Succeeded"})), Reached::Yes);
        assert_eq!(look("state=Succeeded", &json!({"state": "Failed"})), Reached::Never);
        assert_eq!(look("ended", &json!({"state": "Canceled"})), Reached::Yes);
    }

    #[test]
    fn a_task_of_which_nothing_is_recorded_is_ready_unless_it_is_held_back() {
        assert_eq!(state_of(&json!({"spec": {}})), State::Ready);
        assert_eq!(state_of(&json!({"spec": {"suspend": true}})), State::Created);
        assert_eq!(
            state_of(&json!({"spec": {"suspend": true}, "status": {"state": "Failed"}})),
            State::Failed
        );
    }

    #[test]
    fn a_condition_has_to_be_true_unless_another_status_is_named() {
        let status = json!({"state": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
        assert_eq!(look("condition=Ready", &status), Reached::NotYet);
        assert_eq!(look("condition=ready=false", &status), Reached::Yes);
    }

    #[test]
    fn what_is_no_goal_is_refused_with_those_there_are() {
        assert!("done".parse::<Goal>().unwrap_err().contains("state=Succeeded"));
        assert!("condition=".parse::<Goal>().is_err());
        assert!("state=Done".parse::<Goal>().unwrap_err().contains("QuotaBlocked"));
    }
}
