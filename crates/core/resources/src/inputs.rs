//! What the expressions of an adapter see, and what they say before it acts: its params, and whether it may act at all.

use muster_expr::cel::{Budget, Scope};
use muster_types::condition::ConditionStatus;
use muster_types::{JsonText, ManagedResource};
use serde_json::{Map, Value as Json, json};

use crate::adapter_rules::AdapterRules;
use crate::root_conditions::reports;

/// The documents that expressions look at.
#[derive(Debug, Clone)]
pub struct Inputs<'b> {
    resource: Json,
    event: Json,
    env: Json,
    done: Json,
    budget: &'b Budget,
}

/// What an adapter finds before it acts.
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluated {
    /// It cannot tell; something is wrong with the adapter itself.
    Unable(String),
    /// It may not act yet.
    Unmet(String),
    /// It may act, with these params.
    Ready(Json),
}

impl<'b> Inputs<'b> {
    /// The documents of a resource. `env` are the variables that the server offers to adapters; `budget` is what expressions
    /// over them may cost.
    pub fn new(resource: &ManagedResource, env: &Json, budget: &'b Budget) -> Self {
        let metadata = &resource.metadata;
        let about = json!({
            "kind": resource.kind,
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
        });
        let mut event = serde_json::to_value(&resource.status.pulse).unwrap_or_default();
        if let Some(event) = event.as_object_mut() {
            event.insert("resource".to_owned(), about);
        }
        let is_done = |standing: &&muster_types::AdapterStanding| {
            standing.observed_generation == metadata.generation && reports(standing, ConditionStatus::True)
        };
        let done = resource.status.adapters.iter().filter(is_done).map(|standing| json!(standing.adapter));
        Self {
            resource: resource.to_document().unwrap_or_default(),
            event,
            env: env.clone(),
            done: done.collect(),
            budget,
        }
    }

    /// The names and values that expressions know.
    pub fn scope<'a>(&'a self, params: &'a Json) -> Scope<'a> {
        Scope::default()
            .within(self.budget)
            .with_json("resource", &self.resource)
            .with_json("event", &self.event)
            .with_json("env", &self.env)
            .with_json("done", &self.done)
            .with_json("params", params)
    }

    /// The resource as a document.
    pub fn resource(&self) -> &Json {
        &self.resource
    }
}

/// Reads the params; an error names the one that has no value.
pub fn read_params(rules: &AdapterRules, inputs: &Inputs<'_>) -> Result<Json, String> {
    let mut params = Map::new();
    for (name, program) in &rules.params {
        let earlier = Json::Object(params);
        let value = program.evaluate_to_json(&inputs.scope(&earlier));
        let value = value.map_err(|error| format!("param {name} has no value: {error}"))?;
        params = if let Json::Object(earlier) = earlier { earlier } else { Map::new() };
        params.insert(name.clone(), value);
    }
    Ok(Json::Object(params))
}

/// Reads the params and, unless it cleans up after a deletion, checks the preconditions.
pub fn evaluate(rules: &AdapterRules, inputs: &Inputs<'_>, deleting: bool) -> Evaluated {
    let params = match read_params(rules, inputs) {
        Ok(params) => params,
        Err(message) => return Evaluated::Unable(message),
    };
    if !deleting {
        for (program, message) in &rules.preconditions {
            match program.holds(&inputs.scope(&params)) {
                Ok(true) => {}
                Ok(false) => return Evaluated::Unmet(message.clone()),
                Err(error) => {
                    let message = format!("precondition {:?} has no value: {error}", program.text());
                    return Evaluated::Unable(message);
                }
            }
        }
    }
    Evaluated::Ready(params)
}
