//! A disk that is full, played by a limit on the pages of the database.

use muster_ports::clock::ManualClock;
use muster_ports::store::{
    Batch, CommitError, Draft, History, Key, LogError, Precondition, ResourceName, Revision, Store, Write,
};
use tempfile::TempDir;

use super::*;

/// A log whose connection gets limits as soon as it may write.
struct Limited<F> {
    log: SqliteLog,
    limit: F,
}

impl<F: Fn(&Connection) + Send + 'static> Log for Limited<F> {
    fn header(&mut self) -> Result<Header, LogError> {
        self.log.header()
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.log.load(sink)?;
        (self.limit)(&self.log.connection);
        Ok(())
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        self.log.append(changes, forget)
    }
}

fn open_limited(directory: &TempDir, limit: impl Fn(&Connection) + Send + 'static) -> Store {
    let log = SqliteLog::open(&directory.path().join("muster.db")).unwrap();
    Store::open_inline(Limited { log, limit }, History::default(), ManualClock::default()).unwrap()
}

fn open(directory: &TempDir, pages: i64) -> Store {
    open_limited(directory, move |connection| {
        connection.pragma_update(None, "max_page_count", pages).unwrap();
    })
}

fn key(number: usize) -> Key {
    Key::new(&ResourceName::new("tasks.example.dev"), "default", &number.to_string())
}

/// Objects of ten kilobytes.
fn create(numbers: std::ops::Range<usize>) -> Batch {
    let draft = Draft::joined("{\"v\":\"", &format!("\",\"x\":\"{}\"}}", "x".repeat(10_000)));
    let put = |number| Write::Put { key: key(number), expect: Precondition::Absent, draft: draft.clone() };
    Batch { checks: Vec::new(), writes: numbers.map(put).collect() }
}

#[tokio::test]
async fn a_full_disk_refuses_a_change_whole_and_takes_it_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory, 20);
    store.commit(create(0..4)).await.unwrap();
    let CommitError::Refused(error) = store.commit(create(4..40)).await.unwrap_err() else { unreachable!() };
    let file = directory.path().canonicalize().unwrap().join("muster.db");
    let expected = format!(
        "no space left: {}: database or disk is full; nothing was changed, make room and try again",
        file.display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(store.revision(), Revision(4));
    // What fits is still taken, with the next revision.
    assert_eq!(store.commit(create(4..5)).await.unwrap().revision, Revision(5));
    assert!(matches!(store.commit(create(5..40)).await.unwrap_err(), CommitError::Refused(_)));
    drop(store);
    let store = open(&directory, 1_000_000);
    assert_eq!((store.revision(), store.snapshot(&key(0).resource).len()), (Revision(5), 5));
    assert_eq!(store.commit(create(5..40)).await.unwrap().revision, Revision(40));
    drop(store);
    assert_eq!(open(&directory, 1_000_000).snapshot(&key(0).resource).len(), 40);
}

#[tokio::test]
async fn an_object_that_no_database_takes_is_refused_and_harms_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_limited(&directory, |connection| {
        connection.set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH, 5_000).unwrap();
    });
    let small = Write::Put { key: key(1), expect: Precondition::Absent, draft: Draft::joined("", "") };
    let error = store.commit(create(0..1)).await.unwrap_err();
    assert!(
        error.to_string().ends_with("an object of the change is larger than a database can take"),
        "{error}"
    );
    assert_eq!(store.commit(Batch::of(small)).await.unwrap().revision, Revision(1));
}

#[test]
fn only_a_change_that_was_rolled_back_is_a_refusal() {
    let words = Words::new(Path::new("/data/muster.db"));
    let failure = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
    let full = failure(rusqlite::ffi::SQLITE_FULL);
    assert!(matches!(words.writing(&full, true), LogError::Full(_)));
    assert!(matches!(words.writing(&full, false), LogError::Io(_)));
    assert!(matches!(words.writing(&failure(rusqlite::ffi::SQLITE_IOERR_FSYNC), true), LogError::Io(_)));
    assert!(matches!(words.writing(&failure(rusqlite::ffi::SQLITE_CORRUPT), true), LogError::Corrupt(_)));
}
