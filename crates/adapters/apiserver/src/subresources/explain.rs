//! `explain`: why a task is where it is: the engine's answer, or else what was recorded.

use std::time::Duration;

use hyper::StatusCode;
use muster_ports::store::Store;
use muster_types::explanation::{Explanation, RESTING};
use muster_types::task_group::GroupMode;
use muster_types::task_status::WaitingFor;
use muster_types::{JsonText as _, State, Task, TaskGroup, Timestamp};
use serde_json::{Value, json};

use super::{PartCall, Subresource};
use crate::kinds::task::group_key;
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

const KIND: &str = "TaskExplanation";

/// Its line in the table.
pub const SUBRESOURCE: Subresource =
    Subresource { name: "explain", kind: KIND, verbs: &["get"], has_files: false };

/// How long the engine may take to answer; a busy one is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Explains the task.
pub async fn answer(call: &PartCall) -> Result<Reply, Refusal> {
    let (_, task) = call.read()?;
    let live = match &call.api.parts.explain {
        Some(explain) => {
            tokio::time::timeout(PATIENCE, explain.explain(&task.metadata.uid)).await.ok().flatten()
        }
        None => None,
    };
    // The state is the recorded one, as everywhere else; the engine adds why. The task may have gone on while it was asked.
    let (_, task) = call.read()?;
    let explanation = match live {
        Some(live) if !task.state().is_terminal() => complete(live, &task),
        Some(_) | None => recorded(&task, group_of(&task, &call.api.store).as_ref()),
    };
    let mut shown = json!(explanation);
    shown["kind"] = json!(KIND);
    shown["apiVersion"] = json!(call.info().api_version());
    shown["metadata"] = metadata(&task);
    Ok(respond::document(StatusCode::OK, &shown))
}

fn metadata(task: &Task) -> Value {
    let metadata = &task.metadata;
    json!({ "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid })
}

/// What the engine says of a task that is stored like this. Why a task is tried again later,
/// and that its attempt was told to end, is known to its status alone.
fn complete(live: Explanation, task: &Task) -> Explanation {
    let mut told = Explanation { state: task.state(), since: since(task), ..live };
    let rests = told.waiting_for.as_ref().is_some_and(|waiting| waiting.reason == RESTING);
    if let Some(recorded) = task.status.waiting_for.clone().filter(|_| rests) {
        told.message.clone_from(&recorded.message);
        told.waiting_for = Some(recorded);
    }
    if task.status.stopping.is_some() {
        told.message.clone_from(&task.status.message);
    }
    told
}

fn since(task: &Task) -> Option<Timestamp> {
    task.status.state_since.or(task.metadata.creation_timestamp)
}

/// What is stored of a task, in the words of an explanation. The engine does not know a task that was not submitted; its
/// group or Job decides when it is.
fn recorded(task: &Task, group: Option<&TaskGroup>) -> Explanation {
    let status = &task.status;
    let state = task.state();
    let held_back = group.filter(|_| state == State::Created).map(held_back_by);
    Explanation {
        state,
        since: since(task),
        message: status.message.clone(),
        waiting_for: held_back.or_else(|| status.waiting_for.clone()),
        priority: task.spec.priority,
        recorded: !state.is_terminal() && state != State::Created,
        ..Explanation::default()
    }
}

/// The group that a task is a member of.
fn group_of(task: &Task, store: &Store) -> Option<TaskGroup> {
    TaskGroup::from_json(store.get(&group_key(task)?)?.json()).ok()
}

/// Why a group has not submitted a member yet.
fn held_back_by(group: &TaskGroup) -> WaitingFor {
    let (name, spec) = (&group.metadata.name, &group.spec);
    let message = match (spec.mode(), spec.parallelism) {
        _ if group.status.current_state().is_terminal() => {
            format!("its group {name} has ended and submits nothing any more")
        }
        _ if spec.suspend => {
            format!("its group {name} is suspended; it goes on with spec.suspend: false of the group")
        }
        (GroupMode::Pipeline, _) => {
            format!("its group {name} is a pipeline and submits it when the task before it has succeeded")
        }
        (GroupMode::Batch | GroupMode::Replicas, Some(most)) => {
            format!(
                "its group {name} submits {most} tasks at a time, and this one when one of them has ended"
            )
        }
        (GroupMode::Batch | GroupMode::Replicas, None) => format!("its group {name} submits it in a moment"),
    };
    WaitingFor { reason: "TaskGroup".to_owned(), message, task: String::new() }
}

#[cfg(test)]
mod tests {
    use muster_types::TaskSpec;

    use super::*;

    fn explained(spec: Value) -> Option<String> {
        let group = TaskGroup::new("d", "g", serde_json::from_value(spec).expect("a group"));
        let task = Task::new("d", "t", TaskSpec { suspend: true, ..TaskSpec::default() });
        let told = recorded(&task, Some(&group));
        assert_eq!((told.state, told.recorded), (State::Created, false));
        told.waiting_for.map(|waiting| waiting.message)
    }

    #[test]
    fn a_member_that_was_not_submitted_says_what_its_group_waits_for() {
        let tasks = json!([{"name": "a"}, {"name": "b"}]);
        let told = explained(json!({"mode": "pipeline", "tasks": tasks})).expect("it waits");
        assert!(told.contains("pipeline"), "{told}");
        let told = explained(json!({"parallelism": 3, "tasks": tasks})).expect("it waits");
        assert!(told.contains("submits 3 tasks at a time"), "{told}");
        let told = explained(json!({"parallelism": 3, "suspend": true, "tasks": tasks})).expect("it waits");
        assert!(told.contains("is suspended"), "{told}");
    }

    #[test]
    fn a_task_of_its_own_that_was_not_submitted_waits_for_whoever_made_it() {
        let task = Task::new("d", "t", TaskSpec { suspend: true, ..TaskSpec::default() });
        let told = recorded(&task, None);
        assert_eq!((told.state, told.waiting_for, told.recorded), (State::Created, None, false));
    }
}
