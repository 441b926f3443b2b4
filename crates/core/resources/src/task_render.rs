//! The Task an adapter makes for a resource: its template with values filled in, and the marks by which it is found.

use muster_types::managed_resource::{ADAPTER_LABEL, GENERATION_LABEL, RESOURCE_LABEL, TYPE_LABEL};
use muster_types::task::{Subject, Ttl};
use muster_types::task_template::EmbeddedTask;
use muster_types::{Duration, ManagedResource, Metadata, Task, name_rules};
use serde_json::{Value as Json, json};

/// Who makes tasks of adapters.
const MAKER: &str = "system:muster:adapters";
/// Longest name.
const MAX_NAME: usize = 253;
/// Where tasks for resources without a namespace are made.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The name of the task an adapter makes as its `number`th for a resource.
pub fn task_name(resource: &str, adapter: &str, number: u64) -> String {
    let suffix = format!("-{adapter}-{number}");
    let room = MAX_NAME.saturating_sub(suffix.len());
    let name: String = resource.chars().take(room).collect();
    format!("{}{suffix}", name.trim_end_matches(['-', '.']))
}

/// The namespace of the tasks and adapters of a resource.
pub fn work_namespace(resource: &ManagedResource) -> &str {
    let namespace = resource.metadata.namespace.as_str();
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
}

/// The task, without what only a server gives it. `rendered` is the template with its values, `params` go with it.
pub fn render_task(
    resource: &ManagedResource,
    adapter: &str,
    resource_type: &str,
    number: u64,
    rendered: Json,
    params: &Json,
) -> Result<Task, String> {
    let template: EmbeddedTask =
        serde_json::from_value(rendered).map_err(|error| format!("the task cannot be made: {error}"))?;
    let mut task = Task::default();
    task.metadata = Metadata {
        name: task_name(&resource.metadata.name, adapter, number),
        namespace: work_namespace(resource).to_owned(),
        generation: 1,
        labels: template.metadata.labels,
        annotations: template.metadata.annotations,
        owner_references: vec![resource.owner_reference()],
        ..Metadata::default()
    };
    let generation = resource.metadata.generation.to_string();
    for (label, value) in [
        (ADAPTER_LABEL, adapter),
        (RESOURCE_LABEL, &resource.metadata.name),
        (TYPE_LABEL, resource_type),
        (GENERATION_LABEL, &generation),
    ] {
        if name_rules::label_value(value).is_ok() {
            task.metadata.labels.insert(label.to_owned(), value.to_owned());
        }
    }
    task.spec = template.spec;
    let spec = &mut task.spec;
    // The newest task of an adapter is what its next decision looks at, so no rule of the server may delete it; the older
    // ones are deleted with the next.
    let none = Some(Duration::ZERO);
    let Ttl { succeeded, failed, canceled, .. } = &mut spec.ttl;
    for limit in [succeeded, failed, canceled] {
        *limit = limit.or(none);
    }
    // Without a kind or an addon, all adapters of a resource would wait for each other.
    if spec.subject.is_none() && !(spec.kind.is_empty() && spec.addon.is_empty()) {
        spec.subject = Some(Subject { kind: resource.kind.clone(), name: resource.metadata.name.clone() });
    }
    spec.data.get_or_insert_with(|| {
        json!({
            "adapter": adapter,
            "generation": resource.metadata.generation,
            "deleting": resource.is_deleting(),
            "params": params,
            "resource": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {
                    "name": resource.metadata.name,
                    "namespace": resource.metadata.namespace,
                    "uid": resource.metadata.uid,
                    "generation": resource.metadata.generation,
                    "labels": resource.metadata.labels,
                },
                "spec": resource.spec,
            },
        })
    });
    MAKER.clone_into(&mut task.status.create_user);
    task.record_initial_state();
    Ok(task)
}
