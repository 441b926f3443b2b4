//! Damage is noticed: a database opens with exactly what was written, or it is refused.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use muster_ports::clock::ManualClock;
use muster_ports::store::{Batch, History, LogError, Precondition, Store};
use muster_store_sql::SqliteLog;
use support::{Contents, Directory, Numbers, create_many, delete, put, read};

/// A closed database with objects, old versions, deletions, free pages and pages that are partly used.
async fn make(database: &Path) -> Contents {
    let history = History { max_changes: 40, ..History::default() };
    let store = Store::open(SqliteLog::open(database).unwrap(), history, ManualClock::default()).unwrap();
    store.commit(create_many("object", 150)).await.unwrap();
    for number in (0..150).step_by(3) {
        store.commit(Batch::of(put(&format!("object-{number}"), Precondition::Exists))).await.unwrap();
    }
    for number in (30..130).step_by(2) {
        store.commit(Batch::of(delete(&format!("object-{number}")))).await.unwrap();
    }
    // Its overflow pages are another kind of page.
    let large = Batch { checks: Vec::new(), writes: vec![put(&"long-".repeat(4_000), Precondition::Absent)] };
    store.commit(large).await.unwrap();
    for _ in 0..4 {
        store.commit(Batch::default()).await.unwrap();
    }
    store.close();
    read(database).unwrap()
}

/// What became of a damaged copy.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Harmless,
    Refused,
}

/// Opens a damaged copy and checks that it is refused, untouched, or has what the original had.
fn open_damaged(bytes: &[u8], original: &Contents, what: &str) -> Outcome {
    let directory = Directory::new();
    fs::write(directory.database(), bytes).unwrap();
    match read(&directory.database()) {
        Ok(contents) => {
            assert!(contents == *original, "{what}: opened with other contents");
            Outcome::Harmless
        }
        Err(LogError::Corrupt(words)) => {
            assert!(
                words.contains("is damaged: ") && words.contains("nothing was changed"),
                "{what}: {words}"
            );
            assert!(fs::read(directory.database()).unwrap() == bytes, "{what}: changed");
            Outcome::Refused
        }
        // A few bytes at the start say which version wrote the file.
        Err(LogError::TooNew(_)) if what.starts_with("byte 6") => Outcome::Refused,
        Err(error) => {
            assert!(matches!(error, LogError::Corrupt(_)), "{what}: {error:?}");
            Outcome::Refused
        }
    }
}

#[tokio::test]
async fn a_flipped_byte_is_harmless_or_refused() {
    let directory = Directory::new();
    let original = make(&directory.database()).await;
    let bytes = fs::read(directory.database()).unwrap();
    let mut numbers = Numbers(1);
    // Everywhere, and more often where the file describes itself.
    let places: Vec<_> = (0..300).map(|_| numbers.below(bytes.len())).chain(0..120).collect();
    let mut outcomes = Vec::new();
    for place in places {
        let mut damaged = bytes.clone();
        damaged[place] ^= u8::try_from(1 + numbers.below(255)).unwrap();
        outcomes.push(open_damaged(&damaged, &original, &format!("byte {place}")));
    }
    let refused = outcomes.iter().filter(|outcome| **outcome == Outcome::Refused).count();
    assert!(refused > 150, "only {refused} of {}", outcomes.len());
    assert!(refused < outcomes.len(), "there is unused space too");
}

/// By somebody who knows SQL, which leaves no trace in the file's structure.
#[tokio::test]
async fn rows_that_are_altered_missing_or_added_are_refused() {
    let directory = Directory::new();
    make(&directory.database()).await;
    let bytes = fs::read(directory.database()).unwrap();
    let cases = [
        (
            "UPDATE log SET json = CAST(replace(json, 'x', 'y') AS BLOB) WHERE revision = 2",
            "the row of revision 2 ",
        ),
        (
            "UPDATE log SET path = 'default/other' WHERE revision = 2",
            "the row of revision 2 (default/other) ",
        ),
        ("UPDATE log SET at = at + 1 WHERE revision = 2", "the row of revision 2 "),
        ("UPDATE log SET revision = 100000 WHERE revision = 2", "the row of revision 100000 "),
        ("DELETE FROM log WHERE revision = 2", "rows"),
        (
            "INSERT INTO log SELECT 1, at, resource, path, splice, crc, json FROM log LIMIT 1",
            "the row of revision 1 ",
        ),
        ("UPDATE header SET revision = revision - 1", "the header "),
        ("UPDATE header SET compacted = 0", "the header "),
        ("DELETE FROM header", "no rows"),
        ("DROP TABLE header", "no such table"),
        ("ALTER TABLE log RENAME COLUMN at TO since", "no such column"),
    ];
    for (sql, expected) in cases {
        fs::write(directory.database(), &bytes).unwrap();
        rusqlite::Connection::open(directory.database()).unwrap().execute_batch(sql).unwrap();
        let LogError::Corrupt(words) = read(&directory.database()).unwrap_err() else {
            unreachable!("{sql}")
        };
        assert!(words.contains(expected), "{sql}: {words}");
    }
}

#[tokio::test]
async fn a_page_that_was_not_written_is_refused() {
    let directory = Directory::new();
    let original = make(&directory.database()).await;
    let bytes = fs::read(directory.database()).unwrap();
    let page = 4096;
    let mut numbers = Numbers(2);
    let mut refused = 0;
    for _ in 0..40 {
        let (place, other) =
            (numbers.below(bytes.len() / page) * page, numbers.below(bytes.len() / page) * page);
        let mut damaged = bytes.clone();
        // As a disk does that forgets a write: zeros, or another page in its place.
        if numbers.below(2) == 0 {
            damaged[place..place + page].fill(0);
        } else {
            damaged.copy_within(other..other + page, place);
        }
        if damaged != bytes
            && open_damaged(&damaged, &original, &format!("page at {place}")) == Outcome::Refused
        {
            refused += 1;
        }
    }
    assert!(refused > 20, "only {refused}");
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let directory = Directory::new();
    let original = make(&directory.database()).await;
    let bytes = fs::read(directory.database()).unwrap();
    let mut numbers = Numbers(3);
    let lengths = (0..60).map(|_| numbers.below(bytes.len())).chain([
        0,
        1,
        16,
        99,
        100,
        512,
        8191,
        8192,
        bytes.len() - 1,
    ]);
    for length in lengths {
        assert_eq!(open_damaged(&bytes[..length], &original, &format!("length {length}")), Outcome::Refused);
    }
}

#[tokio::test]
async fn writing_to_a_damaged_file_is_noticed_at_the_next_start() {
    let directory = Directory::new();
    make(&directory.database()).await;
    let bytes = fs::read(directory.database()).unwrap();
    let mut numbers = Numbers(4);
    // The part of the first page that says which pages are free, which is read only when one is needed.
    let places: Vec<_> = (28..48).chain((0..60).map(|_| numbers.below(bytes.len()))).collect();
    for place in places {
        let directory = Directory::new();
        let mut damaged = bytes.clone();
        damaged[place] ^= u8::try_from(1 + numbers.below(255)).unwrap();
        fs::write(directory.database(), &damaged).unwrap();
        let Ok(store) = support::open(&directory.database()) else { continue };
        if store.commit(create_many("later", 60)).await.is_err() {
            continue;
        }
        let count = |store: &Store| store.counts().iter().map(|(_, count)| count).sum::<usize>();
        let expected = count(&store);
        drop(store);
        match support::open(&directory.database()) {
            Ok(store) => assert_eq!(count(&store), expected, "byte {place}"),
            Err(error) => assert!(matches!(error, LogError::Corrupt(_)), "byte {place}: {error:?}"),
        }
    }
}
