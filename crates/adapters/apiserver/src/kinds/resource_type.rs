//! ResourceType: what a kind of managed resources may be called, hold and need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use muster_ports::store::{Check, Key, Precondition, Snapshot, Store};
use muster_resources::{FieldProblem, check_type};
use muster_schema::StructuralSchema;
use muster_types::name_rules::MAX_LABEL;
use muster_types::resource_type::{Parent, PrinterColumn, ResourceNames, ResourceScope, ResourceTypeSpec};
use muster_types::{JsonText, ResourceType};
use serde_json::json;

use super::task::or_none;
use crate::declared::types_resource;
use crate::kind::{Column, KindInfo, Strategy};
use crate::managed::column_path::ColumnPath;
use crate::managed::resource_of;
use crate::refusal::Causes;

/// Types of one server.
const MOST_TYPES: usize = 1000;
/// Columns and short names of one type.
const MOST_NAMES: usize = 16;
/// Resources above each other.
const MOST_LEVELS: usize = 8;

/// Words of kubectl that mean something else already: names of our kinds, and of the few that are not ours.
static TAKEN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let names = |info: &KindInfo| {
        let mut names = vec![info.plural.clone(), info.singular.clone(), info.kind.to_lowercase()];
        names.extend(info.short_names.clone());
        names
    };
    let ours = super::registry().kinds();
    let others = ["namespaces", "namespace", "ns", "events", "event", "ev", "muster", "all"];
    ours.iter().flat_map(|kind| names(kind.info())).chain(others.map(str::to_owned)).collect()
});

impl Strategy for ResourceTypeSpec {
    fn validate(object: &ResourceType, causes: &mut Causes) {
        let spec = &object.spec;
        for FieldProblem { field, value, why } in check_type(&object.metadata.name, spec) {
            causes.invalid(field, value, why);
        }
        refuse_taken(&spec.names, causes);
        if let Some(schema) = &spec.schema
            && let Err(error) = StructuralSchema::read(schema)
        {
            let at = if error.at.is_empty() { String::new() } else { format!(".{}", error.at) };
            let last = error.at.rsplit('.').next().filter(|last| !last.is_empty()).unwrap_or("schema");
            causes.invalid(format!("spec.schema{at}"), last, error.why);
        }
        validate_parent_field(spec, causes);
        validate_columns(&spec.columns, causes);
    }

    fn validate_update(old: &ResourceType, new: &ResourceType, causes: &mut Causes) {
        let fixed = [
            ("names", old.spec.names != new.spec.names),
            ("scope", old.spec.scope() != new.spec.scope()),
            ("parent", place_of(&old.spec) != place_of(&new.spec)),
        ];
        for (field, _) in fixed.iter().filter(|(_, changed)| *changed) {
            causes.forbidden(
                format!("spec.{field}"),
                "cannot change: resources are kept by it; make a new type",
            );
        }
    }

    fn admit(object: &ResourceType, stored: &Snapshot, causes: &mut Causes) {
        let others: BTreeMap<String, ResourceType> = stored
            .range(None, None)
            .filter_map(|stored| ResourceType::from_json(stored.json()).ok())
            .map(|other| (other.metadata.name.clone(), other))
            .filter(|(name, _)| *name != object.metadata.name)
            .collect();
        if others.len() >= MOST_TYPES {
            causes.forbidden("metadata.name", format!("there are {MOST_TYPES} types; delete some first"));
        }
        refuse_clashes(&object.spec.names, &others, causes);
        if let Some(parent) = &object.spec.parent {
            admit_parent(&object.metadata.name, &object.spec, parent, &others, causes);
        }
    }

    fn held_back(object: &ResourceType, store: &Store) -> Option<String> {
        let plural = &object.spec.names.plural;
        let count = store.snapshot(&resource_of(plural)).len();
        if count > 0 {
            return Some(format!("{plural} of this type are left: {count}; delete them first"));
        }
        let types = store.snapshot(&types_resource());
        let child = types.range(None, None).find(|stored| {
            let child: Option<ResourceType> = ResourceType::from_json(stored.json()).ok();
            let parent = child.and_then(|child| child.spec.parent);
            parent.is_some_and(|parent| parent.resource_type == *plural)
        })?;
        Some(format!("it is the parent of the resource type {}; delete that first", child.name()))
    }

    /// Whoever makes a resource needs the type to be there: one of the two comes first.
    fn needs_at_end(object: &ResourceType) -> Vec<Check> {
        let key = Key::new(&resource_of(&object.spec.names.plural), "", "");
        vec![Check { key, expect: Precondition::NoneOfKind }]
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Kind", "The kind it declares.", |it| json!(it.spec.names.kind)),
            Column::<Self>::text("Scope", "Where its resources live.", |it| {
                json!(it.spec.scope().to_string())
            }),
            Column::<Self>::text("Parent", "The type its resources belong to.", |it| {
                or_none(it.spec.parent.as_ref().map_or("", |parent| &parent.resource_type))
            }),
            Column::<Self>::text("Adapters", "The adapters it requires.", |it| {
                or_none(&it.spec.adapters.join(","))
            }),
        ]
    }
}

/// Where in its family a type stands; what happens at the end of a parent may change.
fn place_of(spec: &ResourceTypeSpec) -> Option<(&str, &str)> {
    spec.parent.as_ref().map(|parent| (parent.resource_type.as_str(), parent.field.as_str()))
}

/// Names must leave room for ours.
fn refuse_taken(names: &ResourceNames, causes: &mut Causes) {
    if names.short_names.len() > MOST_NAMES {
        let why = format!("a type can have {MOST_NAMES} short names");
        causes.invalid("spec.names.shortNames", names.short_names.len(), why);
    }
    for (field, word) in words_of(names) {
        if TAKEN.contains(&word) {
            causes.invalid(field, &word, "is a name of another kind that is always there; choose another");
        }
    }
}

/// Every word that kubectl would take for the kind, with its field.
fn words_of(names: &ResourceNames) -> Vec<(String, String)> {
    let mut words = vec![
        ("spec.names.plural".to_owned(), names.plural.clone()),
        ("spec.names.singular".to_owned(), names.singular()),
        ("spec.names.kind".to_owned(), names.kind.to_lowercase()),
    ];
    let short = names.short_names.iter().enumerate();
    words.extend(short.map(|(index, short)| (format!("spec.names.shortNames[{index}]"), short.clone())));
    words.retain(|(_, word)| !word.is_empty());
    words
}

fn refuse_clashes(names: &ResourceNames, others: &BTreeMap<String, ResourceType>, causes: &mut Causes) {
    let mut known = BTreeMap::new();
    for (name, other) in others {
        known.extend(words_of(&other.spec.names).into_iter().map(|(_, word)| (word, name)));
    }
    for (field, word) in words_of(names) {
        if let Some(other) = known.get(&word) {
            causes.invalid(field, &word, format!("is a name of the resource type {other}; choose another"));
        }
    }
}

/// The name of the parent is text, wherever a schema says what a spec holds.
fn validate_parent_field(spec: &ResourceTypeSpec, causes: &mut Causes) {
    let Some(parent) = spec.parent.as_ref().filter(|parent| !parent.field.is_empty()) else { return };
    let declared = spec.schema.as_ref().and_then(|schema| schema.get("properties"));
    let kind = declared.map(|fields| fields.get(&parent.field).and_then(|field| field.get("type")));
    if kind.is_some_and(|kind| kind != Some(&json!("string"))) {
        let why = "must be a property of the schema, of type string";
        causes.invalid("spec.parent.field", &parent.field, why);
    }
}

fn admit_parent(
    name: &str,
    spec: &ResourceTypeSpec,
    parent: &Parent,
    others: &BTreeMap<String, ResourceType>,
    causes: &mut Causes,
) {
    let field = "spec.parent.resourceType";
    let Some(above) = others.get(&parent.resource_type) else {
        let why = "there is no such resource type; make it first";
        return causes.invalid(field, &parent.resource_type, why);
    };
    if spec.scope() == ResourceScope::Cluster && above.spec.scope() == ResourceScope::Namespaced {
        causes.invalid(field, &parent.resource_type, "its resources live in namespaces, these would not");
    }
    let parent_of =
        |name: &str| others.get(name)?.spec.parent.as_ref().map(|parent| parent.resource_type.clone());
    let mut line = vec![name.to_owned(), parent.resource_type.clone()];
    while let Some(next) = parent_of(&line[line.len() - 1]) {
        let known = line.contains(&next);
        line.push(next);
        if known {
            let why = format!("types cannot belong to each other in a circle: {}", line.join(" -> "));
            return causes.invalid(field, &parent.resource_type, why);
        }
        if line.len() > MOST_LEVELS {
            let why = format!("at most {MOST_LEVELS} types can stand above each other");
            return causes.invalid(field, &parent.resource_type, why);
        }
    }
}

fn validate_columns(columns: &[PrinterColumn], causes: &mut Causes) {
    if columns.len() > MOST_NAMES {
        causes.invalid("spec.columns", columns.len(), format!("a type can have {MOST_NAMES} columns"));
    }
    let mut names = BTreeSet::from(["Name", "Ready", "Available", "Reason", "Age"]);
    for (index, column) in columns.iter().enumerate().take(MOST_NAMES) {
        let field = |name: &str| format!("spec.columns[{index}].{name}");
        if column.name.len() > MAX_LABEL {
            causes.invalid(
                field("name"),
                &column.name,
                format!("must be a heading of at most {MAX_LABEL} bytes"),
            );
        } else if !names.insert(&column.name) {
            causes.invalid(field("name"), &column.name, "is a column already");
        }
        // One that does not even begin like a path is told so already.
        if column.path.starts_with('.')
            && let Err(why) = ColumnPath::parse(&column.path)
        {
            causes.invalid(field("path"), &column.path, why);
        }
    }
}
