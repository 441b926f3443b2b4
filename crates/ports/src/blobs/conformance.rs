//! What every place that keeps files must do: one suite for the fake and for each adapter.
//!
//! A guarantee is a function; [`blobs_conformance!`](crate::blobs_conformance) makes a test of each. Its argument makes a
//! new, empty place and whatever must live as long as it does, for example its directory.

#![allow(clippy::unwrap_used, reason = "a suite of tests, which fails by panicking")]

use std::io::Write as _;

use super::{BlobEntry, BlobError, BlobKey, Blobs};

/// Makes a test of each guarantee. The argument is evaluated for each test and gives `(blobs, kept)`.
#[macro_export]
macro_rules! blobs_conformance {
    ($subject:expr) => {
        $crate::blobs_conformance! { $subject =>
            what_was_written_is_read_back_in_parts
            nothing_is_seen_before_it_is_finished
            a_dropped_writer_leaves_what_was_there
            writing_again_replaces
            what_is_not_there_is_not_found
            files_are_listed_by_path_below_a_key
            a_name_is_never_a_file_and_a_directory
            a_directory_is_gone_with_its_last_file
            deleting_takes_everything_below_and_nothing_beside
            deleting_what_is_not_there_does_nothing
            a_taken_file_is_gone_from_its_old_place
            a_file_that_is_not_there_cannot_be_taken
            tasks_with_files_are_named
        }
    };
    ($subject:expr => $($guarantee:ident)*) => {
        $(
            #[test]
            fn $guarantee() {
                let (blobs, _kept) = $subject;
                $crate::blobs::conformance::$guarantee(&blobs);
            }
        )*
    };
}

fn key(text: &str) -> BlobKey {
    BlobKey::new(text).unwrap()
}

fn put(blobs: &impl Blobs, path: &str, bytes: &[u8]) {
    let mut writer = blobs.write(&key(path)).unwrap();
    writer.write_all(bytes).unwrap();
    assert_eq!(writer.finish().unwrap(), bytes.len() as u64);
}

fn whole(blobs: &impl Blobs, path: &str) -> Vec<u8> {
    blobs.read(&key(path), 0, 1 << 20).unwrap()
}

fn listed(blobs: &impl Blobs, path: &str) -> Vec<(String, u64)> {
    let entries = blobs.list(&key(path)).unwrap();
    entries.into_iter().map(|BlobEntry { path, size }| (path, size)).collect()
}

fn is_missing<T>(outcome: &Result<T, BlobError>) -> bool {
    matches!(outcome, Err(BlobError::NotFound(_)))
}

/// Reading is by offset and stops at the end.
pub fn what_was_written_is_read_back_in_parts(blobs: &impl Blobs) {
    put(blobs, "tasks/u/a", b"0123456789");
    assert_eq!(blobs.size(&key("tasks/u/a")).unwrap(), 10);
    assert_eq!(blobs.read(&key("tasks/u/a"), 3, 4).unwrap(), b"3456");
    assert_eq!(blobs.read(&key("tasks/u/a"), 8, 100).unwrap(), b"89");
    assert_eq!(blobs.read(&key("tasks/u/a"), 10, 100).unwrap(), b"");
    assert_eq!(blobs.read(&key("tasks/u/a"), u64::MAX, 100).unwrap(), b"");
    put(blobs, "tasks/u/empty", b"");
    assert_eq!(whole(blobs, "tasks/u/empty"), b"");
}

/// A file half written is no file.
pub fn nothing_is_seen_before_it_is_finished(blobs: &impl Blobs) {
    let mut writer = blobs.write(&key("tasks/u/a")).unwrap();
    writer.write_all(b"new").unwrap();
    assert!(is_missing(&blobs.size(&key("tasks/u/a"))));
    assert_eq!(listed(blobs, "tasks"), []);
    writer.finish().unwrap();
    assert_eq!(whole(blobs, "tasks/u/a"), b"new");
}

/// Giving up changes nothing.
pub fn a_dropped_writer_leaves_what_was_there(blobs: &impl Blobs) {
    put(blobs, "tasks/u/a", b"old");
    let mut writer = blobs.write(&key("tasks/u/a")).unwrap();
    writer.write_all(b"new").unwrap();
    drop(writer);
    assert_eq!(whole(blobs, "tasks/u/a"), b"old");
    assert_eq!(listed(blobs, "tasks"), [("u/a".to_owned(), 3)]);
}

/// The last writer wins.
pub fn writing_again_replaces(blobs: &impl Blobs) {
    put(blobs, "tasks/u/a", b"long old text");
    put(blobs, "tasks/u/a", b"new");
    assert_eq!(whole(blobs, "tasks/u/a"), b"new");
}

/// Missing files, and directories asked for as files.
pub fn what_is_not_there_is_not_found(blobs: &impl Blobs) {
    put(blobs, "tasks/u/a", b"x");
    for path in ["tasks/u/b", "tasks/v/a", "tasks/u", "tasks/u/a/b"] {
        assert!(is_missing(&blobs.read(&key(path), 0, 1)), "{path}");
        assert!(is_missing(&blobs.size(&key(path))), "{path}");
    }
}

/// All depths, in order, with sizes; a file has nothing below it.
pub fn files_are_listed_by_path_below_a_key(blobs: &impl Blobs) {
    for path in ["tasks/u/b/c", "tasks/u/b-c", "tasks/u/a", "tasks/u/b/a/d", "tasks/v/x"] {
        put(blobs, path, path.as_bytes());
    }
    let paths: Vec<_> = listed(blobs, "tasks/u").into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["a", "b-c", "b/a/d", "b/c"]);
    assert_eq!(listed(blobs, "tasks/u/b"), [("a/d".to_owned(), 13), ("c".to_owned(), 11)]);
    assert_eq!(listed(blobs, "tasks/u/a"), []);
    assert_eq!(listed(blobs, "tasks/nobody"), []);
}

/// Neither below a file nor in place of a directory.
pub fn a_name_is_never_a_file_and_a_directory(blobs: &impl Blobs) {
    put(blobs, "tasks/u/a", b"x");
    let below = blobs.write(&key("tasks/u/a/b/c")).and_then(super::BlobWriter::finish);
    assert!(matches!(below, Err(BlobError::Clash(at)) if at == key("tasks/u/a")));
    put(blobs, "tasks/u/d/e", b"x");
    let over = blobs.write(&key("tasks/u/d")).and_then(super::BlobWriter::finish);
    assert!(matches!(over, Err(BlobError::Clash(at)) if at == key("tasks/u/d")));
    assert_eq!(listed(blobs, "tasks/u"), [("a".to_owned(), 1), ("d/e".to_owned(), 1)]);
}

/// Its name is free again.
pub fn a_directory_is_gone_with_its_last_file(blobs: &impl Blobs) {
    put(blobs, "tasks/u/d/e/f", b"x");
    blobs.delete(&key("tasks/u/d/e/f")).unwrap();
    put(blobs, "tasks/u/d", b"now a file");
    assert_eq!(whole(blobs, "tasks/u/d"), b"now a file");
}

/// Also not what only begins alike.
pub fn deleting_takes_everything_below_and_nothing_beside(blobs: &impl Blobs) {
    for path in ["tasks/u/a/b", "tasks/u/a/c/d", "tasks/u/ab", "tasks/v/a"] {
        put(blobs, path, b"x");
    }
    blobs.delete(&key("tasks/u/a")).unwrap();
    assert_eq!(listed(blobs, "tasks"), [("u/ab".to_owned(), 1), ("v/a".to_owned(), 1)]);
}

/// So it can be done again after a crash.
pub fn deleting_what_is_not_there_does_nothing(blobs: &impl Blobs) {
    put(blobs, "tasks/u/a", b"x");
    for path in ["tasks/v", "tasks/u/b", "tasks/u/a/b", "other"] {
        blobs.delete(&key(path)).unwrap();
    }
    assert_eq!(listed(blobs, "tasks"), [("u/a".to_owned(), 1)]);
}

/// Taken once, also over what was there.
pub fn a_taken_file_is_gone_from_its_old_place(blobs: &impl Blobs) {
    let outside = outside("taken");
    put(blobs, "tasks/u/a", b"old");
    std::fs::write(&outside, b"taken").unwrap();
    blobs.take(&key("tasks/u/a"), &outside).unwrap();
    assert_eq!(whole(blobs, "tasks/u/a"), b"taken");
    assert!(!outside.exists());
}

/// And leaves what is there.
pub fn a_file_that_is_not_there_cannot_be_taken(blobs: &impl Blobs) {
    put(blobs, "tasks/u/a", b"old");
    assert!(blobs.take(&key("tasks/u/a"), &outside("absent")).is_err());
    assert_eq!(whole(blobs, "tasks/u/a"), b"old");
}

/// Each once.
pub fn tasks_with_files_are_named(blobs: &impl Blobs) {
    assert_eq!(blobs.tasks().unwrap(), [""; 0]);
    for path in ["tasks/v/a", "tasks/u/a", "tasks/u/b/c", "other/w/a"] {
        put(blobs, path, b"x");
    }
    assert_eq!(blobs.tasks().unwrap(), ["u", "v"]);
    blobs.delete(&BlobKey::of_task("u").unwrap()).unwrap();
    assert_eq!(blobs.tasks().unwrap(), ["v"]);
}

/// A path that no other test of this machine uses.
fn outside(word: &str) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static USED: AtomicU32 = AtomicU32::new(0);
    let number = USED.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("muster-blobs-{word}-{}-{number}", std::process::id()))
}
