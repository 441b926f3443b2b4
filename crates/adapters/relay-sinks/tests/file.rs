//! A file as a sink: what is confirmed is in it, also after a crash and when it is put aside, and nothing outside of its directory
//! is touched.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in what tests share")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_egress::EgressPolicy;
use muster_ports::publisher::conformance::{Subject, all, message};
use muster_ports::publisher::{PublishError, Publisher, Sinks as _};
use muster_relay_sinks::{FilePublisher, SinkMaker};
use muster_types::EventSink;
use muster_types::event_sink::{EventSinkSpec, FileSink};
use serde_json::Value;

const FILE: &str = "new/messages.jsonl";

struct Lines(PathBuf);

impl Subject for Lines {
    fn publisher(&self) -> Arc<dyn Publisher> {
        Arc::new(FilePublisher::new(&self.0, FILE, u64::MAX, 1))
    }

    async fn arrived(&self, _least: usize) -> Vec<String> {
        let text = fs::read_to_string(self.0.join(FILE)).unwrap_or_default();
        let id = |line: &str| serde_json::from_str::<Value>(line).expect("a line is JSON")["id"].clone();
        text.lines().map(|line| id(line).as_str().unwrap_or_default().to_owned()).collect()
    }
}

async fn send(publisher: &dyn Publisher, ids: &[&str]) -> Result<(), PublishError> {
    let mut session = publisher.open().await?;
    for id in ids {
        session.send(&[(0, message(id, "a"))]).await?;
        session.verdicts().await?;
    }
    Ok(())
}

/// A data directory with a store and a directory of sinks in it.
fn data() -> (tempfile::TempDir, PathBuf) {
    let data = tempfile::tempdir().unwrap();
    let sinks = data.path().join("sinks");
    fs::create_dir(&sinks).unwrap();
    fs::write(data.path().join("muster.db"), "precious").unwrap();
    (data, sinks)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
fn assert_untouched(data: &Path) {
    assert_eq!(names(data), ["muster.db", "sinks"]);
    assert_eq!(fs::read_to_string(data.join("muster.db")).unwrap(), "precious");
}

#[tokio::test]
async fn it_does_what_every_publisher_must() {
    let dir = tempfile::tempdir().unwrap();
    all(&Lines(dir.path().join("sinks"))).await;
}

#[tokio::test]
async fn a_stored_sink_whose_path_leaves_the_directory_writes_nothing_and_says_what_is_allowed() {
    let (data, sinks) = data();
    let maker = SinkMaker::new(&sinks, |_| None, EgressPolicy::default());
    let absolute = data.path().join("muster.db").display().to_string();
    for path in ["../muster.db", "a/../../muster.db", "./../muster.db", &absolute, "", "..", "a/"] {
        let file = FileSink { path: path.to_owned(), max_bytes: Some(5), keep: Some(0) };
        let spec = EventSinkSpec { file: Some(file), ..EventSinkSpec::default() };
        let publisher = maker.publisher(&EventSink::new("default", "s", spec)).unwrap();
        let error = send(&*publisher, &["a", "b"]).await.unwrap_err();
        assert_eq!(error.reason, "PathNotAllowed", "{path}: {error}");
        assert!(error.message.contains("name a file below the directory sinks"), "{error}");
        assert_untouched(data.path());
    }
    assert!(names(&sinks).is_empty());
}

#[tokio::test]
async fn links_are_not_followed_wherever_they_stand() {
    let (data, sinks) = data();
    symlink("../muster.db", sinks.join("link.jsonl")).unwrap();
    symlink(data.path().join("new.db"), sinks.join("dangling.jsonl")).unwrap();
    symlink("..", sinks.join("up")).unwrap();
    symlink("link.jsonl", sinks.join("twice.jsonl")).unwrap();
    for path in ["link.jsonl", "dangling.jsonl", "up/muster.db", "up/sinks/new.jsonl", "twice.jsonl"] {
        let error = send(&FilePublisher::new(&sinks, path, 1, 0), &["a", "b"]).await.unwrap_err();
        assert_eq!(error.reason, "PathNotAllowed", "{path}: {error}");
        assert!(
            error.message.contains("symbolic link") && error.message.contains("remove the link"),
            "{error}"
        );
        assert_untouched(data.path());
    }
}

#[tokio::test]
async fn a_link_that_is_placed_while_a_file_is_put_aside_is_renamed_and_removed_itself() {
    let (data, sinks) = data();
    // Where the next file is put aside there is a link, and a directory of the path becomes one meanwhile.
    symlink("../muster.db", sinks.join("m.jsonl.1")).unwrap();
    send(&FilePublisher::new(&sinks, "m.jsonl", 1, 2), &["a", "b"]).await.unwrap();
    assert!(fs::symlink_metadata(sinks.join("m.jsonl.2")).unwrap().is_symlink());
    assert!(fs::read_to_string(sinks.join("m.jsonl.1")).unwrap().contains("\"a\""));
    assert_untouched(data.path());

    let publisher = FilePublisher::new(&sinks, "deep/muster.db", 1, 0);
    let mut session = publisher.open().await.unwrap();
    session.send(&[(0, message("a", "a"))]).await.unwrap();
    fs::rename(sinks.join("deep"), sinks.join("moved")).unwrap();
    symlink("..", sinks.join("deep")).unwrap();
    session.send(&[(1, message("b", "a"))]).await.unwrap();
    assert!(fs::read_to_string(sinks.join("moved/muster.db")).unwrap().contains("\"b\""));
    assert_untouched(data.path());
}

#[tokio::test]
async fn what_is_no_regular_file_is_not_opened_for_ever() {
    let (_data, sinks) = data();
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        sinks.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    );
    made.unwrap();
    let error = send(&FilePublisher::new(&sinks, "pipe", 1, 1), &["a"]).await.unwrap_err();
    assert!(error.reason == "CannotWrite" && error.message.contains("no regular file"), "{error}");
}

#[tokio::test]
async fn a_large_file_is_put_aside_and_the_oldest_goes() {
    let dir = tempfile::tempdir().unwrap();
    send(&FilePublisher::new(dir.path(), "m.jsonl", 1, 2), &["a", "b", "c", "d"]).await.unwrap();
    let ids = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    assert!(ids("m.jsonl").contains("\"d\"") && ids("m.jsonl.1").contains("\"c\""));
    assert!(ids("m.jsonl.2").contains("\"b\"") && !dir.path().join("m.jsonl.3").exists());
}

#[tokio::test]
async fn a_line_that_a_crash_cut_off_does_not_spoil_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.jsonl");
    fs::write(&path, "{\"id\":\"a").unwrap();
    send(&FilePublisher::new(dir.path(), "m.jsonl", u64::MAX, 1), &["a"]).await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().nth(1).is_some_and(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("taken"), "").unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    for path in ["taken/m.jsonl", "folder"] {
        let error = send(&FilePublisher::new(dir.path(), path, 1, 1), &["a"]).await.unwrap_err();
        assert_eq!(error.reason, "CannotWrite");
        assert!(error.message.contains(&dir.path().join(path).display().to_string()), "{error}");
    }
}
