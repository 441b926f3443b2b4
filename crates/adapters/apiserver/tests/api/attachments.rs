//! `tasks/attachments`: files that are listed with a task.

use muster_apiserver::access::Role;
use muster_apiserver::api::Settings;
use muster_ports::blobs::{BlobKey, Blobs as _};
use muster_ports::store::History;
use serde_json::json;

use crate::server::{Answer, Ask, Server, path, task};

fn place(rest: &str) -> String {
    format!("{}/a/attachments{rest}", path("tasks"))
}

async fn put(server: &Server, rest: &str, body: &'static [u8]) -> Answer {
    server.send(Ask::new("PUT", &place(rest)).body(body)).await
}

async fn server_with_task() -> (Server, String) {
    let server = Server::start().await;
    let uid = server.run_task(&task("a"), 1).await;
    (server, uid)
}

#[tokio::test]
async fn a_file_is_kept_listed_read_and_deleted() {
    let (server, uid) = server_with_task().await;
    let made = put(&server, "/pod.yaml?activity=3", b"kind: Pod").await;
    assert_eq!(made.code, 201, "{made:?}");
    assert_eq!(made.json(), json!({"name": "pod.yaml", "size": 9, "activity": 3}));
    let listed = server.get(&place("")).await.good();
    assert_eq!(listed, json!({"items": [{"name": "pod.yaml", "size": 9, "activity": 3}]}));
    let read = server.get(&place("/pod.yaml")).await;
    assert_eq!((read.code, &read.bytes[..]), (200, &b"kind: Pod"[..]));
    assert_eq!(read.headers["content-length"], "9");
    let again = put(&server, "/pod.yaml", b"longer than before").await;
    assert_eq!((again.code, &again.json()["size"]), (200, &json!(18)));
    let stored = server.get(&format!("{}/a", path("tasks"))).await.good();
    assert_eq!(stored["status"]["attached"], json!([{"name": "pod.yaml", "size": 18}]));
    server.delete(&place("/pod.yaml")).await.good();
    assert_eq!(server.get(&place("")).await.good(), json!({"items": []}));
    server.get(&place("/pod.yaml")).await.refused(404);
    assert_eq!(server.blobs.list(&BlobKey::of_task(&uid).unwrap()).unwrap(), []);
}

#[tokio::test]
async fn a_large_file_comes_back_as_it_was() {
    let (server, _) = server_with_task().await;
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251).to_le_bytes()[0]).collect();
    let made = server.send(Ask::new("PUT", &place("/large")).body(large.clone())).await;
    assert_eq!(made.code, 201, "{made:?}");
    assert_eq!(server.get(&place("/large")).await.bytes, large);
}

#[tokio::test]
async fn the_log_of_a_container_is_an_attachment() {
    let (server, uid) = server_with_task().await;
    server.logs.write(&uid, 1, "addon", "first\n");
    server.logs.write(&uid, 2, "addon", "second\n");
    server.set_status("a", &json!({"attempt": 2, "attached": [{"name": "addon.log", "size": 7}]})).await;
    let log = server.get(&place("/addon.log")).await;
    assert_eq!((log.code, &log.bytes[..]), (200, &b"second\n"[..]));
    server.get(&place("/other.log")).await.refused(404);
}

#[tokio::test]
async fn the_name_of_a_log_can_be_neither_written_nor_deleted() {
    let (server, uid) = server_with_task().await;
    server.logs.write(&uid, 1, "addon", "log\n");
    let before = server.revision();
    for name in ["addon.log", "any.log"] {
        let message = put(&server, &format!("/{name}"), b"forged").await.refused(409);
        assert!(message.contains("log"), "{message}");
        server.delete(&place(&format!("/{name}"))).await.refused(409);
    }
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_and_not_kept() {
    let settings = Settings { max_file: 10, ..Settings::default() };
    let server = Server::with(settings, History::default()).await;
    let uid = server.run_task(&task("a"), 1).await;
    assert_eq!(put(&server, "/fits", b"0123456789").await.code, 201);
    let message = put(&server, "/too-large", b"0123456789x").await.refused(413);
    assert!(message.contains("10 bytes"), "{message}");
    let announced = Ask::new("PUT", &place("/too-large")).header(hyper::header::CONTENT_LENGTH, "99");
    server.send(announced).await.refused(413);
    let kept = server.blobs.list(&BlobKey::of_task(&uid).unwrap()).unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[tokio::test]
async fn names_that_are_none_are_refused() {
    let (server, uid) = server_with_task().await;
    let before = server.revision();
    for (rest, code) in [
        ("/..", 400),
        ("/.", 400),
        ("/a%2Fb", 400),
        ("/%00", 400),
        ("/a%0Ab", 400),
        ("/%2E%2E%2F%2E%2E", 400),
        ("/a/b", 404),
        ("", 405),
    ] {
        put(&server, rest, b"x").await.refused(code);
    }
    let long = format!("/{}", "x".repeat(256));
    server.send(Ask::new("PUT", &place(&long)).body("x")).await.refused(400);
    put(&server, "/a?activity=0", b"x").await.refused(400);
    put(&server, "/a?activity=many", b"x").await.refused(400);
    put(&server, "/a?dryRun=All", b"x").await.refused(400);
    server.delete(&place("/absent")).await.refused(404);
    server.post(&place("/a"), &json!({})).await.refused(405);
    assert_eq!(server.revision(), before);
    assert_eq!(server.blobs.list(&BlobKey::of_task(&uid).unwrap()).unwrap(), []);
}

#[tokio::test]
async fn a_task_has_so_many_attachments_and_no_more() {
    let (server, uid) = server_with_task().await;
    let full: Vec<_> = (0..256).map(|n| json!({"name": format!("f{n}"), "size": 0})).collect();
    server.set_status("a", &json!({ "attached": full })).await;
    let message = put(&server, "/one-more", b"x").await.refused(422);
    assert!(message.contains("256"), "{message}");
    assert_eq!(put(&server, "/f3", b"x").await.code, 200);
    assert_eq!(server.blobs.list(&BlobKey::of_task(&uid).unwrap()).unwrap().len(), 1);
}

#[tokio::test]
async fn an_addon_attaches_to_its_own_task_and_a_viewer_only_reads() {
    let (server, uid) = server_with_task().await;
    server.run_task(&task("b"), 1).await;
    let addon = server.attempt_token("a", &uid, 1);
    let made = server.send(Ask::new("PUT", &place("/x")).body("x").token(&addon)).await;
    assert_eq!(made.code, 201, "{made:?}");
    let other = format!("{}/b/attachments/x", path("tasks"));
    server.send(Ask::new("PUT", &other).body("x").token(&addon)).await.refused(403);
    let viewer = server.token("viewer", Role::Viewer).await;
    assert_eq!(server.send(Ask::new("GET", &place("/x")).token(&viewer)).await.code, 200);
    server.send(Ask::new("PUT", &place("/x")).body("x").token(&viewer)).await.refused(403);
    server.send(Ask::new("DELETE", &place("/x")).token(&viewer)).await.refused(403);
}

#[tokio::test]
async fn a_server_without_files_says_so() {
    let (server, _) = server_with_task().await;
    let bare = server.without_parts();
    let message = put(&bare, "/x", b"x").await.refused(404);
    assert!(message.contains("no files"), "{message}");
}
