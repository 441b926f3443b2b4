//! `report`: what an addon says of its own work.

use hyper::StatusCode;
use muster_tasks::report::{Earlier, Report, Unfit, clear_report, fold_report, reported_errors};
use muster_types::Task;
use serde_json::{Value, json};

use super::{PartCall, RequestBody, Subresource};
use crate::access::Bound;
use crate::decode::read_value;
use crate::negotiate::{ObjectBody, object_body};
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

const KIND: &str = "TaskReport";

/// Its line in the table.
pub const SUBRESOURCE: Subresource = Subresource {
    name: "report",
    kind: KIND,
    verbs: &["get", "create", "update", "delete"],
    has_files: false,
};

/// Names a report may have, besides those that [`Report`] reads.
const KNOWN: [&str; 12] = [
    "kind",
    "apiVersion",
    "metadata",
    "ignored",
    "attempt",
    "sequence",
    "activity",
    "total",
    "completed",
    "increment",
    "errors",
    "result",
];

/// Shows, adds to, replaces or clears the report.
pub async fn answer(call: &PartCall, body: RequestBody) -> Result<Reply, Refusal> {
    let outcome = match call.verb {
        "get" => (call.read()?.1, None),
        "delete" => {
            let clear =
                |task: &mut Task| clear_report(&mut task.status).map_err(|not_now| call.conflict(not_now));
            (call.change(clear).await?.0, None)
        }
        verb => {
            let earlier = if verb == "create" { Earlier::Kept } else { Earlier::Replaced };
            let report = read(call, body).await?;
            let fold = |task: &mut Task| match fold_report(&mut task.status, &report, earlier) {
                Ok(()) => Ok(None),
                Err(Unfit::Ignored(ignored)) => Ok(Some(ignored)),
                Err(Unfit::NotNow(not_now)) => Err(call.conflict(not_now)),
                Err(Unfit::Invalid { field, why }) => Err(call.invalid(&field, &why)),
            };
            call.change(fold).await?
        }
    };
    let (task, ignored) = outcome;
    let mut shown = show(call, &task);
    if let Some(ignored) = ignored {
        call.api.metrics.report_ignored(ignored.word());
        shown["ignored"] = json!(ignored.to_string());
    }
    Ok(respond::document(StatusCode::OK, &shown))
}

async fn read(call: &PartCall, body: RequestBody) -> Result<Report, Refusal> {
    let body = call.api.read_body(body).await?;
    let document: Value = match object_body(&call.headers, &body)? {
        ObjectBody::Json(json) => serde_json::from_slice(json)
            .map_err(|error| Refusal::bad_request(format!("the body is not a report: {error}")))?,
        ObjectBody::Value(value) => value,
    };
    let unknown =
        document.as_object().and_then(|fields| fields.keys().find(|key| !KNOWN.contains(&key.as_str())));
    if let Some(unknown) = unknown {
        let message = format!(
            "the body is not a report: unknown field \"{unknown}\"; there are {}",
            KNOWN[4..].join(", ")
        );
        return Err(Refusal::undecodable(unknown, &message));
    }
    let document = without_nulls(document);
    let (mut report, _) = read_value::<Report>(&document)
        .map_err(|wrong| Refusal::undecodable(&wrong.path, &format!("the body is not a report: {wrong}")))?;
    if let Some(Bound::Attempt(bound)) = &call.user.bound {
        // Who proves to be one attempt cannot speak for another.
        report.attempt = Some(report.attempt.map_or(bound.attempt, |attempt| attempt.min(bound.attempt)));
    }
    Ok(report)
}

/// A field that is null is absent, also where a list is expected.
fn without_nulls(mut document: Value) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    document
}

/// The report as it is now.
fn show(call: &PartCall, task: &Task) -> Value {
    let status = &task.status;
    let mut shown = json!({
        "kind": KIND,
        "apiVersion": call.info().api_version(),
        "metadata": { "name": task.metadata.name, "namespace": task.metadata.namespace, "uid": task.metadata.uid },
        "activity": status.activity,
        "errors": reported_errors(status).collect::<Vec<_>>(),
    });
    let attempt = status.current_attempt();
    let sequence = status.report_sequence.filter(|last| last.attempt == attempt);
    for (field, value) in [
        ("attempt", (attempt > 0).then(|| json!(attempt))),
        ("sequence", sequence.map(|last| json!(last.sequence))),
        ("total", status.total.map(Value::from)),
        ("completed", status.completed.map(Value::from)),
        ("result", status.result.clone()),
    ] {
        if let Some(value) = value {
            shown[field] = value;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    #[test]
    fn every_field_of_a_report_is_known() {
        // A field that is added to the type and not here would be refused.
        let all = json!({
            "attempt": 1, "sequence": 1, "activity": ["a"], "total": 1, "completed": 1, "increment": 1,
            "errors": [{"severity": "Error", "description": "x"}], "result": 1,
        });
        assert_eq!(all.as_object().unwrap().len(), KNOWN.len() - 4);
        assert!(Report::deserialize(&all).is_ok());
    }
}
