//! `statuses`: what adapters say of a managed resource, and what became of it.

use hyper::StatusCode;
use muster_ports::store::{Key, ResourceName};
use muster_resources::{FieldProblem, TypeRules, Verdict, accept_report};
use muster_types::adapter::AdapterSpec;
use muster_types::adapter_report::{AdapterReport, ReportAnswer};
use muster_types::timestamp::MicroTimestamp;
use muster_types::{Adapter, JsonText, ManagedResource, Resource as _};
use serde_json::{Value, json};

use super::{PartCall, RequestBody, Subresource};
use crate::access::Bound;
use crate::decode::read_value;
use crate::negotiate::{ObjectBody, object_body};
use crate::refusal::{Causes, Refusal};
use crate::respond::{self, Reply};

const KIND: &str = "AdapterReport";
/// Where adapters of resources that have no namespace live.
const HOME: &str = "default";

/// Its line in the table.
pub const SUBRESOURCE: Subresource =
    Subresource { name: "statuses", kind: KIND, verbs: &["get", "update"], has_files: false };

/// Shows how adapters stand, or takes in a report.
pub async fn answer(call: &PartCall, body: RequestBody) -> Result<Reply, Refusal> {
    if call.verb == "get" {
        return show(call);
    }
    let report = read(call, body).await?;
    let rules = call.kind.rules().ok_or_else(Refusal::no_such_path)?;
    let known = rules.requires(&report.adapter) || is_adapter(call, &report.adapter);
    let take_in = |resource: &mut ManagedResource| {
        let now = MicroTimestamp::from_microsecond(call.api.clock.now().0.saturating_mul(1000));
        let verdict = judge(call, rules, resource, &report, known, now)?;
        let answer = verdict.answer();
        if let Verdict::Discarded(discard) = verdict {
            call.api.metrics.report_ignored(discard.reason());
        } else if let Some(status) = verdict.into_status() {
            resource.status = status;
        }
        Ok(answer)
    };
    let (resource, answer) = call.change(take_in).await?;
    Ok(respond::document(StatusCode::OK, &verdict(call, &resource, &answer)))
}

fn judge(
    call: &PartCall,
    rules: &TypeRules,
    resource: &ManagedResource,
    report: &AdapterReport,
    known: bool,
    now: MicroTimestamp,
) -> Result<Verdict, Refusal> {
    accept_report(rules, resource, report, known, now).map_err(|problems| {
        let mut causes = Causes::default();
        for FieldProblem { field, value, why } in problems {
            causes.invalid(field, value, why);
        }
        Refusal::invalid(call.info(), &call.name, causes)
    })
}

/// True if there is an adapter of this name for resources like this one.
fn is_adapter(call: &PartCall, name: &str) -> bool {
    let names = AdapterSpec::NAMES;
    let resource = ResourceName::new(&format!("{}.{}", names.plural, names.group));
    let namespace = if call.namespace.is_empty() { HOME } else { &call.namespace };
    let stored = call.api.store.get(&Key::new(&resource, namespace, name));
    let adapter = stored.and_then(|stored| Adapter::from_json(stored.json()).ok());
    adapter.is_some_and(|adapter| adapter.spec.resource_type == call.info().plural)
}

async fn read(call: &PartCall, body: RequestBody) -> Result<AdapterReport, Refusal> {
    let body = call.api.read_body(body).await?;
    let mut document: Value = match object_body(&call.headers, &body)? {
        ObjectBody::Json(json) => serde_json::from_slice(json)
            .map_err(|error| Refusal::bad_request(format!("the body is not a report: {error}")))?,
        ObjectBody::Value(value) => value,
    };
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "kind" | "apiVersion" | "metadata"));
    }
    let (mut report, unknown) = read_value::<AdapterReport>(&document)
        .map_err(|wrong| Refusal::undecodable(&wrong.path, &format!("the body is not a report: {wrong}")))?;
    if let Some(unknown) = unknown.first() {
        let message = format!("the body is not a report: unknown field \"{unknown}\"");
        return Err(Refusal::undecodable(unknown, &message));
    }
    if let Some(Bound::Adapter(own)) = &call.user.bound {
        if report.adapter.is_empty() {
            report.adapter.clone_from(own);
        } else if report.adapter != *own {
            return Err(Refusal::forbidden(format!(
                "the token \"{}\" reports for the adapter \"{own}\", not for \"{}\"",
                call.user.name, report.adapter
            )));
        }
    }
    Ok(report)
}

/// What a reporter is told: what became of the report, and how the resource stands.
fn verdict(call: &PartCall, resource: &ManagedResource, answer: &ReportAnswer) -> Value {
    json!({
        "kind": "AdapterReportAnswer",
        "apiVersion": call.info().api_version(),
        "metadata": head(resource),
        "outcome": answer.outcome,
        "reason": answer.reason,
        "message": answer.message,
    })
}

fn show(call: &PartCall) -> Result<Reply, Refusal> {
    let (stored, resource) = call.read_object::<ManagedResource>()?;
    let mut metadata = head(&resource);
    metadata["resourceVersion"] = json!(stored.revision.to_string());
    let shown = json!({
        "kind": "AdapterReportList",
        "apiVersion": call.info().api_version(),
        "metadata": metadata,
        "items": resource.status.adapters,
    });
    Ok(respond::document(StatusCode::OK, &shown))
}

fn head(resource: &ManagedResource) -> Value {
    let metadata = &resource.metadata;
    json!({
        "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid, "generation": metadata.generation,
    })
}
