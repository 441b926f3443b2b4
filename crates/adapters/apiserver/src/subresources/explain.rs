//! `explain`: why a task is where it is, from whoever decides, or else from what was recorded.

use std::time::Duration;

use hyper::StatusCode;
use muster_types::explanation::{Explanation, RESTING};
use muster_types::{Task, Timestamp};
use serde_json::{Value, json};

use super::{PartCall, Subresource};
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

const KIND: &str = "TaskExplanation";

/// Its line in the table.
pub const SUBRESOURCE: Subresource =
    Subresource { name: "explain", kind: KIND, verbs: &["get"], has_files: false };

/// How long whoever decides may take; a busy one is not waited for.
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
        Some(_) | None => recorded(&task),
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

/// What is stored of a task, in the words of an explanation.
fn recorded(task: &Task) -> Explanation {
    let status = &task.status;
    let state = task.state();
    Explanation {
        state,
        since: since(task),
        message: status.message.clone(),
        waiting_for: status.waiting_for.clone(),
        priority: task.spec.priority,
        recorded: !state.is_terminal(),
        ..Explanation::default()
    }
}
