//! A copy of a log is that log.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use muster_ports::clock::ManualClock;
use muster_ports::store::{
    Batch, Change, Forget, Header, History, Log, LogError, MemoryLog, Revision, Row, Store,
};
use muster_store_sql::{SqliteLog, copy};
use support::{Directory, create, create_many, delete, read};

/// A log with rows of which some were forgotten, the newest among them.
async fn make(directory: &Directory) {
    let log = SqliteLog::open(&directory.database()).unwrap();
    let clock = ManualClock::default();
    let store = Store::open(log, History::default(), clock.clone()).unwrap();
    store.commit(create_many("kept", 3000)).await.unwrap();
    store.commit(create("gone")).await.unwrap();
    store.commit(Batch::of(delete("gone"))).await.unwrap();
    clock.advance(2 * 3_600_000);
    for _ in 0..32 {
        store.commit(Batch::default()).await.unwrap();
    }
    store.close();
}

#[tokio::test]
async fn a_copy_has_the_same_rows_and_gives_out_no_revision_twice() {
    let (one, two) = (Directory::new(), Directory::new());
    make(&one).await;
    let copied = {
        let mut from = SqliteLog::open(&one.database()).unwrap();
        let mut to = SqliteLog::open(&two.database()).unwrap();
        let mut told = Vec::new();
        let copied = copy(&mut from, &mut to, &mut |reached, of| told.push((reached.0, of.0))).unwrap();
        assert_eq!(told, [(1024, 3002), (2048, 3002), (3000, 3002)]);
        copied
    };
    assert_eq!((copied.revision, copied.found), (Revision(3002), 0));
    assert_eq!(read(&one.database()).unwrap(), read(&two.database()).unwrap());
    let store = support::open(&two.database()).unwrap();
    assert_eq!(store.commit(create("next")).await.unwrap().revision, Revision(3003));
}

/// A log that refuses after some appends.
struct Tired(MemoryLog, usize);

impl Log for Tired {
    fn header(&mut self) -> Result<Header, LogError> {
        self.0.header()
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.0.load(sink)
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        self.1 = self.1.checked_sub(1).ok_or_else(|| LogError::Full("tired".into()))?;
        self.0.append(changes, forget)
    }
}

#[tokio::test]
async fn a_copy_that_was_cut_goes_on_where_it_was() {
    let one = Directory::new();
    make(&one).await;
    let mut from = SqliteLog::open(&one.database()).unwrap();
    let target = MemoryLog::default();
    let error = copy(&mut from, &mut Tired(target.clone(), 2), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, LogError::Full(_)), "{error}");
    assert_eq!(target.rows(), 2048);
    let copied = copy(&mut from, &mut target.clone(), &mut |_, _| {}).unwrap();
    assert_eq!((copied.found, copied.rows), (2048, 3000));
    let again = copy(&mut from, &mut target.clone(), &mut |_, _| {}).unwrap();
    assert_eq!(again.found, 3000);
}

#[tokio::test]
async fn a_target_with_other_rows_is_noticed() {
    let one = Directory::new();
    make(&one).await;
    let target = MemoryLog::default();
    let store = Store::open(target.clone(), History::default(), ManualClock::default()).unwrap();
    store.commit(create("stranger")).await.unwrap();
    store.close();
    let mut from = SqliteLog::open(&one.database()).unwrap();
    let error = copy(&mut from, &mut target.clone(), &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("the copy is not what it was copied from"), "{error}");
}
