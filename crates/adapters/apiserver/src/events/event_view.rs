//! Which events a client wants to see, and what a change of an object means for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_ports::clock::Clock;
use muster_ports::store::{Change, ResourceName, Stored};
use muster_types::field_selector::{FieldOperator, FieldSelector};

use super::derive::events_of;
use super::event::{Dialect, Event};
use crate::call::Call;
use crate::refusal::Refusal;
use crate::shows::Shows;

/// Fields that events can be selected by; `regarding` is another word for `involvedObject`.
const FIELDS: [&str; 23] = [
    "metadata.name",
    "metadata.namespace",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "type",
    "source",
    "reportingComponent",
    "reportingController",
    "action",
    "related",
];

/// Events that pass selectors.
pub struct EventView {
    dialect: Dialect,
    namespace: Option<String>,
    /// The kinds whose events are asked for.
    resources: Vec<ResourceName>,
    /// The one object whose events are asked for.
    only: Option<String>,
    fields: FieldSelector,
    /// Events have no labels, so either all pass or none does.
    labels_pass: bool,
    clock: Arc<dyn Clock>,
}

impl EventView {
    /// Checks that every field can be selected by.
    pub fn new(call: &Call, dialect: Dialect) -> Result<Self, Refusal> {
        let fields = call.options.fields.clone();
        let unknown = fields.requirements().iter().find(|wanted| !FIELDS.contains(&wanted.field.as_str()));
        if let Some(unknown) = unknown {
            return Err(Refusal::bad_request(format!(
                "field label not supported: {}; events can be selected by {}",
                unknown.field,
                FIELDS.join(", ")
            )));
        }
        let wanted = |names: [&str; 2]| {
            let mut all = fields.requirements().iter();
            let is_wanted = |field: &str| names.contains(&field);
            let found =
                all.find(|wanted| is_wanted(&wanted.field) && wanted.operator == FieldOperator::Equals);
            found.map(|wanted| wanted.value.clone())
        };
        let namespace =
            call.namespace.clone().or_else(|| wanted(["involvedObject.namespace", "regarding.namespace"]));
        let name = wanted(["involvedObject.name", "regarding.name"]);
        let only = namespace.as_ref().zip(name).map(|(namespace, name)| format!("{namespace}/{name}"));
        let kind = wanted(["involvedObject.kind", "regarding.kind"]);
        let resources = resources(call, kind.as_deref());
        let labels_pass = call.options.labels.matches_with(|_| None);
        Ok(Self { dialect, namespace, resources, only, fields, labels_pass, clock: call.api.clock.clone() })
    }

    fn events(&self, stored: &Stored) -> Vec<Event> {
        let elsewhere = self.namespace.as_deref().is_some_and(|namespace| namespace != stored.namespace());
        let another = self.only.as_deref().is_some_and(|only| only != &*stored.path);
        if elsewhere || another || !self.labels_pass {
            return Vec::new();
        }
        let mut events = events_of(stored, self.clock.now());
        events.retain(|event| self.fields.matches_with(|field| Some(event.field(field).unwrap_or_default())));
        events
    }

    fn json(&self, event: &Event) -> Vec<u8> {
        event.document(self.dialect).to_string().into_bytes()
    }
}

/// Where the objects are kept that have events, of one kind or of all.
pub fn resources(call: &Call, kind: Option<&str>) -> Vec<ResourceName> {
    let kinds = call.api.registry.kinds();
    let infos = kinds.iter().map(|known| known.info()).filter(|info| info.namespaced && info.has_status);
    let wanted = infos.filter(|info| kind.is_none_or(|kind| kind == info.kind));
    let found: Vec<_> = wanted.map(|info| info.resource.clone()).collect();
    // Of a kind that is not there nothing is found, but there must be something to look at.
    if found.is_empty() { vec![call.info().resource.clone()] } else { found }
}

impl Shows for EventView {
    fn resources(&self) -> Vec<ResourceName> {
        self.resources.clone()
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn only(&self) -> Option<&str> {
        self.only.as_deref()
    }

    fn show(&self, stored: &Stored, out: &mut dyn FnMut(&[u8])) {
        for event in self.events(stored) {
            out(&self.json(&event));
        }
    }

    fn show_change(&self, change: &Change, out: &mut dyn FnMut(&'static str, &[u8])) {
        let before = change.previous.as_ref().map(|previous| self.events(previous)).unwrap_or_default();
        let after = if change.deleted { Vec::new() } else { self.events(&change.object) };
        let mut gone: BTreeMap<String, Event> =
            before.into_iter().map(|event| (event.name.clone(), event)).collect();
        for event in after {
            match gone.remove(&event.name) {
                None => out("ADDED", &self.json(&event)),
                Some(known) if known != event => out("MODIFIED", &self.json(&event)),
                Some(_) => {}
            }
        }
        for mut event in gone.into_values() {
            event.revision = change.revision().to_string();
            out("DELETED", &self.json(&event));
        }
    }
}
