//! `tasks/explain` and `tasks/retry`.

use muster_apiserver::access::Role;
use muster_ports::explain::Explanation;
use muster_types::State;
use muster_types::explanation::RESTING;
use serde_json::json;

use crate::server::{Ask, Server, path, task};

fn place(part: &str) -> String {
    format!("{}/a/{part}", path("tasks"))
}

#[tokio::test]
async fn whoever_decides_explains() {
    let server = Server::start().await;
    let uid = server.create(&task("a")).await["metadata"]["uid"].as_str().unwrap().to_owned();
    let told = Explanation {
        state: State::Postponed,
        effective_priority: Some(9),
        position: Some(3),
        ..Explanation::default()
    };
    server.explain.tell(&uid, told);
    let shown = server.get(&place("explain")).await.good();
    assert_eq!(
        (&shown["kind"], &shown["apiVersion"]),
        (&json!("TaskExplanation"), &json!("muster.dev/v1alpha1"))
    );
    assert_eq!(
        (&shown["state"], &shown["effectivePriority"], &shown["position"]),
        (&json!("Ready"), &json!(9), &json!(3)),
        "the state is the one that is stored"
    );
    assert_eq!(shown["recorded"], json!(null));
}

#[tokio::test]
async fn a_rest_and_an_end_that_was_asked_for_are_explained_as_such() {
    let server = Server::start().await;
    let uid = server.create(&task("a")).await["metadata"]["uid"].as_str().unwrap().to_owned();
    let resting = json!({"reason": RESTING, "message": "it starts again at some time", "task": ""});
    let told =
        Explanation { waiting_for: Some(serde_json::from_value(resting).unwrap()), ..Explanation::default() };
    server.explain.tell(&uid, told);
    let restart = json!({"reason": "Restart", "message": "restart 1 of 2"});
    server.set_status("a", &json!({"state": "Ready", "waitingFor": restart})).await;
    let shown = server.get(&place("explain")).await.good();
    assert_eq!((&shown["waitingFor"], &shown["message"]), (&restart, &json!("restart 1 of 2")));

    server.explain.tell(&uid, Explanation { message: "its attempt runs".into(), ..Explanation::default() });
    let ending = "Ending: it was canceled";
    let stopping = json!({"state": "Running", "stopping": "Canceled", "message": ending, "waitingFor": null});
    server.set_status("a", &stopping).await;
    assert_eq!(server.get(&place("explain")).await.good()["message"], ending);
}

#[tokio::test]
async fn what_nobody_knows_is_explained_from_what_is_stored() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let waiting = json!({"reason": "Dependency", "message": "task b must complete first"});
    let since = "2026-11-15T14:00:00Z";
    server
        .set_status(
            "a",
            &json!({"state": "Postponed", "stateSince": since, "message": "held", "waitingFor": waiting}),
        )
        .await;
    for server in [&server, &server.without_parts()] {
        let shown = server.get(&place("explain")).await.good();
        assert_eq!((&shown["state"], &shown["recorded"]), (&json!("Postponed"), &json!(true)));
        assert_eq!((&shown["waitingFor"], &shown["since"]), (&waiting, &json!(since)));
    }
    server.set_status("a", &json!({"state": "Succeeded", "waitingFor": null})).await;
    let shown = server.get(&place("explain")).await.good();
    assert_eq!((&shown["state"], &shown["recorded"]), (&json!("Succeeded"), &json!(null)));
}

#[tokio::test]
async fn only_tasks_are_explained_and_only_by_reading() {
    let server = Server::start().await;
    server.get(&place("explain")).await.refused(404);
    server.create(&task("a")).await;
    server.post(&place("explain"), &json!({})).await.refused(405);
    let viewer = server.token("viewer", Role::Viewer).await;
    server.send(Ask::new("GET", &place("explain")).token(&viewer)).await.good();
}

#[tokio::test]
async fn a_task_that_ended_is_made_again_with_a_link_back() {
    let server = Server::start().await;
    let mut old = task("a");
    old["metadata"]["labels"] = json!({"team": "one"});
    old["metadata"]["annotations"] =
        json!({"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "{}"});
    old["metadata"]["finalizers"] = json!(["example.com/hold"]);
    old["spec"]["cancel"] = json!(true);
    old["spec"]["priority"] = json!(7);
    server.create(&old).await;
    server.set_status("a", &json!({"state": "Canceled", "attempt": 2, "result": 1})).await;
    let answer = server.post(&place("retry"), &json!(null)).await;
    assert_eq!(answer.code, 201, "{answer:?}");
    let new = answer.json();
    assert!(new["metadata"]["name"].as_str().unwrap().starts_with("a-"), "{new}");
    assert_eq!(new["metadata"]["labels"], json!({"team": "one"}));
    assert_eq!(new["metadata"]["annotations"], json!({"note": "kept", "muster.dev/retry-of": "a"}));
    assert_eq!(new["metadata"]["finalizers"], json!(null));
    assert_eq!(new["spec"], json!({"container": {"command": ["true"]}, "priority": 7}));
    assert_eq!(new["status"], json!({"createUser": "admin", "state": "Ready"}));
    let again = server.post(&place("retry"), &json!(null)).await.good();
    assert_ne!(again["metadata"]["name"], new["metadata"]["name"]);
}

#[tokio::test]
async fn a_task_that_has_not_ended_is_not_made_again() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let before = server.revision();
    let message = server.post(&place("retry"), &json!(null)).await.refused(409);
    assert!(message.contains("Ready"), "{message}");
    assert_eq!(server.revision(), before);
    server.set_status("a", &json!({"state": "Failed"})).await;
    let before = server.revision();
    server.post(&format!("{}?dryRun=All", place("retry")), &json!(null)).await.good();
    assert_eq!(server.revision(), before, "a dry run makes nothing");
    let viewer = server.token("viewer", Role::Viewer).await;
    server.send(Ask::new("POST", &place("retry")).token(&viewer)).await.refused(403);
    server.get(&place("retry")).await.refused(405);
}
