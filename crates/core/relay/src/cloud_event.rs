//! The profile `cloudevents`: CloudEvents 1.0, as one document or with its attributes beside the body.

use muster_types::event_sink::EventMode;
use muster_types::{Message, Millis};
use serde_json::{Map, Value, json};

use crate::step::{Step, Subject, id};

/// Media type of an event that is one document.
const STRUCTURED: &str = "application/cloudevents+json; charset=utf-8";

/// The message about one transition.
pub fn render(subject: &Subject, step: &Step, mode: EventMode, revision: u64, at: Millis) -> Option<Message> {
    let id = id(&subject.uid, &step.word, &step.unique, revision);
    let group = subject.api_version.split('/').next().unwrap_or_default();
    let sort = match group {
        "muster.dev" => subject.kind.to_lowercase(),
        "batch" => "kubejob".to_owned(),
        _ => format!("resource.{}", subject.plural),
    };
    let topic = format!("dev.muster.{sort}.{}", step.word);
    let time = jiff::Timestamp::from_millisecond(at.0).ok()?;
    let attributes = vec![
        ("specversion", "1.0".to_owned()),
        ("id", id.clone()),
        ("source", source(subject)),
        ("type", topic.clone()),
        ("subject", format!("{}/{}", subject.namespace, subject.name)),
        ("time", format!("{time:.3}")),
        ("partitionkey", subject.uid.to_string()),
        ("revision", revision.to_string()),
    ];
    let data = data(subject, step);
    let key = subject.uid.clone();
    match mode {
        EventMode::Binary => {
            let body = serde_json::to_vec(&data).ok()?;
            Some(Message { id, key, topic, content_type: "application/json", attributes, body })
        }
        EventMode::Structured => {
            let mut event: Map<String, Value> =
                attributes.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            event.insert("datacontenttype".to_owned(), json!("application/json"));
            event.insert("data".to_owned(), data);
            let body = serde_json::to_vec(&event).ok()?;
            Some(Message { id, key, topic, content_type: STRUCTURED, attributes: Vec::new(), body })
        }
    }
}

fn source(subject: &Subject) -> String {
    let Subject { api_version, namespace, plural, name, .. } = subject;
    if namespace.is_empty() {
        format!("/apis/{api_version}/{plural}/{name}")
    } else {
        format!("/apis/{api_version}/namespaces/{namespace}/{plural}/{name}")
    }
}

fn data(subject: &Subject, step: &Step) -> Value {
    let mut data = json!({
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": &*subject.uid,
    });
    if let Some(fields) = data.as_object_mut() {
        fields.extend(step.data.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    data
}
