//! JobController documents of 2015, read as Schedules: both the shape with `desiredState` and the one with `spec`.
//!
//! Only what a Schedule has is taken over; a field that it does not have is an error that names it with its path, because
//! nothing that was asked for may be left out in silence. What the server itself sets is no request and is left out.

use muster_runtime_kube::POD_FIELDS;
use serde_json::{Map, Value, json};

/// The kind these documents are of.
const KIND: &str = "JobController";
/// Fields of containers that have a place here.
const CONTAINER: [&str; 7] = ["name", "image", "command", "args", "env", "resources", "leading"];
/// What a server sets, in any shape of an object.
const SET_BY_SERVER: [&str; 7] =
    ["uid", "resourceVersion", "creationTimestamp", "selfLink", "generation", "status", "currentState"];

/// True if a document is a JobController.
pub fn is_job_controller(document: &Value) -> bool {
    document["kind"] == KIND
}

/// The Schedule that a JobController asks for.
pub fn to_schedule(document: &Value) -> Result<Value, String> {
    let Value::Object(fields) = document else { return Err("a JobController is an object".to_owned()) };
    let mut metadata = document.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let (mut at, mut settings) = ("", None);
    for (field, value) in fields {
        match field.as_str() {
            "apiVersion" | "kind" | "metadata" => {}
            "desiredState" | "spec" if settings.is_some() => {
                return Err(
                    "a JobController has either desiredState or spec, and this one has both".to_owned()
                );
            }
            "desiredState" | "spec" => (at, settings) = (field, value.as_object()),
            "id" => set_once(&mut metadata, "name", value),
            "labels" | "namespace" | "annotations" => set_once(&mut metadata, field, value),
            other if SET_BY_SERVER.contains(&other) => {}
            other => return Err(no_equivalent(other, "a Schedule")),
        }
    }
    let settings = settings.ok_or("a JobController has its settings in desiredState or in spec")?;
    let mut schedule = Map::new();
    for (field, value) in settings {
        let path = format!("{at}.{field}");
        match field.as_str() {
            "schedulePolicy" | "selector" => drop(schedule.insert(field.clone(), value.clone())),
            "templateRef" => drop(schedule.insert(field.clone(), template_ref(&path, value)?)),
            "podTemplate" | "template" => {
                drop(schedule.insert("template".to_owned(), template(&path, value)?));
            }
            _ => return Err(no_equivalent(&path, "a Schedule")),
        }
    }
    Ok(
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Schedule", "metadata": metadata, "spec": schedule}),
    )
}

fn no_equivalent(path: &str, of: &str) -> String {
    format!("{path}: {of} has no equivalent; remove the field, or write the manifest as a Schedule")
}

/// Takes over a field of an older shape, unless the newer one is there as well.
fn set_once(metadata: &mut Value, field: &str, value: &Value) {
    if metadata.get(field).is_none() {
        metadata[field] = value.clone();
    }
}

/// Nothing was asked for.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn template_ref(at: &str, reference: &Value) -> Result<Value, String> {
    let fields = reference.as_object().ok_or_else(|| format!("{at}: must be an object"))?;
    for field in fields.keys() {
        if !["apiVersion", "kind", "name"].contains(&field.as_str()) {
            return Err(no_equivalent(&format!("{at}.{field}"), "a Schedule"));
        }
    }
    Ok(json!({"name": reference["name"]}))
}

/// A pod template, as the task that is made of it.
fn template(at: &str, pod: &Value) -> Result<Value, String> {
    let fields = pod.as_object().ok_or_else(|| format!("{at}: must be an object"))?;
    let (mut metadata, mut task, mut has_containers) = (json!({}), Map::new(), false);
    for (field, value) in fields {
        let path = format!("{at}.{field}");
        match field.as_str() {
            "labels" | "annotations" => set_once(&mut metadata, field, value),
            "metadata" => pod_metadata(&path, value, &mut metadata)?,
            "spec" => has_containers |= pod_spec(&path, value, &mut task)?,
            "desiredState" => {
                for (field, value) in value.as_object().into_iter().flatten() {
                    let path = format!("{path}.{field}");
                    if field == "manifest" {
                        has_containers |= pod_spec(&path, value, &mut task)?;
                    } else if !is_empty(value) {
                        return Err(no_equivalent(&path, "a Task"));
                    }
                }
            }
            // In the oldest shape it stands beside the manifest.
            "nodeSelector" => pod_field(field, value, &mut task),
            "apiVersion" | "kind" | "id" => {}
            _ if is_empty(value) => {}
            _ => return Err(no_equivalent(&path, "a Task")),
        }
    }
    if !has_containers {
        return Err(format!("{at}: the pod template has no containers"));
    }
    Ok(json!({"metadata": metadata, "spec": task}))
}

fn pod_metadata(at: &str, value: &Value, metadata: &mut Value) -> Result<(), String> {
    for (field, value) in value.as_object().into_iter().flatten() {
        match field.as_str() {
            "labels" | "annotations" => metadata[field] = value.clone(),
            // A pod of a controller is named by its controller.
            "name" | "namespace" | "generateName" => {}
            other if SET_BY_SERVER.contains(&other) => {}
            other => return Err(no_equivalent(&format!("{at}.{other}"), "a Task")),
        }
    }
    Ok(())
}

/// What a pod is asked for, as fields of a task. True if it has containers.
fn pod_spec(at: &str, spec: &Value, task: &mut Map<String, Value>) -> Result<bool, String> {
    let mut has_containers = false;
    for (field, value) in spec.as_object().into_iter().flatten() {
        let path = format!("{at}.{field}");
        match field.as_str() {
            "containers" => {
                let found = value.as_array().ok_or_else(|| format!("{path}: must be a list"))?;
                let found =
                    found.iter().enumerate().map(|(place, it)| container(&format!("{path}[{place}]"), it));
                task.insert("containers".to_owned(), Value::Array(found.collect::<Result<_, _>>()?));
                has_containers = true;
            }
            "version" | "id" | "uuid" => {}
            "restartPolicy" => check_restart_policy(&path, value)?,
            "activeDeadlineSeconds" => drop(task.insert("timeout".to_owned(), value.clone())),
            "terminationGracePeriodSeconds" => drop(task.insert("killTimeout".to_owned(), value.clone())),
            "serviceAccount" => pod_field("serviceAccountName", value, task),
            known if POD_FIELDS.contains(&known) => pod_field(known, value, task),
            _ if is_empty(value) => {}
            _ => return Err(no_equivalent(&path, "a Task")),
        }
    }
    Ok(has_containers)
}

/// A field of a pod that a task can have in `spec.pod`.
fn pod_field(field: &str, value: &Value, task: &mut Map<String, Value>) {
    let pod = task.entry("pod").or_insert_with(|| json!({}));
    set_once(pod, field, value);
}

/// How often a run is restarted is said by `maxRestart`; a pod that never ends is no run of a schedule.
fn check_restart_policy(at: &str, value: &Value) -> Result<(), String> {
    let old = value.as_object().and_then(|policy| policy.keys().next());
    let word = value.as_str().or(old.map(String::as_str)).unwrap_or_default();
    if word.eq_ignore_ascii_case("always") {
        return Err(format!(
            "{at}: a run of a Schedule ends, so it cannot be Always; say how often it is restarted in \
             schedulePolicy.maxRestart"
        ));
    }
    Ok(())
}

fn container(at: &str, found: &Value) -> Result<Value, String> {
    let fields = found.as_object().ok_or_else(|| format!("{at}: must be an object"))?;
    let mut container = Map::new();
    for (field, value) in fields {
        let path = format!("{at}.{field}");
        match field.as_str() {
            "resources" => drop(container.insert(field.clone(), resources(&path, value)?)),
            known if CONTAINER.contains(&known) => drop(container.insert(field.clone(), value.clone())),
            _ if is_empty(value) => {}
            _ => return Err(no_equivalent(&path, "a Task")),
        }
    }
    Ok(Value::Object(container))
}

/// Limits are what a container of a task is given; it has no lower amount beside them.
fn resources(at: &str, value: &Value) -> Result<Value, String> {
    let limits = value.get("limits");
    match value.get("requests").filter(|requests| !is_empty(requests)) {
        Some(requests) if limits != Some(requests) => Err(no_equivalent(&format!("{at}.requests"), "a Task")),
        Some(_) | None => Ok(limits.unwrap_or(value).clone()),
    }
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

    /// A JobController whose pods have more than a container.
    fn with_pod(more: &Value) -> Value {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"kind": "JobController", "metadata": {"name": "a"}, "spec": {
            "schedulePolicy": {"timeSpec": "R/PT1H"}, "template": {"spec": spec},
        }})
    }

    #[test]
    fn what_pods_of_a_task_can_have_is_taken_over() {
        let more = json!({
            "nodeSelector": {"disk": "ssd"}, "serviceAccountName": "runner", "tolerations": [{"key": "x"}],
            "activeDeadlineSeconds": 60, "terminationGracePeriodSeconds": 5, "restartPolicy": "OnFailure",
            "hostNetwork": false, "volumes": [], "initContainers": [],
        });
        let task = read(&with_pod(&more)).spec.template.unwrap().spec;
        assert_eq!(
            task.pod,
            Some(
                json!({"nodeSelector": {"disk": "ssd"}, "serviceAccountName": "runner", "tolerations": [{"key": "x"}]})
            )
        );
        assert_eq!(task.timeout, Some(muster_types::Duration::from_secs(60)));
        assert_eq!(task.kill_timeout, Some(muster_types::Duration::from_secs(5)));
        let old = read(&json!({"kind": "JobController", "id": "a", "desiredState": {
            "schedulePolicy": {"timeSpec": "R/PT1H"},
            "podTemplate": {
                "nodeSelector": {"disk": "ssd"},
                "desiredState": {"manifest": {"containers": [{"name": "c", "image": "i"}], "serviceAccount": "runner"}},
            },
        }}));
        let pod = old.spec.template.unwrap().spec.pod;
        assert_eq!(pod, Some(json!({"nodeSelector": {"disk": "ssd"}, "serviceAccountName": "runner"})));
    }

    #[test]
    fn what_pods_of_a_task_cannot_have_is_refused_with_its_path() {
        for (field, value) in [
            ("initContainers", json!([{"name": "b", "image": "j"}])),
            ("hostNetwork", json!(true)),
            ("volumes", json!([{"name": "v", "emptyDir": {}}])),
            ("restartPolicy", json!("Always")),
        ] {
            let said = to_schedule(&with_pod(&json!({field: value}))).unwrap_err();
            assert!(said.starts_with(&format!("spec.template.spec.{field}: ")), "{said}");
        }
        let old = json!({"kind": "JobController", "id": "a", "desiredState": {"podTemplate": {"desiredState": {
            "manifest": {"containers": [], "volumes": [{"name": "v", "source": {"emptyDir": {}}}]},
        }}}});
        let said = to_schedule(&old).unwrap_err();
        assert!(said.starts_with("desiredState.podTemplate.desiredState.manifest.volumes: "), "{said}");
    }

    #[test]
    fn what_has_no_place_in_a_schedule_is_named() {
        let with = |spec: Value| to_schedule(&json!({"kind": "JobController", "spec": spec})).unwrap_err();
        assert!(with(json!({"replicas": 2})).starts_with("spec.replicas: "));
        let contained = |container: Value| with(json!({"template": {"spec": {"containers": [container]}}}));
        let ports = contained(json!({"name": "a", "ports": [{"containerPort": 80}]}));
        assert!(ports.starts_with("spec.template.spec.containers[0].ports: "), "{ports}");
        let asked = contained(json!({"resources": {"limits": {"cpu": 2}, "requests": {"cpu": 1}}}));
        assert!(asked.starts_with("spec.template.spec.containers[0].resources.requests: "), "{asked}");
        assert!(with(json!({"template": {}})).contains("containers"));
        assert!(
            with(json!({"templateRef": {"name": "t", "namespace": "n"}}))
                .starts_with("spec.templateRef.namespace")
        );
        assert!(to_schedule(&json!({"kind": "JobController"})).unwrap_err().contains("desiredState"));
        assert!(
            to_schedule(&json!({"kind": "JobController", "replicas": 1}))
                .unwrap_err()
                .starts_with("replicas: ")
        );
    }
}
