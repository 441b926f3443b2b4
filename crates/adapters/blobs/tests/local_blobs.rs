//! A directory passes the suite that every place for files passes, and follows no links.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;

use muster_blobs::LocalBlobs;
use muster_ports::blobs::{BlobError, BlobKey, Blobs as _};
use tempfile::TempDir;

muster_ports::blobs_conformance!(subject());

fn subject() -> (LocalBlobs, TempDir) {
    let directory = tempfile::tempdir().expect("a directory for the test");
    (LocalBlobs::open(directory.path()).expect("the directory can be opened"), directory)
}

fn key(text: &str) -> BlobKey {
    BlobKey::new(text).expect("a key")
}

fn put(blobs: &LocalBlobs, path: &str, bytes: &[u8]) {
    let mut writer = blobs.write(&key(path)).expect("a file can be written");
    writer.write_all(bytes).expect("bytes can be written");
    writer.finish().expect("the file can be kept");
}

#[test]
fn links_are_neither_read_nor_listed_nor_written_through() {
    let (blobs, directory) = subject();
    let outside = directory.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    put(&blobs, "tasks/u/a", b"x");
    let task = directory.path().join("files/tasks/u");
    symlink(&outside, task.join("link")).unwrap();
    symlink(directory.path(), task.join("way")).unwrap();
    for path in ["tasks/u/link", "tasks/u/way/secret"] {
        assert!(matches!(blobs.read(&key(path), 0, 10), Err(BlobError::NotFound(_))), "{path}");
    }
    assert_eq!(blobs.list(&key("tasks/u")).unwrap().len(), 1);
    let through = blobs.write(&key("tasks/u/way/new")).map(drop);
    assert!(matches!(through, Err(BlobError::Clash(at)) if at == key("tasks/u/way")));
    put(&blobs, "tasks/u/link", b"own");
    assert_eq!(fs::read(&outside).unwrap(), b"secret");
    assert_eq!(blobs.read(&key("tasks/u/link"), 0, 10).unwrap(), b"own");
}

#[test]
fn deleting_a_task_removes_links_and_not_what_they_point_at() {
    let (blobs, directory) = subject();
    let outside = directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    put(&blobs, "tasks/u/a", b"x");
    symlink(&outside, directory.path().join("files/tasks/u/way")).unwrap();
    blobs.delete(&BlobKey::of_task("u").unwrap()).unwrap();
    assert_eq!(blobs.tasks().unwrap(), [""; 0]);
    assert!(outside.join("kept").exists());
}

#[test]
fn a_link_cannot_be_taken() {
    let (blobs, directory) = subject();
    let outside = directory.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    let link = directory.path().join("link");
    symlink(&outside, &link).unwrap();
    let refused = blobs.take(&key("tasks/u/a"), &link).unwrap_err();
    assert!(refused.to_string().contains("plain file"), "{refused}");
    assert!(outside.exists() && link.is_symlink());
}

#[test]
fn what_a_crash_left_unfinished_is_removed_at_the_next_start() {
    let (blobs, directory) = subject();
    let mut writer = blobs.write(&key("tasks/u/a")).unwrap();
    writer.write_all(b"half").unwrap();
    std::mem::forget(writer);
    let unfinished = directory.path().join("unfinished");
    assert_eq!(fs::read_dir(&unfinished).unwrap().count(), 1);
    LocalBlobs::open(directory.path()).unwrap();
    assert_eq!(fs::read_dir(&unfinished).unwrap().count(), 0);
}

#[test]
fn a_dropped_writer_leaves_no_file_behind() {
    let (blobs, directory) = subject();
    drop(blobs.write(&key("tasks/u/a")).unwrap());
    assert_eq!(fs::read_dir(directory.path().join("unfinished")).unwrap().count(), 0);
}

#[test]
fn files_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (blobs, directory) = subject();
    put(&blobs, "tasks/u/a", b"x");
    let mode = fs::metadata(directory.path().join("files/tasks/u/a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn writers_and_deleters_of_one_directory_do_not_hinder_each_other() {
    let (blobs, _kept) = subject();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let blobs = &blobs;
            scope.spawn(move || {
                for round in 0..50 {
                    let path = format!("tasks/u/d/{worker}-{round}");
                    put(blobs, &path, b"x");
                    blobs.delete(&key(&path)).expect("a file can be deleted");
                }
            });
        }
    });
    assert_eq!(blobs.list(&key("tasks/u")).unwrap(), []);
}
