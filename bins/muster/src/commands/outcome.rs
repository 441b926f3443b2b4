//! What came of a task, as the exit code of a program and as words.

use muster_types::State;
use serde_json::Value;

use crate::cli::state_of;

/// The exit code after a timeout, as `timeout(1)` has it.
const TIMED_OUT: u8 = 124;
/// What a shell adds to the number of a signal.
const SIGNAL: i64 = 128;

/// What came of a task.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub code: u8,
    /// What the command's own output does not say.
    pub note: Option<String>,
}

impl Outcome {
    /// Of a task that has ended.
    pub fn of(task: &Value) -> Self {
        let attempt = task["status"]["attempts"].as_array().and_then(|all| all.last());
        let field = |name: &str| attempt.map_or(&Value::Null, |attempt| &attempt[name]);
        let quiet = |code: i64| Self { code: u8::try_from(code).unwrap_or(1), note: None };
        match state_of(task) {
            State::Succeeded => quiet(0),
            State::Canceled => Self { code: 1, note: Some("the task was canceled".to_owned()) },
            _ if field("reason") == "Timeout" => {
                Self { code: TIMED_OUT, note: Some(format!("the task ran longer than {}", timeout(task))) }
            }
            _ => {
                // An extension may have failed while the command itself did not.
                let signal = field("signal").as_i64().filter(|signal| *signal > 0);
                let exit = field("exitCode").as_i64().filter(|code| *code != 0);
                match (signal, exit) {
                    (Some(signal), _) => quiet(SIGNAL + signal),
                    (None, Some(code)) => quiet(code),
                    (None, None) => Self { code: 1, note: Some(why(task)) },
                }
            }
        }
    }
}

fn timeout(task: &Value) -> &str {
    task["spec"]["timeout"].as_str().unwrap_or("it was allowed to")
}

/// Why a task failed, in the server's words.
pub fn why(task: &Value) -> String {
    let errors = task["status"]["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words: Vec<&str> = errors.iter().filter_map(|error| error["description"].as_str()).collect();
    if words.is_empty() {
        task["status"]["message"].as_str().unwrap_or("the task failed").to_owned()
    } else {
        words.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(state: &str, attempt: &Value) -> (u8, Option<String>) {
        let task = json!({
            "spec": {"timeout": "2s"},
            "status": {
                "state": state, "attempts": [{"number": 1, "exitCode": 0}, attempt],
                "errors": [{"description": "(muster) no such program"}],
            },
        });
        let Outcome { code, note } = Outcome::of(&task);
        (code, note)
    }

    #[test]
    fn a_command_that_ran_speaks_for_itself() {
        assert_eq!(outcome("Succeeded", &json!({"exitCode": 0})), (0, None));
        assert_eq!(outcome("Failed", &json!({"exitCode": 7})), (7, None));
        assert_eq!(outcome("Failed", &json!({"exitCode": 137, "signal": 9})), (137, None));
    }

    #[test]
    fn a_timeout_a_cancellation_and_a_command_that_never_ran_are_explained() {
        let timeout = outcome("Failed", &json!({"exitCode": 143, "signal": 15, "reason": "Timeout"}));
        assert_eq!(timeout, (124, Some("the task ran longer than 2s".to_owned())));
        assert_eq!(outcome("Canceled", &json!({})), (1, Some("the task was canceled".to_owned())));
        let never = outcome("Failed", &json!({"reason": "CommandNotFound"}));
        assert_eq!(never, (1, Some("(muster) no such program".to_owned())));
    }

    #[test]
    fn a_failed_extension_is_a_failure_though_the_command_ended_well() {
        assert_eq!(outcome("Failed", &json!({"exitCode": 0})).0, 1);
    }
}
