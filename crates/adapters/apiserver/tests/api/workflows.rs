//! What is taken in of groups and jobs and what is not, what may still change, and how they are shown.

use serde_json::{Value, json};

use crate::server::{MERGE_PATCH, Server, path};

/// An object of a kind, in the namespace it is posted to.
pub fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn job(groups: &Value) -> Value {
    object("Job", "j", &json!({"taskGroups": groups}))
}

fn one() -> Value {
    json!([{"name": "t", "spec": {"container": {"command": ["true"]}}}])
}

/// What a refusal blames, and why.
async fn blamed(server: &Server, plural: &str, object: &Value) -> Vec<(String, String)> {
    let answer = server.post(&path(plural), object).await;
    assert_eq!(answer.code, 422, "{}", answer.json());
    let causes = answer.json()["details"]["causes"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes.iter().map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
}

#[tokio::test]
async fn a_group_that_cannot_be_is_refused_with_the_field() {
    let server = Server::start().await;
    for (spec, field, why) in [
        (json!({}), "spec.tasks", "at least one task"),
        (json!({"count": 0, "tasks": one()}), "spec.count", "at least 1"),
        (json!({"parallelism": 0, "tasks": one()}), "spec.parallelism", "at least 1"),
        (json!({"count": 100_001, "tasks": one()}), "spec.count", "more than the 100000"),
        (json!({"mode": "batch", "count": 2, "tasks": one()}), "spec.count", "each task once"),
        (
            json!({"mode": "pipeline", "parallelism": 2, "tasks": one()}),
            "spec.parallelism",
            "one after the other",
        ),
        (json!({"tasks": [one()[0], one()[0]]}), "spec.tasks[1].name", "given twice"),
        (json!({"tasks": [{"name": "A", "spec": {"kind": "k"}}]}), "spec.tasks[0].name", "lower case"),
        (json!({"tasks": [{"spec": {}}]}), "spec.tasks[0].spec.kind", "is needed"),
        (
            json!({"tasks": [{"spec": {"kind": "k", "suspend": true}}]}),
            "spec.tasks[0].spec.suspend",
            "on the group",
        ),
        (json!({"priority": -1, "tasks": one()}), "spec.priority", "at least 0"),
    ] {
        let blamed = blamed(&server, "taskgroups", &object("TaskGroup", "g", &spec)).await;
        assert_eq!(blamed.len(), 1, "{blamed:?}");
        assert_eq!(blamed[0].0, field);
        assert!(blamed[0].1.contains(why), "{blamed:?}");
    }
    let by_default = json!({"kind": "k", "tasks": [{}]});
    server.create(&object("TaskGroup", "g", &by_default)).await;
}

#[tokio::test]
async fn a_job_that_cannot_be_is_refused_with_the_field() {
    let server = Server::start().await;
    let group = |name: &str, needs: &[&str]| json!({"name": name, "dependsOn": needs, "tasks": one()});
    for (groups, field, why) in [
        (json!([]), "spec.taskGroups", "at least one group"),
        (json!([group("a", &[]), group("a", &[])]), "spec.taskGroups[1].name", "given twice"),
        (json!([group("a", &["b"])]), "spec.taskGroups[0].dependsOn[0]", "no group of this job"),
        (json!([group("a", &["b"]), group("b", &["a"])]), "spec.taskGroups", "in a circle: a -> b -> a"),
        (json!([{"name": "a", "when": "failed", "tasks": one()}]), "spec.taskGroups[0].when", "dependsOn"),
        (json!([{"name": "a"}]), "spec.taskGroups[0].tasks", "at least one task"),
        (json!([{"name": "a".repeat(63), "tasks": one()}]), "spec.taskGroups[0].name", "63"),
    ] {
        let blamed = blamed(&server, "jobs", &job(&groups)).await;
        assert_eq!(blamed.len(), 1, "{blamed:?}");
        assert_eq!(blamed[0].0, field);
        assert!(blamed[0].1.contains(why), "{blamed:?}");
    }
}

#[tokio::test]
async fn only_how_it_goes_on_can_change() {
    let server = Server::start().await;
    server.create(&job(&json!([{"name": "a", "tasks": one()}]))).await;
    server.create(&object("TaskGroup", "g", &json!({"count": 3, "tasks": one()}))).await;
    let change = async |plural: &str, name: &str, change: Value| {
        let place = format!("{}/{name}", path(plural));
        server.patch(&place, MERGE_PATCH, &json!({"spec": change})).await.code
    };
    assert_eq!(change("taskgroups", "g", json!({"count": 4})).await, 422);
    assert_eq!(change("taskgroups", "g", json!({"suspend": true, "parallelism": 2})).await, 200);
    assert_eq!(change("taskgroups", "g", json!({"cancel": true})).await, 200);
    assert_eq!(change("taskgroups", "g", json!({"cancel": false})).await, 422);
    assert_eq!(change("jobs", "j", json!({"priority": 4})).await, 422);
    assert_eq!(change("jobs", "j", json!({"suspend": true, "deadline": "1h", "ttl": "1m"})).await, 200);
}

#[tokio::test]
async fn progress_is_a_column() {
    let server = Server::start().await;
    server.create(&object("TaskGroup", "g", &json!({"count": 50, "tasks": one()}))).await;
    let counts = json!({"state": "Running", "counts": {"succeeded": 36, "failed": 1, "running": 2}});
    server.set_status_of("taskgroups", "g", &counts).await;
    let ask = crate::server::Ask::new("GET", &path("taskgroups"));
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = server.send(ask.header(hyper::header::ACCEPT, accept)).await.good();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(
        cells[..6],
        [json!("g"), json!("Running"), json!("replicas"), json!("37/50"), json!(2), json!(1)]
    );
}

#[tokio::test]
async fn a_member_that_has_ended_is_deleted_by_its_group_while_that_goes_on() {
    let server = Server::start().await;
    let group =
        server.post(&path("taskgroups"), &object("TaskGroup", "g", &json!({"tasks": one()}))).await.good();
    for (name, state) in [("ended", "Succeeded"), ("late", "Failed"), ("runs", "Running")] {
        let mut member = object("Task", name, &one()[0]["spec"]);
        member["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "muster.dev/v1alpha1", "kind": "TaskGroup", "name": "g",
            "uid": group["metadata"]["uid"], "controller": true,
        }]);
        server.create(&member).await;
        server.set_status(name, &json!({ "state": state })).await;
    }
    let of = |name: &str| format!("{}/{name}", path("tasks"));
    let held = json!(["muster.dev/counted-by-group"]);
    assert_eq!(server.delete(&of("ended")).await.good()["metadata"]["finalizers"], held);
    assert_eq!(server.get(&of("ended")).await.good()["metadata"]["finalizers"], held);
    server.set_status_of("taskgroups", "g", &json!({"state": "Failed"})).await;
    server.delete(&of("late")).await.good();
    server.get(&of("late")).await.refused(404);
}
