//! What the server needs to know of a kind: how to decode, check, compare and show its objects.
//!
//! A kind is a spec type (`muster_types::Resource`) with a [`Strategy`]. [`Typed`] turns the two into a [`Kind`],
//! behind which the rest of the server works without knowing the type.

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;

use muster_merge::Schema;
use muster_ports::store::{ResourceName, Snapshot};
use muster_types::metadata::Metadata;
use muster_types::names::{Names, Scope};
use muster_types::{Object, Resource};
use serde::Deserializer;
use serde_json::Value;

use crate::refusal::{Causes, Refusal};
use crate::strict::Strict;

/// The rules of one kind beyond its types. Everything has a default: a kind without rules has an empty strategy.
pub trait Strategy: Resource {
    /// False for kinds that have no status.
    const HAS_STATUS: bool = true;

    /// Fills in what the user left open, before an object is first stored.
    fn prepare(_object: &mut Object<Self>, _user: &str) {}

    /// Records a change of what is asked for, before it is stored.
    fn prepare_change(_old: &Object<Self>, _new: &mut Object<Self>, _user: &str) {}

    /// Says what is wrong with an object.
    fn validate(_object: &Object<Self>, _causes: &mut Causes) {}

    /// Says what of a change is not allowed.
    fn validate_update(_old: &Object<Self>, _new: &Object<Self>, _causes: &mut Causes) {}

    /// Says what is wrong with an object beside the others of its kind, as they are stored now.
    fn admit(_object: &Object<Self>, _stored: &Snapshot, _causes: &mut Causes) {}

    /// Columns of `kubectl get` behind the name; the age is added by the server.
    fn columns() -> Vec<Column<Self>> {
        Vec::new()
    }

    /// Fields that `--field-selector` may name, besides `metadata.name` and `metadata.namespace`.
    fn fields() -> &'static [(&'static str, FieldOf<Self>)] {
        &[]
    }
}

/// Reads one selectable field.
pub type FieldOf<S> = fn(&Object<S>) -> Cow<'_, str>;

/// A column of `kubectl get`.
pub struct Column<S: Resource> {
    /// Heading.
    pub name: &'static str,
    /// What it shows.
    pub description: &'static str,
    /// Shown only with `-o wide`.
    pub wide: bool,
    /// OpenAPI type: `string`, `integer`, `boolean` or `date`.
    pub column_type: &'static str,
    /// The cell of an object; a `date` cell holds an RFC 3339 time.
    pub cell: fn(&Object<S>) -> Value,
}

impl<S: Resource> Column<S> {
    /// A text column.
    pub fn text(name: &'static str, description: &'static str, cell: fn(&Object<S>) -> Value) -> Self {
        Self { name, description, wide: false, column_type: "string", cell }
    }

    /// A number column.
    pub fn number(name: &'static str, description: &'static str, cell: fn(&Object<S>) -> Value) -> Self {
        Self { column_type: "integer", ..Self::text(name, description, cell) }
    }

    /// The same column, shown only with `-o wide`.
    #[must_use]
    pub fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

/// A column without its type.
#[derive(Debug, Clone)]
pub struct ColumnInfo {
    /// Heading.
    pub name: &'static str,
    /// What it shows.
    pub description: &'static str,
    /// Shown only with `-o wide`.
    pub wide: bool,
    /// OpenAPI type.
    pub column_type: &'static str,
}

/// What a kind is called, with its schema.
#[derive(Debug, Clone)]
pub struct KindInfo {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// CamelCase kind.
    pub kind: String,
    /// Plural in paths.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Namespaced or not.
    pub namespaced: bool,
    /// Has a status subresource.
    pub has_status: bool,
    /// The key space of its objects in the store.
    pub resource: ResourceName,
}

impl KindInfo {
    fn new(names: &Names, has_status: bool) -> Self {
        Self {
            group: names.group.to_owned(),
            version: names.version.to_owned(),
            kind: names.kind.to_owned(),
            plural: names.plural.to_owned(),
            singular: names.singular.to_owned(),
            short_names: names.short_names.iter().map(|&name| name.to_owned()).collect(),
            namespaced: names.scope == Scope::Namespaced,
            has_status,
            resource: ResourceName::new(&format!("{}.{}", names.plural, names.group)),
        }
    }

    /// `plural.group`, as error messages name a kind.
    pub fn qualified(&self) -> &str {
        self.resource.as_str()
    }

    /// `group/version`; the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// What a client sent, or a patch made.
pub enum Input<'a> {
    /// JSON text.
    Json(&'a [u8]),
    /// A parsed document.
    Value(&'a Value),
}

/// An object and the fields in it that its kind does not know.
pub struct Decoded {
    /// The object.
    pub object: Box<dyn AnyObject>,
    /// Paths of unknown fields.
    pub unknown: Vec<String>,
}

/// An object of some kind.
pub trait AnyObject: Any + Send {
    /// Its metadata.
    fn metadata(&self) -> &Metadata;
    /// Its metadata, to change.
    fn metadata_mut(&mut self) -> &mut Metadata;
    /// Its JSON.
    fn encode(&self) -> serde_json::Result<Vec<u8>>;
}

impl<S: Resource> AnyObject for Object<S> {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut json = Vec::with_capacity(1024);
        serde_json::to_writer(&mut json, self)?;
        Ok(json)
    }
}

/// Which part of an object a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    /// The status alone.
    Status,
}

/// A kind, without its type.
pub trait Kind: Send + Sync {
    /// What it is called.
    fn info(&self) -> &KindInfo;
    /// Its OpenAPI schema.
    fn openapi(&self) -> &Value;
    /// Its schema as merging sees it.
    fn schema(&self) -> &Schema;
    /// Reads an object.
    fn decode(&self, input: Input<'_>) -> Result<Decoded, Refusal>;
    /// Completes and checks a new object.
    fn prepare_create(&self, new: &mut dyn AnyObject, user: &str, causes: &mut Causes);
    /// Completes and checks a changed object: keeps the part the request may not write, and counts generations.
    fn prepare_update(
        &self,
        old: &dyn AnyObject,
        new: &mut dyn AnyObject,
        part: Part,
        user: &str,
        causes: &mut Causes,
    );
    /// Checks an object against the others of its kind.
    fn admit(&self, _object: &dyn AnyObject, _stored: &Snapshot, _causes: &mut Causes) {}
    /// Columns behind the name.
    fn columns(&self) -> &[ColumnInfo];
    /// True if its columns are all there are: no name before them, no age behind.
    fn has_own_columns(&self) -> bool {
        false
    }
    /// Cells of an object, one per column.
    fn cells(&self, object: &dyn AnyObject) -> Vec<Value>;
    /// Names of selectable fields besides those of the metadata.
    fn field_names(&self) -> Vec<&'static str>;
    /// The value of a selectable field.
    fn field(&self, object: &dyn AnyObject, name: &str) -> Option<String>;
}

/// A kind made of a spec type and its strategy.
pub struct Typed<S: Strategy> {
    info: KindInfo,
    openapi: Value,
    schema: Schema,
    columns: Vec<Column<S>>,
    column_infos: Vec<ColumnInfo>,
    spec: PhantomData<fn() -> S>,
}

impl<S: Strategy> Default for Typed<S> {
    fn default() -> Self {
        let openapi = muster_types::schema::openapi_schema::<S>();
        let columns = S::columns();
        let column_infos = columns.iter().map(|column| ColumnInfo {
            name: column.name,
            description: column.description,
            wide: column.wide,
            column_type: column.column_type,
        });
        Self {
            info: KindInfo::new(&S::NAMES, S::HAS_STATUS),
            schema: Schema::from_json(&openapi).unwrap_or_else(|_| Schema::free_form()),
            openapi,
            column_infos: column_infos.collect(),
            columns,
            spec: PhantomData,
        }
    }
}

impl<S: Strategy> Kind for Typed<S> {
    fn info(&self) -> &KindInfo {
        &self.info
    }

    fn openapi(&self) -> &Value {
        &self.openapi
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn decode(&self, input: Input<'_>) -> Result<Decoded, Refusal> {
        let mut unknown = Vec::new();
        let object: Object<S> = match input {
            Input::Json(json) => {
                let mut deserializer = serde_json::Deserializer::from_slice(json);
                let object = decode_from(&mut deserializer, &mut unknown);
                // What follows the object is part of the same mistake.
                object.and_then(|object| deserializer.end().map(|()| object)).map_err(|error| {
                    let again = &mut serde_json::Deserializer::from_slice(json);
                    explain::<S, _>(&self.info, again, &error)
                })?
            }
            Input::Value(value) => decode_from(value, &mut unknown)
                .map_err(|error| explain::<S, _>(&self.info, value, &error))?,
        };
        Ok(Decoded { object: Box::new(object), unknown })
    }

    fn prepare_create(&self, new: &mut dyn AnyObject, user: &str, causes: &mut Causes) {
        let Some(new) = typed_mut::<S>(new) else { return };
        new.status = S::Status::default();
        new.metadata.generation = 1;
        S::prepare(new, user);
        S::validate(new, causes);
    }

    fn prepare_update(
        &self,
        old: &dyn AnyObject,
        new: &mut dyn AnyObject,
        part: Part,
        user: &str,
        causes: &mut Causes,
    ) {
        let (Some(old), Some(new)) = (typed::<S>(old), typed_mut::<S>(new)) else { return };
        match part {
            Part::Main => {
                new.status.clone_from(&old.status);
                S::prepare_change(old, new, user);
            }
            Part::Status => {
                new.spec.clone_from(&old.spec);
                let managed_fields = new.metadata.managed_fields.take();
                new.metadata.clone_from(&old.metadata);
                new.metadata.managed_fields = managed_fields;
            }
        }
        let changed = new.spec != old.spec;
        new.metadata.generation = old.metadata.generation + i64::from(changed);
        // What is stored and was allowed once may stay: its status, its labels and its end must not hang on it.
        if changed {
            S::validate(new, causes);
        }
        S::validate_update(old, new, causes);
    }

    fn admit(&self, object: &dyn AnyObject, stored: &Snapshot, causes: &mut Causes) {
        if let Some(object) = typed::<S>(object) {
            S::admit(object, stored, causes);
        }
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.column_infos
    }

    fn cells(&self, object: &dyn AnyObject) -> Vec<Value> {
        typed::<S>(object)
            .map_or_else(Vec::new, |object| self.columns.iter().map(|column| (column.cell)(object)).collect())
    }

    fn field_names(&self) -> Vec<&'static str> {
        S::fields().iter().map(|(name, _)| *name).collect()
    }

    fn field(&self, object: &dyn AnyObject, name: &str) -> Option<String> {
        let read = S::fields().iter().find(|(field, _)| *field == name).map(|(_, read)| read)?;
        typed::<S>(object).map(|object| read(object).into_owned())
    }
}

fn typed<S: Resource>(object: &dyn AnyObject) -> Option<&Object<S>> {
    (object as &dyn Any).downcast_ref()
}

fn typed_mut<S: Resource>(object: &mut dyn AnyObject) -> Option<&mut Object<S>> {
    (object as &mut dyn Any).downcast_mut()
}

fn decode_from<'de, S: Resource, D: Deserializer<'de>>(
    deserializer: D,
    unknown: &mut Vec<String>,
) -> Result<Object<S>, D::Error> {
    serde_ignored::deserialize(Strict(deserializer), |path| {
        // Enough to help; a hostile body may hold millions.
        if unknown.len() < 64 {
            // Options in the types show up as `?` in the path.
            unknown.push(path.to_string().replace("?.", "").replace(".?", ""));
        }
    })
}

/// Decodes again, slowly, to name the field that is wrong.
fn explain<'de, S: Resource, D>(info: &KindInfo, again: D, error: &serde_json::Error) -> Refusal
where
    D: Deserializer<'de, Error = serde_json::Error>,
{
    let (path, error) = match serde_path_to_error::deserialize::<_, Object<S>>(Strict(again)) {
        Err(traced) => (traced.path().to_string(), traced.into_inner().to_string()),
        Ok(_) => (String::new(), error.to_string()),
    };
    let place = if path == "." || path.is_empty() { String::new() } else { format!("{path}: ") };
    let message = format!(
        "{} in version \"{}\" cannot be handled as a {}: {place}{error}",
        info.kind, info.version, info.kind
    );
    Refusal::undecodable(&path, &message)
}
