//! JobController documents of 2015, read as Schedules: both the shape with `desiredState` and the one with `spec`.
//!
//! Only what a Schedule has is taken over; a field that it does not have is an error that names it, because nothing that was
//! asked for may be left out in silence.

use serde_json::{Map, Value, json};

/// The kind these documents are of.
const KIND: &str = "JobController";
/// Fields of containers that have a place here.
const CONTAINER: [&str; 7] = ["name", "image", "command", "args", "env", "resources", "leading"];

/// True if a document is a JobController.
pub fn is_job_controller(document: &Value) -> bool {
    document["kind"] == KIND
}

/// The Schedule that a JobController asks for.
pub fn to_schedule(document: &Value) -> Result<Value, String> {
    let old = document.get("desiredState");
    let spec = old.or_else(|| document.get("spec")).and_then(Value::as_object);
    let spec = spec.ok_or("a JobController has its settings in desiredState or in spec")?;
    let mut schedule = Map::new();
    for (field, value) in spec {
        match field.as_str() {
            "schedulePolicy" | "selector" => drop(schedule.insert(field.clone(), value.clone())),
            "templateRef" => drop(schedule.insert(field.clone(), json!({"name": value["name"]}))),
            "podTemplate" | "template" => drop(schedule.insert("template".to_owned(), template(value)?)),
            other => return Err(format!("a JobController has no field {other} that a Schedule knows")),
        }
    }
    let mut metadata = document.get("metadata").cloned().unwrap_or_else(|| json!({}));
    if let (None, Some(id)) = (metadata.get("name"), document.get("id")) {
        metadata["name"] = id.clone();
    }
    if let (None, Some(labels)) = (metadata.get("labels"), document.get("labels")) {
        metadata["labels"] = labels.clone();
    }
    Ok(
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Schedule", "metadata": metadata, "spec": schedule}),
    )
}

/// A pod template, as the task that is made of it.
fn template(pod: &Value) -> Result<Value, String> {
    let labels = pod.get("labels").or_else(|| pod["metadata"].get("labels")).cloned();
    let manifest = pod["desiredState"].get("manifest").or_else(|| pod.get("spec"));
    let containers = manifest.and_then(|manifest| manifest["containers"].as_array());
    let containers = containers.ok_or("the pod template has no containers")?;
    let containers = containers.iter().map(container).collect::<Result<Vec<_>, _>>()?;
    let metadata = labels.map_or_else(|| json!({}), |labels| json!({"labels": labels}));
    Ok(json!({"metadata": metadata, "spec": {"containers": containers}}))
}

fn container(found: &Value) -> Result<Value, String> {
    let fields = found.as_object().ok_or("a container is an object")?;
    let mut container = Map::new();
    for (field, value) in fields {
        if !CONTAINER.contains(&field.as_str()) {
            return Err(format!("a container has no field {field} that a Task knows"));
        }
        let value = if field == "resources" { value.get("limits").unwrap_or(value) } else { value };
        container.insert(field.clone(), value.clone());
    }
    Ok(Value::Object(container))
}

#[cfg(test)]
mod tests {
    use muster_types::Schedule;

    use super::*;

    fn read(document: &Value) -> Schedule {
        serde_json::from_value(to_schedule(document).unwrap()).unwrap()
    }

    #[test]
    fn the_shape_of_the_proposals_example_is_read() {
        let schedule = read(&json!({
            "apiVersion": "v1beta3", "kind": "JobController", "id": "myjob-controller",
            "desiredState": {
                "schedulePolicy": {"timeSpec": "R5/T01:00:00/PT01", "execTimeout": 100, "maxRestart": 2},
                "selector": {"name": "myjob"},
                "podTemplate": {
                    "desiredState": {"manifest": {"version": "v1beta1", "id": "myapp-job",
                        "containers": [{"name": "job-container", "image": "app/job"}]}},
                    "labels": {"name": "myjob"},
                },
            },
        }));
        assert_eq!(schedule.metadata.name, "myjob-controller");
        assert_eq!(schedule.spec.schedule_policy.max_restart, Some(2));
        let template = schedule.spec.template.unwrap();
        assert_eq!(
            (template.spec.containers[0].image.as_str(), template.metadata.labels["name"].as_str()),
            ("app/job", "myjob")
        );
    }

    #[test]
    fn the_shape_of_the_proposals_types_is_read() {
        let schedule = read(&json!({
            "kind": "JobController", "metadata": {"name": "a", "namespace": "n"},
            "spec": {
                "schedulePolicy": {"timeSpec": "R/PT1H", "allowConcurrent": true, "skipOutdated": false},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i", "leading": true}, {"name": "d", "image": "j"}]},
                },
            },
        }));
        assert_eq!(
            (schedule.metadata.namespace.as_str(), schedule.spec.schedule_policy.skip_outdated),
            ("n", Some(false))
        );
        assert!(schedule.spec.template.unwrap().spec.containers[0].leading);
        let by_name = read(&json!({
            "kind": "JobController", "metadata": {"name": "a"},
            "spec": {"schedulePolicy": {"timeSpec": "R/PT1H"}, "templateRef": {"kind": "PodTemplate", "name": "t"}},
        }));
        assert_eq!(by_name.spec.template_ref.unwrap().name, "t");
    }

    #[test]
    fn what_has_no_place_in_a_schedule_is_named() {
        let with = |spec: Value| to_schedule(&json!({"kind": "JobController", "spec": spec})).unwrap_err();
        assert!(with(json!({"replicas": 2})).contains("replicas"));
        assert!(
            with(json!({"template": {"spec": {"containers": [{"name": "a", "ports": []}]}}}))
                .contains("ports")
        );
        assert!(with(json!({"template": {}})).contains("containers"));
        assert!(to_schedule(&json!({"kind": "JobController"})).unwrap_err().contains("desiredState"));
    }
}
