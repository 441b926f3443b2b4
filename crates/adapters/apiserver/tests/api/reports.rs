//! `tasks/report` over the API: who may, what it answers, what it refuses.

use hyper::header::CONTENT_TYPE;
use muster_apiserver::access::Role;
use serde_json::{Value, json};

use crate::server::{Ask, Server, path, task};

fn place() -> String {
    format!("{}/a/report", path("tasks"))
}

async fn server_with_attempt(attempt: u32) -> (Server, String) {
    let server = Server::start().await;
    let uid = server.run_task(&task("a"), attempt).await;
    let token = server.attempt_token("a", &uid, attempt);
    (server, token)
}

async fn status(server: &Server) -> Value {
    server.get(&format!("{}/a", path("tasks"))).await.good()["status"].clone()
}

#[tokio::test]
async fn an_addon_reports_and_everybody_sees_it() {
    let (server, token) = server_with_attempt(1).await;
    let first = json!({"activity": ["reading"], "total": 10, "completed": 1});
    let answer = server.send(Ask::new("POST", &place()).json(&first).token(&token)).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    let second =
        json!({"activity": ["writing"], "increment": 2, "errors": [{"description": "odd"}], "result": [1]});
    let report = server.send(Ask::new("POST", &place()).json(&second).token(&token)).await.good();
    assert_eq!(report["kind"], "TaskReport");
    assert_eq!(report["activity"], json!(["reading", "writing"]));
    assert_eq!(
        (&report["completed"], &report["total"], &report["attempt"]),
        (&json!(3), &json!(10), &json!(1))
    );
    let stored = status(&server).await;
    assert_eq!(stored["errors"], json!([{"severity": "Error", "description": "(addon) odd"}]));
    assert_eq!(stored["result"], json!([1]));
    assert_eq!(server.get(&place()).await.good(), report);
}

#[tokio::test]
async fn put_replaces_and_delete_clears() {
    let (server, _) = server_with_attempt(1).await;
    server.post(&place(), &json!({"activity": ["a"], "completed": 1})).await.good();
    let replaced = server.put(&place(), &json!({"activity": ["b"]})).await.good();
    assert_eq!((&replaced["activity"], &replaced["completed"]), (&json!(["b"]), &Value::Null));
    let cleared = server.delete(&place()).await.good();
    assert_eq!(cleared["activity"], json!([]));
}

#[tokio::test]
async fn a_report_can_be_yaml() {
    let (server, _) = server_with_attempt(1).await;
    let ask =
        Ask::new("POST", &place()).body("activity: [a]\ntotal: 3\n").header(CONTENT_TYPE, "application/yaml");
    assert_eq!(server.send(ask).await.good()["total"], 3);
}

#[tokio::test]
async fn late_reports_are_ignored_and_counted() {
    let (server, _) = server_with_attempt(2).await;
    server.post(&place(), &json!({"sequence": 5, "completed": 5})).await.good();
    let before = server.revision();
    let late = server.post(&place(), &json!({"attempt": 1, "completed": 99})).await.good();
    assert!(late["ignored"].as_str().unwrap().contains("attempt 1"), "{late}");
    let doubled = server.post(&place(), &json!({"sequence": 5, "completed": 99})).await.good();
    assert!(doubled["ignored"].as_str().unwrap().contains('5'), "{doubled}");
    assert_eq!(doubled["completed"], 5);
    assert_eq!(server.revision(), before, "nothing was stored");
    let metrics = server.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    for line in [
        "muster_reports_ignored_total{why=\"attempt\"} 1",
        "muster_reports_ignored_total{why=\"sequence\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
}

#[tokio::test]
async fn an_addon_cannot_speak_for_another_attempt() {
    let (server, token) = server_with_attempt(2).await;
    let report = json!({"attempt": 3, "completed": 1});
    let answer = server.send(Ask::new("POST", &place()).json(&report).token(&token)).await.good();
    assert_eq!(answer["attempt"], 2);
}

#[tokio::test]
async fn a_task_without_an_attempt_and_one_that_ended_refuse_reports() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let before = server.revision();
    let message = server.post(&place(), &json!({"completed": 1})).await.refused(409);
    assert!(message.contains("no attempt"), "{message}");
    assert_eq!(server.revision(), before);
    server.set_status("a", &json!({"state": "Failed", "attempt": 1})).await;
    for method in ["POST", "PUT", "DELETE"] {
        let message = server.send(Ask::new(method, &place()).json(&json!({}))).await.refused(409);
        assert!(message.contains("Failed"), "{message}");
    }
    server.get(&place()).await.good();
}

#[tokio::test]
async fn reports_that_make_no_sense_are_refused_and_change_nothing() {
    let (server, _) = server_with_attempt(1).await;
    let before = server.revision();
    for (body, code, word) in [
        ("{", 400, "report"),
        ("[]", 400, "report"),
        ("3", 400, "report"),
        (r#"{"complete": 1}"#, 400, "complete"),
        (r#"{"completed": -1}"#, 400, "completed"),
        (r#"{"completed": "many"}"#, 400, "completed"),
        (r#"{"activity": "one line"}"#, 400, "activity"),
        (r#"{"errors": [{"description": 1}]}"#, 400, "errors"),
        (r#"{"sequence": 1e99}"#, 400, "sequence"),
        (r#"{"errors": [{}]}"#, 422, "description"),
        (r#"{"attempt": 7}"#, 422, "attempt"),
        (r#"{"completed": 1, "increment": 1}"#, 422, "increment"),
    ] {
        let message = server.send(Ask::new("POST", &place()).body(body)).await.refused(code);
        assert!(message.contains(word), "{body}: {message}");
    }
    let long = json!({"activity": ["x".repeat(1025)]});
    server.post(&place(), &long).await.refused(422);
    let many = json!({"activity": vec!["x"; 1001]});
    server.post(&place(), &many).await.refused(422);
    let large = json!({"result": "x".repeat(64 * 1024)});
    let message = server.post(&place(), &large).await.refused(422);
    assert!(message.contains("result"), "{message}");
    let media = Ask::new("POST", &place()).body("x").header(CONTENT_TYPE, "text/csv");
    server.send(media).await.refused(415);
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn a_viewer_reads_reports_and_does_not_write_them() {
    let (server, _) = server_with_attempt(1).await;
    let viewer = server.token("viewer", Role::Viewer).await;
    server.send(Ask::new("GET", &place()).token(&viewer)).await.good();
    for method in ["POST", "PUT", "DELETE"] {
        let message =
            server.send(Ask::new(method, &place()).json(&json!({})).token(&viewer)).await.refused(403);
        assert!(message.contains("tasks/report"), "{message}");
    }
    server.send(Ask::new("PATCH", &place()).json(&json!({}))).await.refused(405);
}

#[tokio::test]
async fn reports_are_of_tasks_that_are_there_and_of_no_other_kind() {
    let server = Server::start().await;
    server.get(&place()).await.refused(404);
    server.get(&format!("{}/a/report", path("applications"))).await.refused(404);
    server.run_task(&task("a"), 1).await;
    server.get(&format!("{}/more", place())).await.refused(404);
    server.get("/apis/muster.dev/v1alpha1/tasks/a/report").await.refused(404);
}

#[tokio::test]
async fn a_dry_run_shows_the_report_and_stores_nothing() {
    let (server, _) = server_with_attempt(1).await;
    let before = server.revision();
    let shown = server.post(&format!("{}?dryRun=All", place()), &json!({"completed": 4})).await.good();
    assert_eq!(shown["completed"], 4);
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn discovery_lists_the_parts_of_a_task() {
    let server = Server::start().await;
    let listed = server.get("/apis/muster.dev/v1alpha1").await.good();
    let find = |name: &str| {
        let resources = listed["resources"].as_array().unwrap();
        resources.iter().find(|resource| resource["name"] == name).cloned()
    };
    let report = find("tasks/report").unwrap();
    assert_eq!(report["verbs"], json!(["get", "create", "update", "delete"]));
    assert!(find("applications/report").is_none());
}
