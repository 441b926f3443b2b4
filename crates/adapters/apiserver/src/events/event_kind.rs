//! Events as a kind, for what shows objects: names, columns, and how one is read. Nothing writes them.

use std::any::Any;
use std::borrow::Cow;

use muster_merge::Schema;
use muster_ports::store::ResourceName;
use muster_types::metadata::Metadata;
use serde_json::{Value, json};

use super::GROUP;
use super::event::Dialect;
use crate::kind::{AnyObject, ColumnInfo, Decoded, Input, Kind, KindInfo, Part, Writing};
use crate::refusal::{Causes, Refusal};

/// The kind Event of one group. Its objects are looked for among those of other kinds.
pub struct EventKind {
    info: KindInfo,
    schema: Schema,
    columns: Vec<ColumnInfo>,
}

/// An event that was read.
struct EventObject {
    metadata: Metadata,
    document: Value,
}

impl EventKind {
    /// The kind in one of its forms.
    pub fn new(dialect: Dialect) -> Self {
        let group = if dialect == Dialect::Core { "" } else { GROUP };
        let info = KindInfo {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Event".to_owned(),
            plural: "events".to_owned(),
            singular: "event".to_owned(),
            short_names: vec!["ev".to_owned()],
            namespaced: true,
            has_status: false,
            resource: ResourceName::new("events"),
        };
        let column = |name: &'static str, description: &'static str, column_type, wide| ColumnInfo {
            name: name.into(),
            description: description.into(),
            wide,
            column_type,
        };
        let columns = vec![
            column("Last Seen", "Time since it last happened.", "date", false),
            column("Type", "Normal or Warning.", "string", false),
            column("Reason", "What happened, in one word.", "string", false),
            column("Object", "What it happened to.", "string", false),
            column("Message", "Why it happened.", "string", false),
            column("First Seen", "Not before this.", "date", true),
            column("Count", "How often it happened.", "integer", true),
            column("Name", "Unique within the namespace.", "string", true),
        ];
        Self { info, schema: Schema::free_form(), columns }
    }
}

impl Kind for EventKind {
    fn info(&self) -> &KindInfo {
        &self.info
    }

    fn openapi(&self) -> &Value {
        &Value::Null
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn decode(&self, input: Input<'_>) -> Result<Decoded, Refusal> {
        let document: Value = match input {
            Input::Json(json) => {
                serde_json::from_slice(json).map_err(|error| Refusal::internal(error.to_string()))?
            }
            Input::Value(value) => value.clone(),
        };
        let metadata = serde_json::from_value(document["metadata"].clone());
        let metadata = metadata.map_err(|error| Refusal::internal(error.to_string()))?;
        Ok(Decoded { object: Box::new(EventObject { metadata, document }), unknown: Vec::new() })
    }

    fn prepare_create(&self, _new: &mut dyn AnyObject, _by: Writing<'_>, _causes: &mut Causes) {}

    fn prepare_update(
        &self,
        _old: &dyn AnyObject,
        _new: &mut dyn AnyObject,
        _part: Part,
        _by: Writing<'_>,
        _causes: &mut Causes,
    ) {
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn has_own_columns(&self) -> bool {
        true
    }

    fn cells(&self, object: &dyn AnyObject) -> Vec<Value> {
        let Some(event) = (object as &dyn Any).downcast_ref::<EventObject>() else { return Vec::new() };
        // The same things have other names in the other group.
        let either = |core: &str, group: &str| {
            let found = event.document.get(core).or_else(|| event.document.get(group));
            found.cloned().unwrap_or_default()
        };
        let object = either("involvedObject", "regarding");
        let word = |field: &str| object[field].as_str().unwrap_or_default();
        let named = format!("{}/{}", word("kind").to_lowercase(), word("name"));
        vec![
            either("lastTimestamp", "deprecatedLastTimestamp"),
            either("type", "type"),
            either("reason", "reason"),
            json!(named),
            either("message", "note"),
            either("firstTimestamp", "deprecatedFirstTimestamp"),
            either("count", "deprecatedCount"),
            json!(event.metadata.name),
        ]
    }

    fn field_names(&self) -> Vec<Cow<'static, str>> {
        Vec::new()
    }

    fn field(&self, _object: &dyn AnyObject, _name: &str) -> Option<String> {
        None
    }
}

impl AnyObject for EventObject {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.document)
    }
}
