//! A file as a sink: what is confirmed is in it, also after a crash and when it is put aside.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use muster_ports::publisher::conformance::{Subject, all, message};
use muster_ports::publisher::{PublishError, Publisher};
use muster_relay_sinks::FilePublisher;
use serde_json::Value;

struct Lines(PathBuf);

impl Subject for Lines {
    fn publisher(&self) -> Arc<dyn Publisher> {
        Arc::new(FilePublisher::new(&self.0, u64::MAX, 1))
    }

    async fn arrived(&self, _least: usize) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let id = |line: &str| serde_json::from_str::<Value>(line).expect("a line is JSON")["id"].clone();
        text.lines().map(|line| id(line).as_str().unwrap_or_default().to_owned()).collect()
    }
}

async fn send(publisher: &FilePublisher, ids: &[&str]) -> Result<(), PublishError> {
    let mut session = publisher.open().await?;
    for id in ids {
        session.send(&[(0, message(id, "a"))]).await?;
        session.verdicts().await?;
    }
    Ok(())
}

#[tokio::test]
async fn it_does_what_every_publisher_must() {
    let dir = tempfile::tempdir().unwrap();
    all(&Lines(dir.path().join("new/messages.jsonl"))).await;
}

#[tokio::test]
async fn a_large_file_is_put_aside_and_the_oldest_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.jsonl");
    send(&FilePublisher::new(&path, 1, 2), &["a", "b", "c", "d"]).await.unwrap();
    let ids = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    assert!(ids("m.jsonl").contains("\"d\"") && ids("m.jsonl.1").contains("\"c\""));
    assert!(ids("m.jsonl.2").contains("\"b\"") && !dir.path().join("m.jsonl.3").exists());
}

#[tokio::test]
async fn a_line_that_a_crash_cut_off_does_not_spoil_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.jsonl");
    fs::write(&path, "{\"id\":\"a").unwrap();
    send(&FilePublisher::new(&path, u64::MAX, 1), &["a"]).await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().nth(1).is_some_and(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let error = send(&FilePublisher::new(dir.path(), 1, 1), &["a"]).await.unwrap_err();
    assert_eq!(error.reason, "CannotWrite");
    assert!(error.message.contains(&dir.path().display().to_string()), "{error}");
    let full = send(&FilePublisher::new("/dev/full", u64::MAX, 1), &["a"]).await.unwrap_err();
    assert!(["DiskFull", "CannotWrite"].contains(&full.reason), "{full}");
}
