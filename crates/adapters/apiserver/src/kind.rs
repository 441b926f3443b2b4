//! What the server needs to know of a kind: how to decode, check, compare and show its objects.
//!
//! A kind of ours is a spec type (`muster_types::Resource`) with a [`Strategy`], which [`crate::typed::Typed`] turns into
//! a [`Kind`]. A kind that a user declares is a [`crate::managed::ManagedKind`]. Behind [`Kind`] the rest of the server
//! works without knowing which it is.

use std::any::Any;
use std::borrow::Cow;

use muster_merge::Schema;
use muster_ports::store::{Check, ResourceName, Snapshot, Store};
use muster_resources::TypeRules;
use muster_types::metadata::Metadata;
use muster_types::names::{Names, Scope};
use muster_types::{JsonText, Object, Resource, Timestamp};
use serde_json::Value;

use crate::refusal::{Causes, Refusal};
use crate::status_rules::StatusRule;

/// The rules of one kind beyond its types. Everything has a default: a kind without rules has an empty strategy.
pub trait Strategy: Resource {
    /// False for kinds that have no status.
    const HAS_STATUS: bool = true;
    /// True if what follows from its creation is a time of day and no age.
    const FOLLOWS_WALL_CLOCK: bool = false;

    /// What users may write of its status.
    const STATUS: StatusRule = StatusRule::ENGINE;

    /// Fills in what the user left open, before an object is first stored.
    fn prepare(_object: &mut Object<Self>, _user: &str) {}

    /// Records a change of what is asked for, before it is stored.
    fn prepare_change(_old: &Object<Self>, _new: &mut Object<Self>, _by: Writing<'_>) {}

    /// Says what is wrong with an object.
    fn validate(_object: &Object<Self>, _causes: &mut Causes) {}

    /// Whether a changed object is looked at as a whole again.
    fn is_checked_again(_old: &Object<Self>, _new: &Object<Self>) -> bool {
        true
    }

    /// Says what of a change is not allowed.
    fn validate_update(_old: &Object<Self>, _new: &Object<Self>, _causes: &mut Causes) {}

    /// Says what is wrong with an object beside the others of its kind, as they are stored now.
    fn admit(_object: &Object<Self>, _stored: &Snapshot, _causes: &mut Causes) {}

    /// Says why an object cannot be deleted now, if it cannot.
    fn held_back(_object: &Object<Self>, _store: &Store) -> Option<String> {
        None
    }

    /// What must be true when an object is gone, in the same moment.
    fn needs_at_end(_object: &Object<Self>) -> Vec<Check> {
        Vec::new()
    }

    /// Records on an object that its deletion was asked for just now.
    fn mark_deleted(_object: &mut Object<Self>, _store: &Store) {}

    /// True if an object that is deleted is there until all that belongs to it has gone, however its deletion is asked for: others wait
    /// for it.
    fn goes_last(_object: &Object<Self>) -> bool {
        false
    }

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
    pub name: Cow<'static, str>,
    /// What it shows.
    pub description: Cow<'static, str>,
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
    /// What a kind of ours is called.
    pub fn new(names: &Names, has_status: bool) -> Self {
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
#[derive(Clone, Copy)]
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
        self.to_json()
    }
}

/// Who writes, when, and over what.
#[derive(Clone, Copy)]
pub struct Writing<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The time.
    pub now: Timestamp,
    /// What is stored.
    pub store: &'a Store,
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
    fn prepare_create(&self, new: &mut dyn AnyObject, by: Writing<'_>, causes: &mut Causes);
    /// Completes and checks a changed object: keeps the part the request may not write, and counts generations.
    fn prepare_update(
        &self,
        old: &dyn AnyObject,
        new: &mut dyn AnyObject,
        part: Part,
        by: Writing<'_>,
        causes: &mut Causes,
    );
    /// Checks an object against the others of its kind.
    fn admit(&self, _object: &dyn AnyObject, _stored: &Snapshot, _causes: &mut Causes) {}
    /// What must be true when a new object is stored, in the same moment.
    fn needs_at_start(&self, _object: &dyn AnyObject, _store: &Store) -> Vec<Check> {
        Vec::new()
    }
    /// Says why an object cannot be deleted now, if it cannot.
    fn held_back(&self, _object: &dyn AnyObject, _store: &Store) -> Option<String> {
        None
    }
    /// What must be true when an object is gone, in the same moment.
    fn needs_at_end(&self, _object: &dyn AnyObject) -> Vec<Check> {
        Vec::new()
    }
    /// Records on an object that its deletion was asked for just now.
    fn mark_deleted(&self, _object: &mut dyn AnyObject, _store: &Store, _now: Timestamp) {}
    /// True if an object that is deleted is there until all that belongs to it has gone, however its deletion is asked for.
    fn goes_last(&self, _object: &dyn AnyObject) -> bool {
        false
    }
    /// True if what follows from the creation of an object is a time of day and no age.
    fn follows_wall_clock(&self) -> bool {
        false
    }
    /// True if somebody sees to it that dependents go first, so that the collector of garbage need not.
    fn ends_in_order(&self) -> bool {
        false
    }
    /// What decides on its objects, if adapters see to them.
    fn rules(&self) -> Option<&TypeRules> {
        None
    }
    /// Columns behind the name.
    fn columns(&self) -> &[ColumnInfo];
    /// True if its columns are all there are: no name before them, no age behind.
    fn has_own_columns(&self) -> bool {
        false
    }
    /// Cells of an object, one per column.
    fn cells(&self, object: &dyn AnyObject) -> Vec<Value>;
    /// Names of selectable fields besides those of the metadata.
    fn field_names(&self) -> Vec<Cow<'static, str>>;
    /// The value of a selectable field.
    fn field(&self, object: &dyn AnyObject, name: &str) -> Option<String>;
}
