//! One event, and how it looks in each of the two groups.

use muster_types::Timestamp;
use serde_json::{Value, json};

use super::GROUP;

/// Who reports.
const REPORTER: &str = "muster";

/// The two forms of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `v1`.
    Core,
    /// `events.k8s.io/v1`.
    Group,
}

/// Something that happened to an object. Equal if nothing but the revision differs.
#[derive(Debug, Clone)]
pub struct Event {
    /// `<object>.<16 hex digits>`.
    pub name: String,
    /// A uid that is the same whenever it is derived.
    pub uid: String,
    /// Revision of the object it is derived from.
    pub revision: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub object: String,
    /// Uid of the object.
    pub object_uid: String,
    /// What happened, in one word.
    pub reason: String,
    /// Why, for people.
    pub note: String,
    /// It is nothing to be glad of.
    pub is_warning: bool,
    /// How often.
    pub count: u32,
    /// Not before this.
    pub first: Timestamp,
    /// When it last happened.
    pub last: Timestamp,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        let key = |event: &Self| (event.name.clone(), event.note.clone(), event.count, event.last);
        key(self) == key(other)
    }
}

impl Event {
    /// `Normal` or `Warning`.
    pub fn class(&self) -> &'static str {
        if self.is_warning { "Warning" } else { "Normal" }
    }

    /// The value of a field that events can be selected by.
    pub fn field(&self, name: &str) -> Option<&str> {
        let of_object = name.strip_prefix("involvedObject.").or_else(|| name.strip_prefix("regarding."));
        if let Some(field) = of_object {
            return Some(match field {
                "kind" => &self.kind,
                "namespace" => &self.namespace,
                "name" => &self.object,
                "uid" => &self.object_uid,
                "apiVersion" => &self.api_version,
                "resourceVersion" => &self.revision,
                "fieldPath" => "",
                _ => return None,
            });
        }
        match name {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            "reason" => Some(&self.reason),
            "type" => Some(self.class()),
            "source" | "reportingComponent" | "reportingController" => Some(REPORTER),
            _ => None,
        }
    }

    /// The event as a client sees it.
    pub fn document(&self, dialect: Dialect) -> Value {
        let metadata = json!({
            "name": self.name, "namespace": self.namespace, "uid": self.uid, "resourceVersion": self.revision,
            "creationTimestamp": self.first,
        });
        let object = json!({
            "kind": self.kind, "namespace": self.namespace, "name": self.object, "uid": self.object_uid,
            "apiVersion": self.api_version,
        });
        let source = json!({ "component": REPORTER });
        match dialect {
            Dialect::Core => json!({
                "kind": "Event", "apiVersion": "v1", "metadata": metadata, "involvedObject": object,
                "reason": self.reason, "message": self.note, "source": source, "firstTimestamp": self.first,
                "lastTimestamp": self.last, "count": self.count, "type": self.class(), "eventTime": null,
                "reportingComponent": REPORTER, "reportingInstance": "",
            }),
            Dialect::Group => {
                let mut event = json!({
                    "kind": "Event", "apiVersion": format!("{GROUP}/v1"), "metadata": metadata, "regarding": object,
                    "reason": self.reason, "note": self.note, "type": self.class(), "eventTime": null,
                    "reportingController": REPORTER, "reportingInstance": "", "deprecatedSource": source,
                    "deprecatedFirstTimestamp": self.first, "deprecatedLastTimestamp": self.last,
                    "deprecatedCount": self.count,
                });
                if self.count > 1 {
                    let observed = muster_types::timestamp::MicroTimestamp::from(self.last.as_jiff());
                    event["series"] = json!({ "count": self.count, "lastObservedTime": observed });
                }
                event
            }
        }
    }
}
