//! What users write to the `status` subresource: nothing that is decided or observed here, whatever their role.

use muster_apiserver::access::Role;
use serde_json::{Value, json};

use crate::server::{APPLY_PATCH, Ask, JSON_PATCH, MERGE_PATCH, Server, path, task};

fn place() -> String {
    format!("{}/a/status", path("tasks"))
}

fn blamed(answer: &Value) -> Vec<&str> {
    let causes = answer["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    causes.iter().filter_map(|cause| cause["field"].as_str()).collect()
}

const CLUSTERS: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default/clusters";

#[tokio::test]
async fn no_role_writes_what_the_engine_decides() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    server
        .set_status("a", &json!({"state": "Succeeded", "attempt": 1, "terminated": "2026-11-15T14:00:00Z"}))
        .await;
    let before = server.revision();
    for role in [Role::Admin, Role::Editor] {
        let token = server.token(&format!("status-{role}"), role).await;
        for (field, value) in [
            ("state", json!("Ready")),
            ("state", json!(null)),
            ("createUser", json!("mallory")),
            ("attempt", json!(9)),
            ("terminated", json!(null)),
            ("events", json!([{"kind": "PodSucceeded", "count": 1, "last": "2026-11-15T14:00:00Z"}])),
            ("result", json!({"any": 1})),
            ("waitingFor", json!({"reason": "Dependency"})),
        ] {
            let patch = json!({"status": {field: value}});
            let ask =
                Ask::new("PATCH", &place()).json(&patch).header(hyper::header::CONTENT_TYPE, MERGE_PATCH);
            let answer = server.send(ask.token(&token)).await;
            let message = answer.refused(422);
            assert_eq!(blamed(&answer.json()), [format!("status.{field}")]);
            assert!(
                message.contains("only the engine writes it") && message.contains("muster report"),
                "{message}"
            );
        }
    }
    let mut whole = server.get(&place()).await.good();
    whole["status"] = json!({});
    let answer = server.put(&place(), &whole).await;
    answer.refused(422);
    assert_eq!(
        blamed(&answer.json()),
        ["status.attempt", "status.createUser", "status.state", "status.terminated"]
    );
    let replace = json!([{"op": "replace", "path": "/status/state", "value": "Running"}]);
    server.patch(&place(), JSON_PATCH, &replace).await.refused(422);
    let mut config = task("a");
    config["status"] = json!({"state": "Running"});
    server.patch(&format!("{}?fieldManager=m&force=true", place()), APPLY_PATCH, &config).await.refused(422);
    let dry = json!({"status": {"state": "Running"}});
    server.patch(&format!("{}?dryRun=All", place()), MERGE_PATCH, &dry).await.refused(422);
    let kept = server.get(&place()).await.good();
    assert_eq!(
        (&kept["status"]["state"], &kept["status"]["createUser"]),
        (&json!("Succeeded"), &json!("admin"))
    );
    assert_eq!(server.store.revision().0 - before, 2, "only the two tokens were written");
}

#[tokio::test]
async fn conditions_of_a_task_are_for_its_users() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let done = json!([{"type": "Done", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}]);
    let written = server.patch(&place(), MERGE_PATCH, &json!({"status": {"conditions": done}})).await.good();
    assert_eq!(written["status"]["conditions"], done);
    assert_eq!(written["status"]["state"], "Ready");
}

#[tokio::test]
async fn the_status_of_other_kinds_is_the_engines() {
    let server = Server::start().await;
    let tasks = json!([{"name": "t", "spec": {"container": {"command": ["true"]}}}]);
    let group = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "TaskGroup", "metadata": {"name": "g"}, "spec": {"tasks": tasks},
    });
    server.create(&group).await;
    let place = format!("{}/g/status", path("taskgroups"));
    let answer = server.patch(&place, MERGE_PATCH, &json!({"status": {"state": "Succeeded"}})).await;
    assert!(answer.refused(422).contains("only the engine writes it"));
    assert_eq!(blamed(&answer.json()), ["status.state"]);
}

#[tokio::test]
async fn a_managed_resource_is_made_ready_by_reports_alone() {
    let server = Server::with_clusters().await;
    server.post(CLUSTERS, &crate::managed::cluster("a")).await.good();
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}]);
    for status in [json!({"conditions": ready}), json!({"observedGeneration": 7})] {
        let field = status.as_object().unwrap().keys().next().unwrap().clone();
        let answer =
            server.patch(&format!("{CLUSTERS}/a/status"), MERGE_PATCH, &json!({ "status": status })).await;
        let message = answer.refused(422);
        assert_eq!(blamed(&answer.json()), [format!("status.{field}")]);
        assert!(message.contains("statuses") && message.contains("reporter"), "{message}");
    }
}
