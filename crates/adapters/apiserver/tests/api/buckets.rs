//! `tasks/bucket`: a directory of files for each task.

use hyper::header::{ACCEPT, CONTENT_TYPE};
use muster_apiserver::access::Role;
use muster_ports::blobs::{BlobKey, Blobs as _};
use proptest::prelude::*;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::server::{Answer, Ask, Server, path, task};

const TAR: &str = "application/x-tar";

fn place(rest: &str) -> String {
    format!("{}/a/bucket{rest}", path("tasks"))
}

async fn put(server: &Server, rest: &str, body: &str) -> Answer {
    server.send(Ask::new("PUT", &place(rest)).body(body.to_owned())).await
}

async fn put_tar(server: &Server, rest: &str, archive: Vec<u8>) -> Answer {
    server.send(Ask::new("PUT", &place(rest)).body(archive).header(CONTENT_TYPE, TAR)).await
}

async fn server_with_task() -> (Server, String) {
    let server = Server::start().await;
    let uid = server.run_task(&task("a"), 1).await;
    (server, uid)
}

/// Paths and sizes of all files that are kept for a task.
fn kept(server: &Server, uid: &str) -> Vec<String> {
    let entries = server.blobs.list(&BlobKey::of_task(uid).unwrap()).unwrap();
    entries.into_iter().map(|entry| format!("{} {}", entry.path, entry.size)).collect()
}

/// An archive of one entry with any path, also ones that no builder would write.
fn entry(kind: EntryType, path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_cksum();
    let mut builder = Builder::new(Vec::new());
    builder.append(&header, bytes).unwrap();
    builder.into_inner().unwrap()
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        builder.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn items(answer: &Value) -> Vec<String> {
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| format!("{} {}", item["path"].as_str().unwrap(), item["size"])).collect()
}

#[tokio::test]
async fn files_are_kept_by_path() {
    let (server, _) = server_with_task().await;
    assert_eq!(server.get(&place("")).await.good(), json!({"items": []}));
    let made = put(&server, "/dir/b%20c.txt", "text").await;
    assert_eq!((made.code, made.json()), (201, json!({"path": "dir/b c.txt", "size": 4})));
    assert_eq!(put(&server, "/dir/b%20c.txt", "other").await.code, 200);
    put(&server, "/a", "x").await;
    let read = server.get(&place("/dir/b%20c.txt")).await;
    assert_eq!((read.code, &read.bytes[..]), (200, &b"other"[..]));
    assert_eq!(items(&server.get(&place("/")).await.good()), ["a 1", "dir/b c.txt 5"]);
    assert_eq!(items(&server.get(&place("/dir")).await.good()), ["b c.txt 5"]);
    assert_eq!(items(&server.get(&place("/dir/")).await.good()), ["b c.txt 5"]);
    server.get(&place("/nothing")).await.refused(404);
    server.get(&place("/a/")).await.refused(404);
}

#[tokio::test]
async fn files_and_directories_are_deleted() {
    let (server, uid) = server_with_task().await;
    for path in ["/d/a", "/d/b", "/e", "/f"] {
        put(&server, path, "x").await;
    }
    server.delete(&place("/d")).await.good();
    server.delete(&place("/e")).await.good();
    server.delete(&place("/e")).await.refused(404);
    assert_eq!(kept(&server, &uid), ["bucket/f 1"]);
    server.delete(&place("/f?dryRun=All")).await.good();
    assert_eq!(kept(&server, &uid), ["bucket/f 1"]);
    server.delete(&place("")).await.good();
    assert_eq!(kept(&server, &uid), [""; 0]);
}

#[tokio::test]
async fn an_archive_is_unpacked_and_comes_back() {
    let (server, uid) = server_with_task().await;
    let long = format!("{}/deep", "x".repeat(150));
    let packed = archive(&[("./a", "1"), ("d/b", "22"), (&long, "333")]);
    let unpacked = put_tar(&server, "/in/", packed).await.good();
    assert_eq!(items(&unpacked), ["a 1".to_owned(), "d/b 2".to_owned(), format!("{long} 3")]);
    assert_eq!(kept(&server, &uid).len(), 3, "the archive itself is not kept");
    let answer = server.send(Ask::new("GET", &place("/in")).header(ACCEPT, TAR)).await;
    assert_eq!((answer.code, answer.headers["content-type"].to_str().unwrap()), (200, TAR));
    let mut read = tar::Archive::new(&answer.bytes[..]);
    let mut files = Vec::new();
    for entry in read.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut entry, &mut text).unwrap();
        files.push((entry.path().unwrap().display().to_string(), text));
    }
    assert_eq!(files, [("a".into(), "1".into()), ("d/b".into(), "22".into()), (long, "333".to_owned())]);
    let root = put_tar(&server, "", archive(&[("top", "x")])).await.good();
    assert_eq!(items(&root), ["top 1"]);
    assert_eq!(server.get(&place("/top")).await.code, 200);
}

#[tokio::test]
async fn an_archive_to_a_path_that_is_no_directory_is_a_file() {
    let (server, uid) = server_with_task().await;
    let packed = archive(&[("a", "1")]);
    put_tar(&server, "/kept.tar", packed.clone()).await.good();
    assert_eq!(server.get(&place("/kept.tar")).await.bytes, packed);
    assert_eq!(kept(&server, &uid).len(), 1);
}

#[tokio::test]
async fn archives_that_reach_out_or_link_are_refused_whole() {
    let (server, uid) = server_with_task().await;
    put(&server, "/there", "x").await;
    let good = archive(&[("good", "1")]);
    for (second, word) in [
        (entry(EntryType::Regular, "../out", b"x"), "leads out"),
        (entry(EntryType::Regular, "d/../../out", b"x"), "leads out"),
        (entry(EntryType::Regular, "/etc/passwd", b"x"), "absolute"),
        (entry(EntryType::Symlink, "link", b""), "link"),
        (entry(EntryType::Link, "link", b""), "link"),
        (entry(EntryType::Fifo, "pipe", b""), "neither"),
        (entry(EntryType::Char, "device", b""), "neither"),
        (entry(EntryType::GNUSparse, "sparse", b""), ""),
        (entry(EntryType::Regular, ".", b"x"), "names no file"),
        (entry(EntryType::Regular, "a\nb", b"x"), "control"),
        (b"this is no archive at all, but long enough for a header".repeat(20).clone(), "tar"),
    ] {
        // The good file stands first, without the end of its archive.
        let mut packed = good[..1024].to_vec();
        packed.extend_from_slice(&second);
        let message = put_tar(&server, "/", packed).await.refused(400);
        assert!(message.contains(word), "{word}: {message}");
        assert_eq!(kept(&server, &uid), ["bucket/there 1"], "{word}");
    }
    let cut = archive(&[("cut", &"x".repeat(5000))])[..3000].to_vec();
    put_tar(&server, "/", cut).await.refused(400);
    assert_eq!(kept(&server, &uid), ["bucket/there 1"]);
}

#[tokio::test]
async fn an_archive_that_clashes_with_what_is_there_is_refused_whole() {
    let (server, uid) = server_with_task().await;
    put(&server, "/file", "x").await;
    put(&server, "/dir/a", "x").await;
    for files in [
        &[("new", "1"), ("file/below", "2")][..],
        &[("new", "1"), ("dir", "2")][..],
        &[("new", "1"), ("both", "2"), ("both/below", "3")][..],
    ] {
        put_tar(&server, "/", archive(files)).await.refused(409);
        assert_eq!(kept(&server, &uid), ["bucket/dir/a 1", "bucket/file 1"]);
    }
    put(&server, "/file/below", "x").await.refused(409);
    put(&server, "/dir", "x").await.refused(409);
}

#[tokio::test]
async fn paths_that_lead_out_of_the_bucket_are_refused() {
    let (server, uid) = server_with_task().await;
    for rest in ["/../a", "/%2E%2E/a", "/d/%2E%2E/%2E%2E/a", "/a%2F..%2Fb", "/.", "/a%00b", "/%2Fetc"] {
        for method in ["GET", "PUT", "DELETE"] {
            server.send(Ask::new(method, &place(rest)).body("x")).await.refused(400);
        }
    }
    put(&server, "/dir/", "no archive").await.refused(400);
    put(&server, "", "no archive").await.refused(400);
    server.post(&place("/a"), &json!({})).await.refused(405);
    assert_eq!(kept(&server, &uid), [""; 0]);
}

#[tokio::test]
async fn an_addon_uses_its_own_bucket_and_a_viewer_only_reads() {
    let (server, uid) = server_with_task().await;
    server.run_task(&task("b"), 1).await;
    let addon = server.attempt_token("a", &uid, 1);
    let made = server.send(Ask::new("PUT", &place("/x")).body("x").token(&addon)).await;
    assert_eq!(made.code, 201, "{made:?}");
    let other = format!("{}/b/bucket/x", path("tasks"));
    server.send(Ask::new("GET", &other).token(&addon)).await.refused(403);
    let viewer = server.token("viewer", Role::Viewer).await;
    assert_eq!(server.send(Ask::new("GET", &place("/x")).token(&viewer)).await.code, 200);
    server.send(Ask::new("PUT", &place("/x")).body("x").token(&viewer)).await.refused(403);
    server.get(&format!("{}/nobody/bucket", path("tasks"))).await.refused(404);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_sent_as_an_archive_harm(
        noise in prop::collection::vec(any::<u8>(), 0..2048),
        at in 0_usize..1536, byte in any::<u8>(), spoil in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (server, uid) = server_with_task().await;
            let mut packed = archive(&[("a", "1"), ("b", "2")]);
            if spoil { packed[at] = byte } else { packed = noise }
            let answer = put_tar(&server, "/", packed).await;
            assert!(answer.code < 500, "{answer:?}");
            if answer.code >= 400 {
                assert_eq!(kept(&server, &uid), [""; 0], "a refused archive leaves nothing");
            }
            for file in kept(&server, &uid) {
                assert!(file.starts_with("bucket/"), "{file}");
            }
        });
    }
}
