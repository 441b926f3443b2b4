//! `tasks/log`: parts of a log, following it, and who it is shown to.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use muster_apiserver::access::Role;
use muster_apiserver::api::Settings;
use muster_ports::store::History;
use serde_json::json;

use crate::server::{Ask, SOON, Server, path, task};

fn place(query: &str) -> String {
    format!("{}/a/log?{query}", path("tasks"))
}

async fn text(server: &Server, query: &str) -> String {
    let answer = server.get(&place(query)).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

/// A log that is being followed.
struct Following(UnsyncBoxBody<Bytes, Infallible>);

impl Following {
    async fn start(server: &Server, query: &str) -> Self {
        let request = Ask::new("GET", &place(&format!("follow=true&{query}")));
        let reply = server.reply(request).await;
        assert_eq!(reply.status(), 200);
        Self(reply.into_body())
    }

    /// Reads until a text was sent.
    async fn until(&mut self, wanted: &str) {
        let mut seen = String::new();
        while !seen.ends_with(wanted) {
            let frame = tokio::time::timeout(SOON, self.0.frame()).await.expect("more comes");
            let frame = frame.unwrap_or_else(|| panic!("it ended after {seen:?}")).unwrap();
            seen.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
            assert!(wanted.starts_with(&seen), "{seen:?} is not the start of {wanted:?}");
        }
    }

    async fn ends(mut self) {
        let end = tokio::time::timeout(SOON, self.0.frame()).await.expect("it ends");
        assert!(end.is_none(), "{end:?}");
    }
}

async fn server_with_log(written: &str) -> (Server, String) {
    let server = Server::start().await;
    let uid = server.run_task(&task("a"), 1).await;
    server.logs.write(&uid, 1, "addon", written);
    (server, uid)
}

#[tokio::test]
async fn a_log_is_sent_whole_or_in_part() {
    let (server, _) = server_with_log("one\ntwo\nthree\n").await;
    for (query, expected) in [
        ("", "one\ntwo\nthree\n"),
        ("container=addon", "one\ntwo\nthree\n"),
        ("attempt=1", "one\ntwo\nthree\n"),
        ("tailLines=2", "two\nthree\n"),
        ("tailLines=0", ""),
        ("limitBytes=5", "one\nt"),
        ("tailLines=1&limitBytes=3", "thr"),
        ("follow=false", "one\ntwo\nthree\n"),
    ] {
        assert_eq!(text(&server, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn since_leaves_out_what_is_older() {
    let server = Server::start().await;
    let uid = server.run_task(&task("a"), 1).await;
    let now = 1_700_000_000;
    server.logs.write_at(&uid, 1, "addon", "old\n", now - 100);
    server.logs.write_at(&uid, 1, "addon", "new\n", now - 10);
    assert_eq!(text(&server, "sinceSeconds=50").await, "new\n");
    assert_eq!(text(&server, "sinceSeconds=500").await, "old\nnew\n");
    assert_eq!(text(&server, "sinceTime=2023-11-14T22:13:00Z").await, "new\n");
    assert_eq!(text(&server, "sinceTime=2030-01-01T00:00:00Z").await, "");
}

#[tokio::test]
async fn a_long_log_is_sent_in_blocks() {
    let line = format!("{}\n", "x".repeat(99));
    let (server, uid) = server_with_log(&line.repeat(10_000)).await;
    assert_eq!(text(&server, "").await.len(), 1_000_000);
    assert_eq!(text(&server, "tailLines=5000").await.len(), 500_000);
    assert!(server.logs.most() <= 64 * 1024, "{}", server.logs.most());
    server.logs.forget(&uid, 1, "addon", 999_900);
    assert_eq!(text(&server, "").await, line);
}

#[tokio::test]
async fn following_sends_what_is_written_until_the_task_has_ended() {
    let (server, uid) = server_with_log("one\n").await;
    let mut log = Following::start(&server, "").await;
    log.until("one\n").await;
    server.logs.write(&uid, 1, "addon", "two\n");
    log.until("two\n").await;
    server.logs.write(&uid, 1, "addon", "three\n");
    server.set_status("a", &json!({"state": "Succeeded"})).await;
    log.until("three\n").await;
    log.ends().await;
}

#[tokio::test]
async fn following_waits_for_the_first_attempt() {
    let server = Server::start().await;
    let uid = server.create(&task("a")).await["metadata"]["uid"].as_str().unwrap().to_owned();
    let mut log = Following::start(&server, "").await;
    server.set_status("a", &json!({"state": "Ready"})).await;
    server.set_status("a", &json!({"state": "Pending", "attempt": 1})).await;
    server.logs.write(&uid, 1, "addon", "begins\n");
    log.until("begins\n").await;
    server.set_status("a", &json!({"state": "Failed"})).await;
    log.ends().await;
}

#[tokio::test]
async fn following_goes_on_with_later_attempts() {
    let (server, uid) = server_with_log("first\n").await;
    let mut log = Following::start(&server, "tailLines=10").await;
    let mut only = Following::start(&server, "attempt=1").await;
    log.until("first\n").await;
    only.until("first\n").await;
    server.set_status("a", &json!({"state": "Ready"})).await;
    only.ends().await;
    server.logs.write(&uid, 2, "addon", "second\n");
    server.logs.write(&uid, 3, "addon", "third\n");
    server.set_status("a", &json!({"state": "Running", "attempt": 3})).await;
    log.until("second\nthird\n").await;
    server.set_status("a", &json!({"state": "Canceled"})).await;
    log.ends().await;
}

#[tokio::test]
async fn following_ends_with_the_task_and_with_the_server() {
    let (server, _) = server_with_log("one\n").await;
    let mut log = Following::start(&server, "").await;
    log.until("one\n").await;
    server.delete_running(&format!("{}/a", path("tasks"))).await;
    log.ends().await;
    let (server, _) = server_with_log("one\n").await;
    let mut log = Following::start(&server, "").await;
    log.until("one\n").await;
    server.shutdown.request();
    log.ends().await;
}

#[tokio::test]
async fn following_a_task_that_ended_before_it_ran_sends_nothing() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    server.set_status("a", &json!({"state": "Canceled"})).await;
    Following::start(&server, "").await.ends().await;
}

#[tokio::test]
async fn a_limit_of_bytes_ends_following() {
    let (server, _) = server_with_log("one\ntwo\n").await;
    let mut log = Following::start(&server, "limitBytes=6").await;
    log.until("one\ntw").await;
    log.ends().await;
}

#[tokio::test]
async fn followers_take_the_places_of_watches() {
    let settings = Settings { max_watches: 1, ..Settings::default() };
    let server = Server::with(settings, History::default()).await;
    server.run_task(&task("a"), 1).await;
    let log = Following::start(&server, "").await;
    server.get(&place("follow=true")).await.refused(429);
    drop(log);
    Following::start(&server, "").await;
}

#[tokio::test]
async fn logs_of_earlier_attempts_are_asked_for_by_number() {
    let (server, uid) = server_with_log("first\n").await;
    server.logs.write(&uid, 2, "addon", "second\n");
    server.set_status("a", &json!({"attempt": 2})).await;
    assert_eq!(text(&server, "").await, "second\n");
    assert_eq!(text(&server, "attempt=1").await, "first\n");
}

#[tokio::test]
async fn the_leading_container_is_meant_unless_another_is_named() {
    let server = Server::start().await;
    let mut several = task("a");
    several["spec"] = json!({"containers": [
        {"name": "side", "command": ["true"]}, {"name": "main", "command": ["true"], "leading": true},
    ]});
    let uid = server.run_task(&several, 1).await;
    server.logs.write(&uid, 1, "main", "main\n");
    server.logs.write(&uid, 1, "side", "side\n");
    assert_eq!(text(&server, "").await, "main\n");
    assert_eq!(text(&server, "container=side").await, "side\n");
    let message = server.get(&place("container=nobody")).await.refused(400);
    assert!(message.contains("main, side"), "{message}");
}

#[tokio::test]
async fn the_containers_of_an_addon_are_known_by_what_was_selected() {
    let server = Server::start().await;
    let addon = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "java"},
        "spec": {"container": {"name": "analyze", "command": ["true"]}},
    });
    server.create(&addon).await;
    let mut by_kind = task("a");
    by_kind["spec"] = json!({"kind": "analyzer"});
    let uid = server.run_task(&by_kind, 1).await;
    let last = "2026-11-15T14:00:00Z";
    let events = json!([
        {"kind": "AddonSelected", "count": 1, "reason": "java", "last": last},
        {"kind": "ExtensionSelected", "count": 1, "reason": "helper", "last": last},
    ]);
    server.set_status("a", &json!({"events": events})).await;
    server.logs.write(&uid, 1, "analyze", "by addon\n");
    assert_eq!(text(&server, "").await, "by addon\n");
    let message = server.get(&place("container=nobody")).await.refused(400);
    assert!(message.contains("analyze, helper"), "{message}");
    server
        .set_status("a", &json!({"state": "Succeeded", "attached": [{"name": "lead.log", "size": 9}]}))
        .await;
    server.logs.write(&uid, 1, "lead", "attached\n");
    assert_eq!(text(&server, "").await, "attached\n");
}

#[tokio::test]
async fn a_log_that_is_not_there_yet_is_empty_and_one_that_is_gone_is_not_found() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    assert_eq!(text(&server, "").await, "");
    server.set_status("a", &json!({"state": "Pending", "attempt": 1})).await;
    assert_eq!(text(&server, "").await, "");
    server.set_status("a", &json!({"state": "Succeeded"})).await;
    let message = server.get(&place("")).await.refused(404);
    assert!(message.contains("let go"), "{message}");
}

#[tokio::test]
async fn questions_that_make_no_sense_are_refused() {
    let (server, _) = server_with_log("one\n").await;
    for (query, word) in [
        ("tailLines=-1", "tailLines"),
        ("tailLines=many", "tailLines"),
        ("attempt=0", "attempt"),
        ("attempt=2", "attempt 2 has not begun"),
        ("limitBytes=0", "limitBytes"),
        ("sinceSeconds=-5", "sinceSeconds"),
        ("sinceTime=yesterday", "sinceTime"),
        ("sinceTime=2030-01-01T00:00:00Z&sinceSeconds=1", "both"),
        ("follow=perhaps", "follow"),
        ("container=%zz", "container"),
        ("container=..%2Fother", "addon"),
    ] {
        let message = server.get(&place(query)).await.refused(400);
        assert!(message.contains(word), "{query}: {message}");
    }
    server.post(&place(""), &json!({})).await.refused(405);
    server.get(&format!("{}/nobody/log", path("tasks"))).await.refused(404);
    server.without_parts().get(&place("")).await.refused(404);
}

#[tokio::test]
async fn a_viewer_reads_logs_and_an_addon_does_not() {
    let (server, uid) = server_with_log("one\n").await;
    let viewer = server.token("viewer", Role::Viewer).await;
    assert_eq!(server.send(Ask::new("GET", &place("")).token(&viewer)).await.code, 200);
    let addon = server.attempt_token("a", &uid, 1);
    server.send(Ask::new("GET", &place("")).token(&addon)).await.refused(403);
}
