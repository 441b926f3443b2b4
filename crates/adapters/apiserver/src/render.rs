//! Objects as clients ask to see them: whole, as metadata, as rows of a table, as YAML.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use muster_ports::clock::Clock;
use muster_types::metadata::Metadata;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::kind::{Input, Kind};
use crate::negotiate::Form;
use crate::options::IncludeObject;
use crate::refusal::Refusal;
use crate::respond::Body;

/// Renders objects of one kind in one form.
pub struct Renderer {
    kind: Arc<dyn Kind>,
    form: Form,
    include: IncludeObject,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
struct MetadataOnly<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl Renderer {
    /// A renderer of a kind.
    pub fn new(kind: Arc<dyn Kind>, form: Form, include: IncludeObject, clock: Arc<dyn Clock>) -> Self {
        Self { kind, form, include, clock }
    }

    /// The media type of what this makes.
    pub fn content_type(&self) -> &'static str {
        match self.form {
            Form::Yaml => "application/yaml",
            Form::Json | Form::Table { .. } | Form::Metadata { .. } => "application/json",
        }
    }

    /// One object as a whole answer.
    pub fn whole(&self, json: &[u8]) -> Result<Body, Refusal> {
        let mut out = Vec::with_capacity(json.len() + 256);
        match self.form {
            Form::Yaml => out = to_yaml(json)?,
            Form::Json | Form::Metadata { .. } => self.item(json, &mut out),
            Form::Table { .. } => self.table_of_one(json, true, &mut out),
        }
        Ok(Full::new(Bytes::from(out)).boxed_unsync())
    }

    /// One object of a watch; a table comes with its columns once.
    pub fn event_object(&self, json: &[u8], first: bool, out: &mut Vec<u8>) {
        match self.form {
            Form::Table { .. } => self.table_of_one(json, first, out),
            Form::Json | Form::Yaml | Form::Metadata { .. } => self.item(json, out),
        }
    }

    /// A bookmark, of the kind that the objects of the watch are shown as.
    pub fn bookmark(&self, metadata: &Value) -> Value {
        let info = self.kind.info();
        match self.form {
            Form::Json | Form::Yaml => {
                json!({ "kind": info.kind, "apiVersion": info.api_version(), "metadata": metadata })
            }
            Form::Metadata { version } => json!({
                "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata,
            }),
            Form::Table { version } => json!({
                "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata,
                "columnDefinitions": [], "rows": [],
            }),
        }
    }

    /// What stands before the items of a list.
    pub fn list_head(&self, out: &mut Vec<u8>) {
        let info = self.kind.info();
        let head = match self.form {
            Form::Json | Form::Yaml => {
                format!(r#"{{"kind":"{}List","apiVersion":"{}","items":["#, info.kind, info.api_version())
            }
            Form::Metadata { version } => format!(
                r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/{version}","items":["#
            ),
            Form::Table { version } => format!(
                r#"{{"kind":"Table","apiVersion":"meta.k8s.io/{version}","columnDefinitions":{},"rows":["#,
                self.column_definitions()
            ),
        };
        out.extend_from_slice(head.as_bytes());
    }

    /// What stands behind the items of a list.
    pub fn list_tail(metadata: &Value, out: &mut Vec<u8>) {
        out.extend_from_slice(format!(r#"],"metadata":{metadata}}}"#).as_bytes());
    }

    /// One item of a list.
    pub fn item(&self, json: &[u8], out: &mut Vec<u8>) {
        match self.form {
            Form::Json | Form::Yaml => out.extend_from_slice(json),
            Form::Metadata { version } => metadata_object(json, version, out),
            Form::Table { version } => self.row(json, version, out),
        }
    }

    fn table_of_one(&self, json: &[u8], columns: bool, out: &mut Vec<u8>) {
        let Form::Table { version } = self.form else { return };
        let columns = if columns { self.column_definitions() } else { json!([]) };
        let revision = self.kind.decode(Input::Json(json)).map(|decoded| decoded.object);
        let revision = revision.map(|object| object.metadata().resource_version.clone()).unwrap_or_default();
        let head = format!(
            r#"{{"kind":"Table","apiVersion":"meta.k8s.io/{version}","metadata":{{"resourceVersion":"{revision}"}},"columnDefinitions":{columns},"rows":["#
        );
        out.extend_from_slice(head.as_bytes());
        self.row(json, version, out);
        out.extend_from_slice(b"]}");
    }

    fn column_definitions(&self) -> Value {
        let column = |name: &str, column_type: &str, format: &str, description: &str, priority: u8| {
            json!({
                "name": name, "type": column_type, "format": format, "description": description,
                "priority": priority,
            })
        };
        let is_own = self.kind.has_own_columns();
        let mut columns = Vec::new();
        if !is_own {
            columns.push(column("Name", "string", "name", "Unique within the namespace.", 0));
        }
        columns.extend(self.kind.columns().iter().map(|info| {
            let column_type = if info.column_type == "date" { "string" } else { info.column_type };
            column(&info.name, column_type, "", &info.description, u8::from(info.wide))
        }));
        if !is_own {
            columns.insert(self.age_position(), column("Age", "string", "", "Time since it was created.", 0));
        }
        Value::Array(columns)
    }

    /// The age stands last, but before what only `-o wide` shows.
    fn age_position(&self) -> usize {
        let infos = self.kind.columns();
        1 + infos.iter().position(|info| info.wide).unwrap_or(infos.len())
    }

    fn row(&self, json: &[u8], version: &str, out: &mut Vec<u8>) {
        let now = self.clock.now().0.div_euclid(1000);
        let mut cells = Vec::new();
        if let Ok(decoded) = self.kind.decode(Input::Json(json)) {
            let metadata: &Metadata = decoded.object.metadata();
            let is_own = self.kind.has_own_columns();
            if !is_own {
                cells.push(json!(metadata.name));
            }
            let infos = self.kind.columns();
            for (cell, info) in self.kind.cells(&*decoded.object).into_iter().zip(infos) {
                let shown = match (info.column_type, cell.as_str()) {
                    ("date", Some(time)) => json!(age_of(time.parse().ok(), now)),
                    _ => cell,
                };
                cells.push(shown);
            }
            if !is_own {
                cells.insert(self.age_position(), json!(age_of(metadata.creation_timestamp, now)));
            }
        }
        out.extend_from_slice(format!(r#"{{"cells":{},"object":"#, Value::Array(cells)).as_bytes());
        match self.include {
            IncludeObject::None => out.extend_from_slice(b"null"),
            IncludeObject::Metadata => metadata_object(json, version, out),
            IncludeObject::Object => out.extend_from_slice(json),
        }
        out.push(b'}');
    }
}

fn metadata_object(json: &[u8], version: &str, out: &mut Vec<u8>) {
    let metadata = serde_json::from_slice::<MetadataOnly<'_>>(json).map_or("{}", |only| only.metadata.get());
    let text = format!(
        r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":{metadata}}}"#
    );
    out.extend_from_slice(text.as_bytes());
}

/// A JSON document as YAML.
pub fn to_yaml(json: &[u8]) -> Result<Vec<u8>, Refusal> {
    let value: Value = serde_json::from_slice(json).map_err(|error| Refusal::internal(error.to_string()))?;
    serde_saphyr::to_string(&value)
        .map(String::into_bytes)
        .map_err(|error| Refusal::internal(error.to_string()))
}

fn age_of(time: Option<muster_types::Timestamp>, now: i64) -> String {
    time.map_or_else(
        || "<unknown>".to_owned(),
        |time| muster_types::human_duration(now.saturating_sub(time.as_second())),
    )
}
