//! A server that tells, with sinks.

use std::time::Duration;

use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

pub const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
pub const LONG: Duration = Duration::from_mins(4);

/// Makes a sink.
pub fn make_sink(server: &Server, name: &str, spec: &Value) {
    let sink = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink", "metadata": {"name": name}, "spec": spec,
    });
    let answer = server.http().post(&format!("{API}/eventsinks"), &sink.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

/// What is reported of a sink.
pub fn status(server: &Server, name: &str) -> Value {
    server.http().get(&format!("{API}/eventsinks/{name}")).json()["status"].clone()
}

/// One of its conditions.
pub fn condition(status: &Value, of: &str) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|it| it["type"] == of).unwrap_or_default()
}

/// Waits until a condition has a reason; its message.
#[track_caller]
pub fn wait_for_reason(server: &Server, name: &str, of: &str, reason: &str) -> String {
    let found = || condition(&status(server, name), of);
    wait_for(&format!("{of} for the reason {reason}"), LONG, || found()["reason"] == reason);
    found()["message"].as_str().unwrap_or_default().to_owned()
}

/// Makes a task that stays as it is.
pub fn make_task(server: &Server, name: &str) {
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name},
        "spec": {"container": {"command": ["true"]}},
    });
    let answer = server.http().post(&format!("{API}/tasks"), &task.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}
