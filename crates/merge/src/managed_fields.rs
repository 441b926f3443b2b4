//! Who owns which fields of an object: `metadata.managedFields`, decoded.
//!
//! A writer is one manager writing in one way (Apply or Update) to one subresource. For updates the API
//! version counts too; an applier stays the same writer when it moves to another version, or the fields of
//! its old version would be orphaned.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::field_set::FieldSet;
use crate::fields_v1::FieldsV1Error;

/// The longest a name, version or time in an entry may be. Each conflict repeats them.
const MAX_TEXT: usize = 1024;

/// How a manager wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// One who writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The name of the manager.
    pub manager: String,
    /// How it wrote.
    pub operation: Operation,
    /// The API version it wrote in.
    pub api_version: String,
    /// The subresource it wrote to, or none for the object itself.
    pub subresource: Option<String>,
}

/// One writer and what it owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub writer: Writer,
    /// When its fields last changed, as RFC 3339.
    pub time: Option<String>,
    /// What it owns.
    pub fields: FieldSet,
}

/// All writers of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedFields {
    entries: BTreeMap<Identity, Entry>,
}

/// What makes two writers the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    operation: Operation,
    manager: String,
    /// None for appliers: they are the same in every version.
    api_version: Option<String>,
    subresource: Option<String>,
}

/// `metadata.managedFields` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// It is not a list.
    #[error("managedFields is not a list")]
    NotAList,
    /// An entry is not a map.
    #[error("managedFields[{index}] is not a map")]
    NotAMap {
        /// Which entry.
        index: usize,
    },
    /// A field of an entry is not what it must be.
    #[error("managedFields[{index}].{field} is not {expected}")]
    BadField {
        /// Which entry.
        index: usize,
        /// Which field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// The fields of an entry cannot be read.
    #[error("managedFields[{index}].fieldsV1: {source}")]
    BadFields {
        /// Which entry.
        index: usize,
        /// Why.
        source: FieldsV1Error,
    },
}

impl Operation {
    /// The name the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Writer {
    fn identity(&self) -> Identity {
        Identity {
            operation: self.operation,
            manager: self.manager.clone(),
            api_version: (self.operation == Operation::Update).then(|| self.api_version.clone()),
            subresource: self.subresource.clone(),
        }
    }
}

impl ManagedFields {
    /// Reads `metadata.managedFields` of an object; an object without has no writers.
    pub fn of(object: &Value) -> Result<Self, ManagedFieldsError> {
        let list = match raw_managed_fields(object) {
            None => return Ok(Self::default()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(ManagedFieldsError::NotAList),
        };
        let mut out = Self::default();
        for (index, entry) in list.iter().enumerate() {
            out.add(read_entry(entry, index)?);
        }
        Ok(out)
    }

    /// The list to store, in the order Kubernetes uses: appliers first, then by time and name.
    pub fn to_json(&self) -> Value {
        let mut entries: Vec<&Entry> = self.entries.values().collect();
        entries.sort_by_key(|entry| {
            let writer = &entry.writer;
            (writer.operation, &entry.time, &writer.manager, &writer.api_version, &writer.subresource)
        });
        entries.into_iter().map(write_entry).collect()
    }

    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries, appliers first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The entry of one writer.
    pub fn entry(&self, writer: &Writer) -> Option<&Entry> {
        self.entries.get(&writer.identity())
    }

    /// Takes the entry of one writer out.
    pub(crate) fn take(&mut self, writer: &Writer) -> Option<Entry> {
        self.entries.remove(&writer.identity())
    }

    /// Adds what a writer owns to what it owned already; the newer time counts.
    pub(crate) fn add(&mut self, entry: Entry) {
        if entry.fields.is_empty() {
            return;
        }
        let identity = entry.writer.identity();
        if let Some(known) = self.entries.get_mut(&identity) {
            known.fields.absorb(&entry.fields);
            known.time = known.time.take().max(entry.time);
        } else {
            self.entries.insert(identity, entry);
        }
    }

    /// Changes what everybody owns; who owns nothing any more goes.
    pub(crate) fn map_fields(&mut self, change: impl Fn(&FieldSet) -> FieldSet) {
        self.entries.retain(|_, entry| {
            entry.fields = change(&entry.fields);
            !entry.fields.is_empty()
        });
    }

    /// Everything anybody owns.
    pub(crate) fn all_fields(&self) -> FieldSet {
        let mut all = FieldSet::default();
        self.entries().for_each(|entry| all.absorb(&entry.fields));
        all
    }
}

/// `metadata.managedFields` as it stands; null counts as absent.
pub(crate) fn raw_managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|value| !value.is_null())
}

/// The object without its `metadata.managedFields`.
pub(crate) fn without_managed_fields(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    out
}

/// Puts `metadata.managedFields` into an object that has none.
pub(crate) fn put_managed_fields(object: &mut Value, managed_fields: Value) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), managed_fields);
    } else {
        *metadata = json!({ "managedFields": managed_fields });
    }
}

fn read_entry(entry: &Value, index: usize) -> Result<Entry, ManagedFieldsError> {
    let entry = entry.as_object().ok_or(ManagedFieldsError::NotAMap { index })?;
    let text = |field: &'static str| match entry.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= MAX_TEXT => Ok(Some(text.clone())),
        Some(_) => {
            Err(ManagedFieldsError::BadField { index, field, expected: "a string of at most 1024 bytes" })
        }
    };
    let bad = |field, expected| ManagedFieldsError::BadField { index, field, expected };
    let operation = match text("operation")?.as_deref() {
        Some("Apply") => Operation::Apply,
        Some("Update") => Operation::Update,
        _ => return Err(bad("operation", "Apply or Update")),
    };
    if text("fieldsType")?.as_deref() != Some("FieldsV1") {
        return Err(bad("fieldsType", "FieldsV1"));
    }
    let writer = Writer {
        manager: text("manager")?.unwrap_or_default(),
        operation,
        api_version: text("apiVersion")?.unwrap_or_default(),
        subresource: text("subresource")?.filter(|name| !name.is_empty()),
    };
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::from_fields_v1(fields)
            .map_err(|source| ManagedFieldsError::BadFields { index, source })?,
    };
    Ok(Entry { writer, time: text("time")?, fields })
}

fn write_entry(entry: &Entry) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("apiVersion", entry.writer.api_version.as_str().into());
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", entry.fields.to_fields_v1());
    put("manager", entry.writer.manager.as_str().into());
    put("operation", entry.writer.operation.as_str().into());
    if let Some(subresource) = &entry.writer.subresource {
        put("subresource", subresource.as_str().into());
    }
    if let Some(time) = &entry.time {
        put("time", time.as_str().into());
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(operation: &str, manager: &str, time: &str) -> Value {
        json!({
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}}},
            "manager": manager, "operation": operation, "time": time,
        })
    }

    fn read(list: Value) -> Result<ManagedFields, ManagedFieldsError> {
        ManagedFields::of(&json!({"metadata": {"managedFields": list}}))
    }

    #[test]
    fn managed_fields_round_trip() {
        let mut status = entry("Update", "b", "2");
        status["subresource"] = "status".into();
        let list = json!([entry("Apply", "a", "3"), entry("Update", "b", "1"), status]);
        assert_eq!(read(list.clone()).unwrap().to_json(), list);
    }

    #[test]
    fn entries_are_stored_appliers_first_then_by_time() {
        let list = json!([entry("Update", "z", "1"), entry("Apply", "b", "9"), entry("Update", "y", "0")]);
        let stored = read(list).unwrap().to_json();
        let names: Vec<_> =
            stored.as_array().unwrap().iter().map(|entry| entry["manager"].as_str()).collect();
        assert_eq!(names, [Some("b"), Some("y"), Some("z")]);
    }

    #[test]
    fn an_object_without_managed_fields_has_no_writers() {
        for object in
            [json!({}), json!(1), json!({"metadata": {"managedFields": null}}), json!({"metadata": []})]
        {
            assert!(ManagedFields::of(&object).unwrap().is_empty());
        }
    }

    #[test]
    fn an_applier_is_the_same_writer_in_every_version_but_an_updater_is_not() {
        let in_two_versions = |operation: &str| {
            let mut newer = entry(operation, "m", "2");
            newer["apiVersion"] = "v2".into();
            read(json!([entry(operation, "m", "1"), newer])).unwrap().entries().count()
        };
        assert_eq!(in_two_versions("Apply"), 1);
        assert_eq!(in_two_versions("Update"), 2);
    }

    #[test]
    fn who_applies_and_who_updates_under_one_name_are_two() {
        let managed = read(json!([entry("Apply", "m", "1"), entry("Update", "m", "1")])).unwrap();
        assert_eq!(managed.entries().count(), 2);
    }

    #[test]
    fn two_entries_of_one_writer_are_one() {
        let mut second = entry("Apply", "a", "2");
        second["fieldsV1"] = json!({"f:spec": {"f:b": {}}});
        let managed = read(json!([entry("Apply", "a", "1"), second])).unwrap();
        let entries: Vec<_> = managed.entries().collect();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].fields.paths(), [".spec.a", ".spec.b"]);
        assert_eq!(entries[0].time.as_deref(), Some("2"));
    }

    #[test]
    fn malformed_entries_are_refused_with_their_place() {
        let with = |field: &str, value: Value| {
            let mut bad = entry("Apply", "a", "1");
            bad[field] = value;
            read(json!([entry("Apply", "x", "1"), bad])).unwrap_err().to_string()
        };
        assert_eq!(read(json!({})).unwrap_err(), ManagedFieldsError::NotAList);
        assert_eq!(read(json!([1])).unwrap_err(), ManagedFieldsError::NotAMap { index: 0 });
        assert_eq!(with("operation", json!("Patch")), "managedFields[1].operation is not Apply or Update");
        assert_eq!(with("fieldsType", json!("FieldsV2")), "managedFields[1].fieldsType is not FieldsV1");
        let expected = "managedFields[1].manager is not a string of at most 1024 bytes";
        assert_eq!(with("manager", json!(1)), expected);
        assert_eq!(with("manager", json!("m".repeat(1025))), expected);
        assert_eq!(with("fieldsV1", json!([])), "managedFields[1].fieldsV1: \"\" is not a JSON object");
    }
}
