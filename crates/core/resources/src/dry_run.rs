//! What an adapter would do on a resource now, step by step, without doing it.

use muster_expr::cel::Budget;
use muster_types::{ManagedResource, Task};
use serde_json::{Map, Value as Json};

use crate::adapter_rules::{ActionRules, AdapterRules};
use crate::inputs::Inputs;
use crate::task_render::render_task;

/// Every step, in order. What comes after a step that failed is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
    /// Each param with its value, or why it has none.
    pub params: Vec<(String, Result<Json, String>)>,
    /// Each precondition, whether it holds, and what is said if it does not.
    pub preconditions: Vec<Precondition>,
    /// What would be made; nothing if a step before failed or does not hold.
    pub made: Option<Result<Made, String>>,
}

/// One precondition.
#[derive(Debug, Clone, PartialEq)]
pub struct Precondition {
    /// Its expression.
    pub expression: String,
    /// Whether it holds, or why that cannot be told.
    pub holds: Result<bool, String>,
    /// What is reported if it does not.
    pub message: String,
}

/// What would be made.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    /// A task.
    Task(Box<Task>),
    /// A manifest would be applied.
    Apply(Json),
    /// A manifest would be deleted.
    Delete(Json),
    /// A URL would be called.
    Call(Json),
    /// There is nothing to clean up.
    Nothing,
}

/// Plays one pulse. `env` are the variables that the server offers to adapters.
pub fn dry_run(rules: &AdapterRules, resource: &ManagedResource, env: &Json) -> DryRun {
    let budget = Budget::of_object();
    let inputs = Inputs::new(resource, env, &budget);
    let mut played = DryRun { params: Vec::new(), preconditions: Vec::new(), made: None };
    let mut params = Json::Object(Map::new());
    for (name, program) in &rules.params {
        let value = program.evaluate_to_json(&inputs.scope(&params));
        let value = value.map_err(|error| error.to_string());
        played.params.push((name.clone(), value.clone()));
        let Ok(value) = value else { return played };
        params[name] = value;
    }
    let deleting = resource.is_deleting();
    if !deleting {
        for (program, message) in &rules.preconditions {
            let holds = program.holds(&inputs.scope(&params)).map_err(|error| error.to_string());
            let goes_on = holds == Ok(true);
            let (expression, message) = (program.text().to_owned(), message.clone());
            played.preconditions.push(Precondition { expression, holds, message });
            if !goes_on {
                return played;
            }
        }
    }
    let action = if deleting { rules.delete.as_ref() } else { Some(&rules.action) };
    played.made =
        Some(action.map_or(Ok(Made::Nothing), |action| render(rules, action, resource, &inputs, &params)));
    played
}

fn render(
    rules: &AdapterRules,
    action: &ActionRules,
    resource: &ManagedResource,
    inputs: &Inputs<'_>,
    params: &Json,
) -> Result<Made, String> {
    let scope = inputs.scope(params);
    let rendered = match action {
        ActionRules::Task(template)
        | ActionRules::Manifest(template)
        | ActionRules::DeleteManifest(template) => template.render(&scope),
        ActionRules::Http(http) => http.request.render(&scope),
    };
    let rendered = rendered.map_err(|error| format!("{}: {}", error.path, error.message))?;
    Ok(match action {
        ActionRules::Task(_) => {
            let work = resource.status.standing(&rules.name).and_then(|standing| standing.work.as_ref());
            let number = work.map_or(0, |work| work.number) + 1;
            let resource_type = &rules.spec.resource_type;
            Made::Task(Box::new(render_task(resource, &rules.name, resource_type, number, rendered, params)?))
        }
        ActionRules::Manifest(_) => Made::Apply(rendered),
        ActionRules::DeleteManifest(_) => Made::Delete(rendered),
        ActionRules::Http(_) => Made::Call(rendered),
    })
}

#[cfg(test)]
mod tests {
    use muster_types::adapter::AdapterSpec;
    use serde_json::json;

    use super::*;

    fn play(spec: Json) -> DryRun {
        let spec: AdapterSpec = serde_json::from_value(spec).expect("an adapter");
        let rules = AdapterRules::compile("dns", &spec).expect("a good adapter");
        let resource = ManagedResource::new("Cluster", "n", "x", json!({"size": 2}));
        dry_run(&rules, &resource, &json!({"REGION": "north"}))
    }

    #[test]
    fn every_step_is_shown_with_what_would_be_made() {
        let played = play(json!({
            "resourceType": "clusters",
            "params": [{"name": "a", "value": "env.REGION"}, {"name": "b", "value": "params.a + '!'"}],
            "preconditions": [{"expression": "resource.spec.size == 2"}],
            "task": {"spec": {"container": {"command": ["echo", "{{ params.b }}"]}}},
        }));
        assert_eq!(played.params[1], ("b".to_owned(), Ok(json!("north!"))));
        assert_eq!(played.preconditions[0].holds, Ok(true));
        let Some(Ok(Made::Task(task))) = played.made else { panic!("no task: {:?}", played.made) };
        assert_eq!(task.metadata.name, "x-dns-1");
        assert_eq!(task.spec.container.unwrap().command, ["echo", "north!"]);
    }

    #[test]
    fn what_does_not_hold_ends_it() {
        let task = json!({"spec": {"container": {"command": ["true"]}}});
        let played = play(json!({
            "resourceType": "clusters",
            "preconditions": [{"expression": "resource.spec.size > 2", "message": "too small"}, {"expression": "true"}],
            "task": task,
        }));
        assert_eq!(played.preconditions.len(), 1);
        assert_eq!((&played.preconditions[0].holds, &played.made), (&Ok(false), &None));
        let played = play(json!({
            "resourceType": "clusters", "params": [{"name": "a", "value": "resource.spec.no"}], "task": task,
        }));
        assert!(played.params[0].1.as_ref().is_err_and(|why| why.contains("no field")), "{played:?}");
    }

    #[test]
    fn manifests_and_calls_are_shown_as_they_would_be_sent() {
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ resource.metadata.name }}"}});
        let played = play(json!({"resourceType": "clusters", "manifest": {"template": manifest}}));
        let Some(Ok(Made::Apply(applied))) = played.made else { panic!("{:?}", played.made) };
        assert_eq!(applied["metadata"]["name"], "x");
        let played =
            play(json!({"resourceType": "clusters", "http": {"url": "http://h/{{ resource.spec.size }}"}}));
        assert_eq!(played.made, Some(Ok(Made::Call(json!({"url": "http://h/2"})))));
    }
}
