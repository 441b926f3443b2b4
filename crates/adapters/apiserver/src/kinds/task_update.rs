//! What of a task may still change, by the state it is in (seed 000, H20): everything before it is submitted, little while
//! it waits or runs, nothing once it has ended. What is refused is named.

use muster_types::{State, Task};
use serde_json::{Map, Value};

use crate::refusal::Causes;

/// What may change while a task waits for its turn.
const WAITING: &[&str] = &["name", "locator", "policy", "ttl", "cancel", "priority"];
/// What may change while an attempt runs.
const RUNNING: &[&str] = &["name", "locator", "ttl", "cancel"];

/// Says what of a change comes too late.
pub fn validate(old: &Task, new: &Task, causes: &mut Causes) {
    if old.spec == new.spec {
        return;
    }
    let state = old.state();
    let allowed = match state {
        State::Created => return,
        State::Ready | State::Postponed | State::QuotaBlocked | State::Pending => WAITING,
        State::Running => RUNNING,
        State::Succeeded | State::Failed | State::Canceled => &[],
    };
    for field in changed_fields(&fields(old), &fields(new)) {
        let at = format!("spec.{field}");
        if field == "suspend" && allowed == WAITING {
            // To take it away is what submitted the task.
            if new.spec.suspend {
                causes
                    .forbidden(at, format!("the task is submitted ({state}) and cannot be held back again"));
            }
        } else if !allowed.contains(&field.as_str()) {
            causes.forbidden(at, describe(state, allowed));
        }
    }
}

fn describe(state: State, allowed: &[&str]) -> String {
    if state.is_terminal() {
        return format!(
            "the task has ended ({state}) and does not change any more; retry it or make a new one"
        );
    }
    format!("a task that is {state} can only change {}; cancel it and make a new one", allowed.join(", "))
}

fn fields(task: &Task) -> Map<String, Value> {
    match serde_json::to_value(&task.spec) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Fields that differ, by name.
fn changed_fields(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<String> {
    let all = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    let mut changed: Vec<String> = all.filter(|name| old.get(*name) != new.get(*name)).cloned().collect();
    changed.sort_unstable();
    changed
}
