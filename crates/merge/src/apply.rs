//! Server-side apply: merging what one manager wants into what is there.
//!
//! Decides the merged object and who owns its fields afterwards, or refuses: with the conflicts, if the
//! config would change fields others own, or with the reason, if the config cannot be merged. Never reads a
//! clock, never validates more than merging needs, and never converts between API versions: all versions are
//! walked with the one schema given.
//!
//! Invariants, for a result that is not a refusal: applying the same config again changes nothing; the config
//! is contained in the result; the manager owns exactly the fields its config lists.

use serde_json::{Value, json};

use crate::check_config::check_config;
use crate::collect::collect_object;
use crate::combine::combine;
use crate::compare::{Comparison, compare_objects};
use crate::conflict::{Conflict, conflicts_with};
use crate::depth::{MAX_DEPTH, MAX_DOCUMENT_DEPTH, TooDeep, check_depth};
use crate::field_set::FieldSet;
use crate::last_applied::{inherited, remember};
use crate::managed_fields::{
    Entry, ManagedFields, ManagedFieldsError, Operation, Writer, put_managed_fields, raw_managed_fields,
    without_managed_fields,
};
use crate::prune::prune_object;
use crate::schema::{SYSTEM_METADATA, Schema};

/// Who owns the fields of an object that nobody ever applied.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// A request to apply a config.
#[derive(Debug, Clone, Copy)]
pub struct Apply<'a> {
    /// The object as stored, if it exists.
    pub live: Option<&'a Value>,
    /// What the manager wants: the fields it has an opinion about, and no others.
    pub config: &'a Value,
    /// Who applies.
    pub manager: &'a str,
    /// Take conflicting fields from their owners instead of refusing.
    pub force: bool,
    /// The subresource applied to, or none for the object itself.
    pub subresource: Option<&'a str>,
    /// How the kind merges.
    pub schema: &'a Schema,
    /// The API version of the config.
    pub api_version: &'a str,
    /// The time, as RFC 3339.
    pub now: &'a str,
}

/// Why a config was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields the config would change. Never empty.
    #[error("apply failed with {}", crate::conflict::summary(.0))]
    Conflicts(Vec<Conflict>),
    /// The config, or what is stored, cannot be merged.
    #[error("{0}")]
    Invalid(String),
}

impl From<TooDeep> for ApplyError {
    fn from(error: TooDeep) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<ManagedFieldsError> for ApplyError {
    fn from(error: ManagedFieldsError) -> Self {
        Self::Invalid(format!("the stored metadata.{error}"))
    }
}

/// Applies a config. The result equals `live` exactly when nothing changed, times of ownership included.
pub fn apply(request: Apply<'_>) -> Result<Value, ApplyError> {
    let config = accept_config(&request)?;
    let live = Live::accept(&request)?;
    let writer = request.writer();
    let mut others = live.managed.clone();
    let last = others.take(&writer);
    let fields = collect_object(&config, request.schema);

    let mut object = combine(&live.object, &config, &request.schema.root);
    if let Some(last) = &last {
        let keep = fields.union(&others.all_fields());
        prune_object(&mut object, request.schema, &last.fields, &keep);
    }
    let comparison = compare_objects(&live.object, &object, request.schema);
    let inherited = inherited(request.manager, &live.object, request.schema);
    let conflicts = conflicts_with(&others, &comparison.changed.difference(&inherited));
    if !request.force && !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    let own = own_entry(&request, writer, fields, last, object == live.object);
    let managed = settle_ownership(&request, others, own, &comparison, &object);
    remember(request.manager, &config, &mut object);
    Ok(finish(&request, &live, object, &managed))
}

impl Apply<'_> {
    fn writer(&self) -> Writer {
        Writer {
            manager: self.manager.to_owned(),
            operation: Operation::Apply,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.map(ToOwned::to_owned),
        }
    }
}

/// The config, fit to be merged. Clients send empty system fields (`creationTimestamp: null`); those say
/// nothing.
fn accept_config(request: &Apply<'_>) -> Result<Value, ApplyError> {
    check_depth(request.config, MAX_DEPTH)?;
    if raw_managed_fields(request.config).is_some() {
        return Err(ApplyError::Invalid("metadata.managedFields must be nil".to_owned()));
    }
    check_config(request.config, &request.schema.root).map_err(ApplyError::Invalid)?;
    if !request.config.is_object() {
        return Err(ApplyError::Invalid("the object: expected a map, found null".to_owned()));
    }
    let mut config = request.config.clone();
    if let Some(map) = config.as_object_mut() {
        map.retain(|name, value| !(name == "metadata" && value.is_null()));
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, value| !(value.is_null() && SYSTEM_METADATA.contains(&name.as_str())));
        }
    }
    Ok(config)
}

/// The stored object, taken apart.
struct Live {
    /// The object without `metadata.managedFields`; empty if there is none.
    object: Value,
    /// Its owners as stored.
    stored: ManagedFields,
    /// Its owners as they count: somebody owns what was there before the first apply.
    managed: ManagedFields,
}

impl Live {
    fn accept(request: &Apply<'_>) -> Result<Self, ApplyError> {
        let Some(live) = request.live else {
            let stored = ManagedFields::default();
            return Ok(Self { object: json!({}), managed: stored.clone(), stored });
        };
        if !live.is_object() {
            return Err(ApplyError::Invalid("the stored object is not a map".to_owned()));
        }
        check_depth(live, MAX_DOCUMENT_DEPTH)?;
        let object = without_managed_fields(live);
        check_depth(&object, MAX_DEPTH)?;
        let stored = ManagedFields::of(live)?;
        let mut managed = stored.clone();
        if managed.is_empty() {
            managed.add(before_first_apply(request, &object));
        }
        Ok(Self { object, stored, managed })
    }
}

fn before_first_apply(request: &Apply<'_>, object: &Value) -> Entry {
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or(request.api_version);
    let writer = Writer {
        manager: BEFORE_FIRST_APPLY.to_owned(),
        operation: Operation::Update,
        api_version: api_version.to_owned(),
        subresource: None,
    };
    let fields = collect_object(object, request.schema);
    Entry { writer, time: Some(request.now.to_owned()), fields }
}

/// The entry of the applier after this apply; it keeps its old time if the apply changed nothing.
fn own_entry(
    request: &Apply<'_>,
    writer: Writer,
    fields: FieldSet,
    last: Option<Entry>,
    same_object: bool,
) -> Entry {
    match last {
        Some(last) if same_object && last.writer == writer && last.fields == fields => last,
        _ => Entry { writer, time: Some(request.now.to_owned()), fields },
    }
}

fn settle_ownership(
    request: &Apply<'_>,
    mut others: ManagedFields,
    own: Entry,
    comparison: &Comparison,
    object: &Value,
) -> ManagedFields {
    others.map_fields(|fields| comparison.leave(fields));
    others.add(own);
    if others.is_empty() {
        // The next apply would find an object nobody applied; if it is to be a no-op, that must be settled
        // now.
        others.add(before_first_apply(request, object));
    }
    others
}

fn finish(request: &Apply<'_>, live: &Live, mut object: Value, managed: &ManagedFields) -> Value {
    // What is stored may spell the same ownership differently; a no-op must not rewrite it.
    if let Some(stored) = request.live
        && object == live.object
        && *managed == live.stored
    {
        return stored.clone();
    }
    if !managed.is_empty() {
        put_managed_fields(&mut object, managed.to_json());
    }
    object
}
