//! What is taken in of robots and of what tasks ask of them, and what is not.

use serde_json::{Value, json};

use crate::server::{Ask, Server, path};

fn object(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": spec})
}

#[tokio::test]
async fn what_cannot_be_asked_of_robots_is_refused_with_the_field() {
    let server = Server::start().await;
    let task = |more: Value| {
        let mut spec = json!({"container": {"command": ["true"]}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object("Task", &spec)
    };
    let group = |more: Value| {
        let mut spec = json!({"tasks": [{"spec": {"container": {"command": ["true"]}}}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object("TaskGroup", &spec)
    };
    let constraint = |attribute: &str, operator: &str, value: &str| json!({"constraints": [{"attribute": attribute, "operator": operator, "value": value}]});
    for (plural, document, field, why) in [
        ("robots", object("Robot", &json!({"robotId": "b"})), "spec.robotId", "must be the name"),
        ("robots", object("Robot", &json!({"maxTasks": 2000})), "spec.maxTasks", "no more than 1000"),
        ("tasks", task(constraint("zone", "=", "a")), "spec.constraints[0]", "label.NAME"),
        ("tasks", task(constraint("label.zone", "regexp", "(")), "spec.constraints[0]", "regular expression"),
        (
            "tasks",
            task(constraint("device.kernel", "version", "new")),
            "spec.constraints[0]",
            "not a version",
        ),
        ("tasks", task(json!({"restart": {"attempts": 10}})), "spec.restart.attempts", "no more than 9"),
        ("tasks", task(json!({"runtime": "pod", "targetRobot": "r1"})), "spec.runtime", "must be robot"),
        (
            "taskgroups",
            group(json!({"reschedule": {"attempts": 10}})),
            "spec.reschedule.attempts",
            "no more than 9",
        ),
        (
            "taskgroups",
            group(constraint("device.colour", "=", "red")),
            "spec.constraints[0]",
            "no such attribute",
        ),
    ] {
        let answer = server.post(&path(plural), &document).await;
        assert_eq!(answer.code, 422, "{document}: {}", answer.json());
        let causes = &answer.json()["details"]["causes"];
        assert_eq!((&causes[0]["field"], &causes[1]), (&json!(field), &Value::Null), "{causes}");
        assert!(causes[0]["message"].as_str().unwrap().contains(why), "{causes}");
    }
}

#[tokio::test]
async fn a_join_token_opens_nothing_of_the_api() {
    let server = Server::start().await;
    let secret = server.token("join", muster_apiserver::access::Role::Robot).await;
    let answer = server.send(Ask::new("GET", &path("tasks")).token(&secret)).await;
    assert_eq!(answer.code, 403, "{}", answer.json());
    assert!(answer.json()["message"].as_str().unwrap().contains("for robots to join with"));
}
