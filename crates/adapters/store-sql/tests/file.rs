//! The database file: who may have it, what is refused, and in which words.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use muster_ports::store::LogError;
use rusqlite::Connection;
use support::{Directory, create, open, read};

#[tokio::test]
async fn database_lock_and_write_ahead_log_are_for_the_owner_only() {
    let directory = Directory::new();
    let store = open(&directory.database()).unwrap();
    store.commit(create("a")).await.unwrap();
    let mode = |suffix: &str| {
        let path = directory.beside(suffix);
        fs::metadata(&path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(["", "-wal", "-shm", ".lock"].map(mode), [0o600; 4]);
    drop(store);
    fs::set_permissions(directory.database(), fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&directory.database()).unwrap());
    assert_eq!(mode(""), 0o600, "a file that was restored with other permissions gets the right ones");
}

#[tokio::test]
async fn directories_on_the_way_are_made() {
    let directory = Directory::new();
    let database = directory.path().join("some/where/muster.db");
    open(&database).unwrap().commit(create("a")).await.unwrap();
    assert_eq!(fs::metadata(directory.path().join("some")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(read(&database).unwrap().rows.len(), 1);
}

#[test]
fn a_second_server_is_told_which_directory_is_in_use_and_what_to_do() {
    let directory = Directory::new();
    let first = open(&directory.database()).unwrap();
    let LogError::InUse(words) = open(&directory.database()).unwrap_err() else { unreachable!() };
    let expected = format!(
        "the directory {} is in use by another server (process {}); stop that one, or choose another directory with \
         --data",
        directory.path().display(),
        std::process::id()
    );
    assert_eq!(words, expected);
    drop(first);
    open(&directory.database()).unwrap();
}

#[test]
fn a_database_that_another_program_has_open_is_in_use() {
    let directory = Directory::new();
    drop(open(&directory.database()).unwrap());
    let shell = Connection::open(directory.database()).unwrap();
    shell.execute_batch("BEGIN; SELECT count(*) FROM log;").unwrap();
    let LogError::InUse(words) = open(&directory.database()).unwrap_err() else { unreachable!() };
    assert!(
        words
            .ends_with("is open in another program; close that one, or choose another directory with --data")
    );
    drop(shell);
    open(&directory.database()).unwrap();
}

#[tokio::test]
async fn another_program_may_read_while_the_store_is_open() {
    let directory = Directory::new();
    let store = open(&directory.database()).unwrap();
    store.commit(create("a")).await.unwrap();
    let shell = Connection::open(directory.database()).unwrap();
    let count = || shell.query_row("SELECT count(*) FROM log", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(), 1);
    store.commit(create("b")).await.unwrap();
    assert_eq!(count(), 2);
}

#[tokio::test]
async fn the_write_ahead_log_is_bounded_and_gone_after_a_clean_end() {
    let directory = Directory::new();
    let store = open(&directory.database()).unwrap();
    let wal = || fs::metadata(directory.beside("-wal")).map_or(0, |metadata| metadata.len());
    let mut largest = 0;
    for number in 0..200 {
        store.commit(support::create_many(&format!("batch-{number}"), 200)).await.unwrap();
        largest = largest.max(wal());
    }
    assert!(largest < 24 << 20, "{largest} bytes");
    store.close();
    assert_eq!(wal(), 0);
    assert!(fs::metadata(directory.database()).unwrap().len() > 36 << 20);
}

/// Words of the refusal; the file was not touched.
fn corrupt(directory: &Directory) -> String {
    let before = fs::read(directory.database()).ok();
    let words = match open(&directory.database()) {
        Err(LogError::Corrupt(words)) => words,
        other => format!("not refused as corrupt: {other:?}"),
    };
    assert_eq!(fs::read(directory.database()).ok(), before);
    words
}

#[tokio::test]
async fn an_empty_file_is_not_taken_for_a_new_one() {
    let directory = Directory::new();
    fs::write(directory.database(), "").unwrap();
    let file = directory.database();
    let file = file.display();
    let expected = format!(
        "the database {file} is damaged: it is empty; nothing was changed. Restore it from a backup, or save what can \
         be read with: sqlite3 {file} .recover > recovered.sql"
    );
    assert_eq!(corrupt(&directory), expected);
}

#[test]
fn garbage_is_refused() {
    let directory = Directory::new();
    for garbage in
        [&b"x"[..], &[0; 8192], &[0x55; 10_000], b"SQLite format 3\0", b"SQLite format 3\0 and more"]
    {
        fs::write(directory.database(), garbage).unwrap();
        let words = corrupt(&directory);
        assert!(words.starts_with("the database "), "{words}");
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = Directory::new();
    let other = Connection::open(directory.database()).unwrap();
    other.execute_batch("CREATE TABLE log (revision INTEGER PRIMARY KEY); PRAGMA user_version = 1").unwrap();
    drop(other);
    assert!(corrupt(&directory).contains("it is not marked as a database of this program"));
}

#[tokio::test]
async fn a_missing_database_beside_its_write_ahead_log_is_refused() {
    let directory = Directory::new();
    let store = open(&directory.database()).unwrap();
    store.commit(create("a")).await.unwrap();
    fs::copy(directory.beside("-wal"), directory.path().join("saved")).unwrap();
    drop(store);
    fs::remove_file(directory.database()).unwrap();
    fs::rename(directory.path().join("saved"), directory.beside("-wal")).unwrap();
    assert!(corrupt(&directory).contains("it is missing, though its write-ahead log is there"));
}

#[tokio::test]
async fn what_a_crash_left_of_making_a_database_is_no_obstacle() {
    let directory = Directory::new();
    fs::write(directory.beside(".new"), "half of it").unwrap();
    fs::write(directory.beside(".new-journal"), "half of it").unwrap();
    open(&directory.database()).unwrap().commit(create("a")).await.unwrap();
    assert_eq!(read(&directory.database()).unwrap().rows.len(), 1);
    assert!(!directory.beside(".new").exists());
}

#[tokio::test]
async fn a_database_of_a_newer_server_is_refused_and_left_alone() {
    let directory = Directory::new();
    open(&directory.database()).unwrap().commit(create("a")).await.unwrap();
    set_version(&directory.database(), 7);
    let before = fs::read(directory.database()).unwrap();
    let LogError::TooNew(words) = open(&directory.database()).unwrap_err() else { unreachable!() };
    let file = directory.database();
    let expected = format!(
        "the database {} has schema version 7, and this server knows versions up to 1; nothing was changed. Start the \
         newer server again, or restore a backup from before the upgrade",
        file.display()
    );
    assert_eq!(words, expected);
    assert_eq!(fs::read(directory.database()).unwrap(), before);
    set_version(&directory.database(), 1);
    assert_eq!(read(&directory.database()).unwrap().rows.len(), 1);
}

fn set_version(database: &Path, version: i64) {
    Connection::open(database).unwrap().pragma_update(None, "user_version", version).unwrap();
}

/// What version 1 wrote, as it wrote it: every later version opens it.
const VERSION_1: &str = "
    PRAGMA application_id = 1297437524;
    PRAGMA user_version = 1;
    CREATE TABLE log (
        revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, resource TEXT NOT NULL, path TEXT NOT NULL,
        splice INTEGER NOT NULL, crc INTEGER NOT NULL, json BLOB
    ) STRICT;
    CREATE TABLE header (
        id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL, compacted INTEGER NOT NULL,
        rows INTEGER NOT NULL, digest INTEGER NOT NULL, seal INTEGER NOT NULL
    ) STRICT;
    INSERT INTO log VALUES (2, 1000, 'tasks.example.dev', 'default/a', 6, 1906007340, CAST('{\"v\":\"2\"}' AS BLOB));
    INSERT INTO log VALUES (3, 2000, 'tasks.example.dev', 'default/a', 6, 3872441264, NULL);
    INSERT INTO log VALUES (4, 3000, 'jobs.example.dev', '/b', 6, 1696665973, CAST('{\"v\":\"4\"}' AS BLOB));
    INSERT INTO header VALUES (0, 5, 1, 3, 7475114577, 1694658589);
";

#[test]
fn a_database_of_version_1_opens() {
    let directory = Directory::new();
    Connection::open(directory.database()).unwrap().execute_batch(VERSION_1).unwrap();
    let contents = read(&directory.database()).unwrap();
    assert_eq!((contents.header.revision.0, contents.header.compacted.0), (5, 1));
    let store = open(&directory.database()).unwrap();
    assert_eq!(store.revision().0, 5);
    let counts: Vec<_> =
        store.counts().into_iter().map(|(kind, count)| (kind.as_str().to_owned(), count)).collect();
    assert_eq!(counts, [("jobs.example.dev".to_owned(), 1), ("tasks.example.dev".to_owned(), 0)]);
}
