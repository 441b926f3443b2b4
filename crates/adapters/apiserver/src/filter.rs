//! Which objects of a kind a client wants to see.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_ports::store::Stored;
use muster_types::field_selector::{FieldOperator, FieldSelector};
use muster_types::label_selector::LabelSelector;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::kind::{Input, Kind};
use crate::options::Options;
use crate::refusal::Refusal;

/// A namespace and selectors.
pub struct Filter {
    /// The kind of the objects.
    pub kind: Arc<dyn Kind>,
    /// Only this namespace.
    pub namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    /// Some field is not part of the metadata, so objects must be decoded.
    needs_object: bool,
}

/// The labels as they are written.
#[derive(Deserialize)]
struct Labelled<'a> {
    #[serde(borrow, default)]
    labels: Option<&'a RawValue>,
}

impl Filter {
    /// Checks that every field can be selected by.
    pub fn new(kind: Arc<dyn Kind>, namespace: Option<String>, options: &Options) -> Result<Self, Refusal> {
        let known = kind.field_names();
        let mut needs_object = false;
        for requirement in options.fields.requirements() {
            let field = requirement.field.as_str();
            if matches!(field, "metadata.name" | "metadata.namespace") {
                continue;
            }
            if !known.iter().any(|known| known == field) {
                let mut all = vec!["metadata.name".into(), "metadata.namespace".into()];
                all.extend(known);
                return Err(Refusal::bad_request(format!(
                    "field label not supported: {field}; {} can be selected by {}",
                    kind.info().plural,
                    all.join(", ")
                )));
            }
            needs_object = true;
        }
        let (labels, fields) = (options.labels.clone(), options.fields.clone());
        Ok(Self { kind, namespace, labels, fields, needs_object })
    }

    /// True if every object of the namespace passes.
    pub fn selects_all(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Does this object pass?
    pub fn passes(&self, stored: &Stored) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| stored.namespace() == namespace)
            && (self.fields.is_everything() || self.fields_match(stored))
            && (self.labels.is_everything() || self.labels_match(stored))
    }

    /// Did an object pass before a change, and does it after?
    pub fn passes_around(&self, previous: &Stored, object: &Stored) -> (bool, bool) {
        // Labels seldom change, and comparing them is much less than reading them.
        let are_alike = || self.labels.is_everything() || labels(previous) == labels(object);
        if self.fields.is_everything() && are_alike() {
            let passes = self.passes(object);
            return (passes, passes);
        }
        (self.passes(previous), self.passes(object))
    }

    fn labels_match(&self, stored: &Stored) -> bool {
        let Some(labels) = labels(stored) else { return self.labels.matches_with(|_| None) };
        // What a label may be needs no escapes.
        let read: Result<BTreeMap<&str, &str>, _> = serde_json::from_str(labels);
        read.is_ok_and(|labels| self.labels.matches_with(|key| labels.get(key).copied()))
    }

    fn fields_match(&self, stored: &Stored) -> bool {
        let metadata = |field: &str| match field {
            "metadata.name" => Some(stored.name().to_owned()),
            "metadata.namespace" => Some(stored.namespace().to_owned()),
            _ => None,
        };
        let decoded =
            if self.needs_object { self.kind.decode(Input::Json(stored.json())).ok() } else { None };
        self.fields.requirements().iter().all(|requirement| {
            let of_object =
                || decoded.as_ref().and_then(|decoded| self.kind.field(&*decoded.object, &requirement.field));
            let value = metadata(&requirement.field).or_else(of_object);
            (value.as_deref().unwrap_or_default() == requirement.value)
                == (requirement.operator == FieldOperator::Equals)
        })
    }
}

fn labels(stored: &Stored) -> Option<&str> {
    stored.metadata::<Labelled<'_>>().and_then(|metadata| metadata.labels).map(RawValue::get)
}
