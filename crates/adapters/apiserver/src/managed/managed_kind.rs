//! A kind that a ResourceType declares, seen as a [`Kind`].

use std::any::Any;
use std::borrow::Cow;

use muster_merge::Schema;
use muster_ports::store::{Check, Store};
use muster_resources::root_conditions::fold_conditions;
use muster_resources::{FieldProblem, TypeRules};
use muster_schema::{Problem, StructuralSchema};
use muster_types::adapter_report::AVAILABLE;
use muster_types::condition::find_condition;
use muster_types::managed_resource::{FINALIZER, FORCE_DELETE, ManagedResource, ManagedStatus, READY};
use muster_types::metadata::Metadata;
use muster_types::name_rules;
use muster_types::names::{RESOURCES_GROUP, VERSION};
use muster_types::resource_type::{ResourceScope, ResourceType, ResourceTypeSpec};
use muster_types::{JsonText, Timestamp};
use serde_json::{Value, json};

use super::column_path::ColumnPath;
use super::{documents, family};
use crate::decode::decode;
use crate::kind::{AnyObject, ColumnInfo, Decoded, Input, Kind, KindInfo, Part, Writing};
use crate::refusal::{Causes, Refusal};
use crate::status_rules::StatusRule;

/// Conditions follow from what adapters report, so users write nothing of a status.
const STATUS: StatusRule = StatusRule::Only(
    &[],
    "adapters alone report it, with PUT to the subresource statuses and a token of the role reporter",
);
/// Longest reason of a deletion by force.
const MAX_REASON: usize = 1024;

/// A declared kind, ready to be served.
pub struct ManagedKind {
    info: KindInfo,
    openapi: Value,
    schema: Schema,
    spec: StructuralSchema,
    rules: TypeRules,
    columns: Vec<ColumnInfo>,
    paths: Vec<ColumnPath>,
    /// The type goes: nothing new is taken.
    ends: bool,
}

impl ManagedKind {
    /// What a type declares, or why it cannot be served.
    pub fn new(declared: &ResourceType) -> Result<Self, String> {
        let spec = &declared.spec;
        let names = &spec.names;
        let shape = spec.schema.clone().unwrap_or_else(|| json!({ "type": "object" }));
        let shape = StructuralSchema::read(&shape).map_err(|error| format!("{}: {error}", error.at))?;
        let openapi = documents::openapi(&names.kind, shape.published());
        let paths = spec.columns.iter().map(|column| ColumnPath::parse(&column.path));
        Ok(Self {
            info: KindInfo {
                group: RESOURCES_GROUP.to_owned(),
                version: VERSION.to_owned(),
                kind: names.kind.clone(),
                plural: names.plural.clone(),
                singular: names.singular(),
                short_names: names.short_names.clone(),
                namespaced: spec.scope() == ResourceScope::Namespaced,
                has_status: true,
                resource: family::resource_of(&names.plural),
            },
            schema: documents::merge_schema(&openapi)?,
            openapi,
            columns: columns(spec),
            paths: paths.collect::<Result<_, _>>()?,
            rules: TypeRules::compile(spec).map_err(|problems| first(&problems))?,
            spec: shape,
            ends: declared.metadata.deletion_timestamp.is_some(),
        })
    }

    fn validate(&self, resource: &ManagedResource, causes: &mut Causes) {
        for violation in self.spec.check(&resource.spec, "spec") {
            match violation.problem {
                Problem::Missing => causes.required(violation.at, "its type needs it"),
                Problem::Wrong { value, why } => causes.invalid(violation.at, value, why),
            }
        }
    }

    /// What only the server says of a resource stays, whatever a change says.
    fn keep_own(&self, old: &ManagedResource, new: &mut ManagedResource, causes: &mut Causes) {
        let metadata = &mut new.metadata;
        let had = old.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
        if had && !metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            metadata.finalizers.push(FINALIZER.to_owned());
        }
        if let Some(parent) = &self.rules.spec().parent {
            family::keep_owner(parent, old, new);
            let named = |resource: &ManagedResource| resource.spec.get(&parent.field).cloned();
            if named(old) != named(new) {
                causes.forbidden(
                    format!("spec.{}", parent.field),
                    "a resource stays with its parent; make a new one",
                );
            }
        }
    }
}

/// A resource that is being deleted is let go by force for a reason, and no other is.
fn validate_force(old: &Metadata, new: &Metadata, causes: &mut Causes) {
    let Some(reason) = new.annotations.get(FORCE_DELETE) else { return };
    if old.annotations.get(FORCE_DELETE) == Some(reason) {
        return;
    }
    let field = format!("metadata.annotations[{FORCE_DELETE}]");
    if old.deletion_timestamp.is_none() {
        causes.forbidden(&*field, "only what is being deleted can be let go by force; delete it first");
    }
    if reason.trim().is_empty() || reason.len() > MAX_REASON {
        let shown: String = reason.chars().take(32).collect();
        causes.invalid(field, shown, format!("must be the reason, in at most {MAX_REASON} bytes"));
    }
}

impl Kind for ManagedKind {
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
        let (mut resource, mut unknown) = decode::<ManagedResource>(&self.info, input)?;
        for (what, found, expected) in [
            ("apiVersion", &resource.api_version, &self.info.api_version()),
            ("kind", &resource.kind, &self.info.kind),
        ] {
            if found != expected {
                let message = format!(
                    "the {what} in the data ({found}) does not match the expected {what} ({expected})"
                );
                return Err(Refusal::undecodable(what, &message));
            }
        }
        if resource.spec.is_null() {
            resource.spec = json!({});
        }
        unknown.extend(self.spec.prune(&mut resource.spec, "spec"));
        self.spec.fill(&mut resource.spec);
        Ok(Decoded { object: Box::new(resource), unknown })
    }

    fn prepare_create(&self, new: &mut dyn AnyObject, by: Writing<'_>, causes: &mut Causes) {
        let Some(new) = managed_mut(new) else { return };
        new.status = ManagedStatus::default();
        new.metadata.generation = 1;
        if self.ends {
            causes.forbidden("kind", format!("the resource type {} is being deleted", self.info.plural));
        }
        if let Err(why) = name_rules::label_value(&new.metadata.name) {
            let why = format!("tasks of its adapters are labelled with it: {why}");
            causes.invalid("metadata.name", &new.metadata.name, why);
        }
        if !new.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            new.metadata.finalizers.push(FINALIZER.to_owned());
        }
        validate_force(&Metadata::default(), &new.metadata, causes);
        self.validate(new, causes);
        if let Some(parent) = &self.rules.spec().parent {
            family::join(parent, new, by.store, causes);
        }
        fold_conditions(&self.rules, new, by.now);
    }

    fn prepare_update(
        &self,
        old: &dyn AnyObject,
        new: &mut dyn AnyObject,
        part: Part,
        by: Writing<'_>,
        causes: &mut Causes,
    ) {
        let (Some(old), Some(new)) = (managed(old), managed_mut(new)) else { return };
        match part {
            Part::Main => {
                new.status.clone_from(&old.status);
                self.keep_own(old, new, causes);
                validate_force(&old.metadata, &new.metadata, causes);
            }
            Part::Status => {
                new.spec.clone_from(&old.spec);
                let managed_fields = new.metadata.managed_fields.take();
                new.metadata.clone_from(&old.metadata);
                new.metadata.managed_fields = managed_fields;
                STATUS.check(&old.status, &new.status, causes);
            }
        }
        let changed = new.spec != old.spec;
        new.metadata.generation = old.metadata.generation + i64::from(changed);
        if changed {
            if old.is_deleting() {
                causes.forbidden("spec", "the resource is being deleted");
            }
            self.validate(new, causes);
            // Not Ready from the moment on that another spec is asked for.
            fold_conditions(&self.rules, new, by.now);
        }
    }

    fn needs_at_start(&self, object: &dyn AnyObject, store: &Store) -> Vec<Check> {
        let family = self.rules.spec().parent.as_ref().zip(managed(object));
        let parent = family.and_then(|(parent, resource)| family::parent_key(parent, resource, store));
        family::needs(&self.info.plural, parent)
    }

    fn held_back(&self, object: &dyn AnyObject, store: &Store) -> Option<String> {
        managed(object).and_then(|resource| family::restrained(&self.info.plural, resource, store))
    }

    fn mark_deleted(&self, object: &mut dyn AnyObject, _store: &Store, now: Timestamp) {
        if let Some(resource) = managed_mut(object) {
            fold_conditions(&self.rules, resource, now);
        }
    }

    fn rules(&self) -> Option<&TypeRules> {
        Some(&self.rules)
    }

    fn ends_in_order(&self) -> bool {
        true
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn cells(&self, object: &dyn AnyObject) -> Vec<Value> {
        let Some(resource) = managed(object) else { return Vec::new() };
        let condition = |name: &str| find_condition(&resource.status.conditions, name);
        let status =
            |name: &str| condition(name).map_or_else(|| json!("Unknown"), |found| json!(found.status));
        let mut cells = vec![status(READY), status(AVAILABLE)];
        // Only what a column asks for is made.
        let whole = |part: &str| match part {
            "metadata" => serde_json::to_value(&resource.metadata).unwrap_or_default(),
            "status" => serde_json::to_value(&resource.status).unwrap_or_default(),
            _ => Value::Null,
        };
        for path in &self.paths {
            let document = match path.root() {
                "spec" => json!({ "spec": resource.spec }),
                part => json!({ part: whole(part) }),
            };
            cells.push(path.find(&document).map_or_else(|| json!("<none>"), cell));
        }
        cells.push(json!(condition(READY).map(|found| found.reason.clone())));
        cells
    }

    fn field_names(&self) -> Vec<Cow<'static, str>> {
        self.rules.spec().parent.iter().map(|parent| format!("spec.{}", parent.field).into()).collect()
    }

    fn field(&self, object: &dyn AnyObject, name: &str) -> Option<String> {
        let value = managed(object)?.spec.get(name.strip_prefix("spec.")?)?;
        value.as_str().map(str::to_owned)
    }
}

/// Ready and Available, what the type adds, and why.
fn columns(spec: &ResourceTypeSpec) -> Vec<ColumnInfo> {
    let column = |name: &'static str, description: &'static str, wide| ColumnInfo {
        name: name.into(),
        description: description.into(),
        wide,
        column_type: "string",
    };
    let mut columns = vec![
        column("Ready", "Whether it runs as its latest spec says.", false),
        column("Available", "Whether it runs, at some generation.", false),
    ];
    columns.extend(spec.columns.iter().map(|declared| ColumnInfo {
        name: declared.name.clone().into(),
        description: declared.description.clone().into(),
        wide: declared.wide,
        column_type: "string",
    }));
    columns.push(column("Reason", "Why it is Ready, or is not.", true));
    columns
}

fn first(problems: &[FieldProblem]) -> String {
    problems.first().map(ToString::to_string).unwrap_or_default()
}

/// A value as it stands in a table: what is no text, number or boolean is shown as JSON.
fn cell(value: &Value) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) => Value::String(value.to_string()),
        Value::String(_) => value.clone(),
        Value::Null => json!("<none>"),
        other => json!(other.to_string()),
    }
}

impl AnyObject for ManagedResource {
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

fn managed(object: &dyn AnyObject) -> Option<&ManagedResource> {
    (object as &dyn Any).downcast_ref()
}

fn managed_mut(object: &mut dyn AnyObject) -> Option<&mut ManagedResource> {
    (object as &mut dyn Any).downcast_mut()
}
