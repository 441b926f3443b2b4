//! `kubejobs/logs`: what is kept of jobs of a cluster.

use serde_json::{Value, json};

use crate::server::{Ask, Server, path};

fn kube_job(spec: &Value) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": "KubeJob", "metadata": {"name": "a-1"}, "spec": spec})
}

fn place(rest: &str) -> String {
    format!("{}/a-1/logs{rest}", path("kubejobs"))
}

#[tokio::test]
async fn a_log_is_kept_listed_and_read_and_keeping_it_again_changes_nothing() {
    let server = Server::start().await;
    let spec = json!({"jobName": "a", "jobUid": "u", "outcome": "success"});
    server.post(&path("kubejobs"), &kube_job(&spec)).await.good();
    for _ in 0..2 {
        let kept = server.send(Ask::new("PUT", &place("/a-x/main")).body(&b"hello\n"[..])).await;
        assert_eq!(kept.json(), json!({"pod": "a-x", "container": "main", "size": 6}));
    }
    server.send(Ask::new("PUT", &place("/a-x/main.part2")).body(&b""[..])).await.good();
    let listed = server.get(&place("")).await.good();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2), "{listed}");
    let read = server.get(&place("/a-x/main")).await;
    assert_eq!((read.code, &read.bytes[..]), (200, &b"hello\n"[..]));
    server.get(&place("/a-x/other")).await.refused(404);
    server.get(&place("/a-x")).await.refused(404);
    let other = json!({"spec": {"jobUid": "another"}});
    let patch = Ask::new("PATCH", &format!("{}/a-1", path("kubejobs")))
        .header(hyper::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(other.to_string());
    server.send(patch).await.refused(422);
}

#[tokio::test]
async fn a_job_without_a_name_or_an_outcome_is_refused() {
    let server = Server::start().await;
    let answer = server.post(&path("kubejobs"), &kube_job(&json!({"outcome": "unknown"}))).await;
    let causes = answer.json()["details"]["causes"].clone();
    let fields: Vec<_> =
        causes.as_array().into_iter().flatten().map(|cause| cause["field"].clone()).collect();
    assert_eq!(
        (answer.code, fields),
        (422, vec![json!("spec.jobName"), json!("spec.jobUid"), json!("spec.outcome")])
    );
}
