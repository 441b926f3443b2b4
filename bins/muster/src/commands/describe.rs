//! `muster describe`: everything about an object, for reading.

use std::cell::Cell;
use std::process::ExitCode;

use muster_client::Resource;
use muster_client::client::Form;
use muster_types::Timestamp;
use serde_json::Value;

use super::listing::{each_page, scope, selectors};
use super::session::Session;
use super::targets::{Targets, find_all};
use crate::cli::{DescribeArgs, Globals};
use crate::output::documents::{self, Language, indent};
use crate::output::table::{align, plain};
use crate::output::{age, streams};
use crate::usage::UsageError;

/// Width of the first column.
const LABEL: usize = 14;

/// Describes what was asked for.
pub async fn run(globals: &Globals, args: &DescribeArgs) -> anyhow::Result<ExitCode> {
    let targets = Targets::parse("describe", &args.what)?;
    let select = &args.select;
    let selected = select.selector.is_some() || select.field_selector.is_some() || select.all_namespaces;
    if selected && matches!(targets, Targets::Objects(_)) {
        let message = "objects are chosen either by name, or by selector and namespaces";
        return Err(UsageError::new("describe", message).into());
    }
    let session = Session::open(globals).await?;
    let catalog = session.client.catalog().await?;
    let shown = Cell::new(0_usize);
    let print = |resource: &Resource, object: &Value| {
        let before = if shown.replace(shown.get() + 1) == 0 { "" } else { "\n\n" };
        streams::print(&format!("{before}{}", render(resource, object, age::now())))
    };
    let mut code = ExitCode::SUCCESS;
    match targets {
        Targets::Objects(objects) => {
            for (word, name) in objects {
                let resource = catalog.find_one(&word)?;
                match session.client.get(resource, session.namespace(), &name, Form::Objects).await {
                    Ok(object) => print(resource, &object)?,
                    Err(error) if error.is_not_found() => {
                        streams::note(format!("error: {error}"));
                        code = ExitCode::FAILURE;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Targets::Collections(words) => {
            for resource in find_all(&catalog, &words)? {
                let scope = scope(select, session.namespace());
                let selectors = selectors(select);
                each_page(&session.client, resource, scope, &selectors, Form::Objects, None, |page| {
                    let items = page.document["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                    items.iter().try_for_each(|item| Ok(print(resource, item)?))
                })
                .await?;
            }
            if shown.get() == 0 {
                streams::note(format!("No resources found in {} namespace.", session.namespace()));
            }
        }
    }
    Ok(code)
}

fn render(resource: &Resource, object: &Value, now: Timestamp) -> String {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().map(plain).unwrap_or_default();
    let mut out = String::new();
    line(&mut out, "Name", &[text(&metadata["name"])]);
    if resource.namespaced {
        line(&mut out, "Namespace", &[text(&metadata["namespace"])]);
    }
    line(&mut out, "Kind", &[format!("{} ({})", resource.kind, resource.api_version())]);
    line(&mut out, "Labels", &pairs(&metadata["labels"], "="));
    line(&mut out, "Annotations", &pairs(&metadata["annotations"], ": "));
    line(&mut out, "Owner", &owners(&metadata["ownerReferences"]));
    line(&mut out, "Created", &[instant(&metadata["creationTimestamp"], now)]);
    if !metadata["deletionTimestamp"].is_null() {
        let since = instant(&metadata["deletionTimestamp"], now);
        let finalizers = metadata["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let finalizers: Vec<_> = finalizers.iter().map(&text).collect();
        line(&mut out, "Deleting", &[format!("{since}, waits for {}", finalizers.join(", "))]);
    }
    line(&mut out, "UID", &[text(&metadata["uid"])]);
    line(&mut out, "Generation", &[number(&metadata["generation"])]);
    section(&mut out, "Spec", &object["spec"]);
    let mut status = object["status"].clone();
    let conditions = status.as_object_mut().and_then(|status| status.remove("conditions"));
    section(&mut out, "Status", &status);
    if let Some(Value::Array(conditions)) = conditions {
        push_conditions(&mut out, &conditions, now);
    }
    out
}

/// A label and its values, one to a line.
fn line(out: &mut String, label: &str, values: &[String]) {
    let label = format!("{label}:");
    let none = ["<none>".to_owned()];
    let values = if values.is_empty() { &none[..] } else { values };
    for (index, value) in values.iter().enumerate() {
        let label = if index == 0 { label.as_str() } else { "" };
        out.push_str(format!("{label:<LABEL$}{value}").trim_end());
        out.push('\n');
    }
}

/// A part of the object as people would write it.
fn section(out: &mut String, title: &str, value: &Value) {
    let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty {
        return;
    }
    out.push_str(title);
    out.push_str(":\n");
    out.push_str(&indent(&documents::render(Language::Yaml, value), "  ", "  "));
}

fn push_conditions(out: &mut String, conditions: &[Value], now: Timestamp) {
    if conditions.is_empty() {
        return;
    }
    let text = |value: &Value| value.as_str().map(plain).unwrap_or_default();
    let header = ["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"].map(str::to_owned).to_vec();
    let rows = conditions.iter().map(|condition| {
        let since = condition["lastTransitionTime"].as_str().and_then(|time| time.parse().ok());
        vec![
            text(&condition["type"]),
            text(&condition["status"]),
            text(&condition["reason"]),
            since.map_or_else(String::new, |since| age::between(since, now)),
            text(&condition["message"]),
        ]
    });
    let table = align(&std::iter::once(header).chain(rows).collect::<Vec<_>>());
    out.push_str("Conditions:\n");
    out.push_str(&indent(&table, "  ", "  "));
}

fn pairs(map: &Value, between: &str) -> Vec<String> {
    let fields = map.as_object().into_iter().flatten();
    fields
        .map(|(key, value)| format!("{}{between}{}", plain(key), plain(value.as_str().unwrap_or("?"))))
        .collect()
}

fn owners(references: &Value) -> Vec<String> {
    let references = references.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(plain).unwrap_or_default();
    references
        .iter()
        .map(|owner| {
            let controls = if owner["controller"] == true { " (controller)" } else { "" };
            format!("{}/{}{controls}", text(&owner["kind"]), text(&owner["name"]))
        })
        .collect()
}

fn instant(value: &Value, now: Timestamp) -> String {
    let Some(text) = value.as_str() else { return "<unknown>".to_owned() };
    match text.parse() {
        Ok(time) => format!("{} ({} ago)", plain(text), age::between(time, now)),
        Err(_) => plain(text),
    }
}

fn number(value: &Value) -> String {
    if value.is_null() { "<none>".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource() -> Resource {
        Resource {
            group: "muster.dev".into(),
            version: "v1alpha1".into(),
            kind: "Task".into(),
            plural: "tasks".into(),
            singular: "task".into(),
            short_names: vec![],
            categories: vec![],
            namespaced: true,
            verbs: vec![],
        }
    }

    #[test]
    fn an_object_reads_from_who_it_is_to_how_it_is() {
        let object = json!({
            "metadata": {
                "name": "a", "namespace": "default", "labels": {"app": "shop", "tier": "web"},
                "ownerReferences": [{"kind": "Job", "name": "nightly", "controller": true}],
                "creationTimestamp": "1970-01-01T00:00:00Z", "uid": "u", "generation": 2,
            },
            "spec": {"container": {"command": ["echo", "hi"]}},
            "status": {
                "state": "Running",
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "Ok", "message": "it is",
                    "lastTransitionTime": "1970-01-01T00:01:00Z",
                }],
            },
        });
        let expected = "\
Name:         a
Namespace:    default
Kind:         Task (muster.dev/v1alpha1)
Labels:       app=shop
              tier=web
Annotations:  <none>
Owner:        Job/nightly (controller)
Created:      1970-01-01T00:00:00Z (5m ago)
UID:          u
Generation:   2
Spec:
  container:
    command:
    - echo
    - hi
Status:
  state: Running
Conditions:
  TYPE    STATUS   REASON   SINCE   MESSAGE
  Ready   True     Ok       4m      it is
";
        assert_eq!(render(&resource(), &object, Timestamp::from_second(300)), expected);
    }

    #[test]
    fn an_object_that_is_being_deleted_says_what_it_waits_for() {
        let object = json!({
            "metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z", "finalizers": ["a/b", "c/d"]},
        });
        let text = render(&resource(), &object, Timestamp::from_second(30));
        assert!(
            text.contains("Deleting:     1970-01-01T00:00:00Z (30s ago), waits for a/b, c/d\n"),
            "{text}"
        );
    }

    #[test]
    fn text_cannot_play_with_the_terminal() {
        let object =
            json!({"metadata": {"name": "a", "annotations": {"x": "\u{1b}[2J"}}, "spec": {"y": "\u{1b}[2J"}});
        assert!(!render(&resource(), &object, Timestamp::from_second(0)).contains('\u{1b}'));
    }
}
