//! The store's writer: groups, refusals, failures, panics and its end. What does not depend on the log is shown here,
//! with a log that does as it is told.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use muster_ports::clock::ManualClock;
use muster_ports::store::{
    Batch, Change, CommitError, Draft, Forget, Header, History, Key, Log, LogError, MemoryLog, Precondition,
    ResourceName, Revision, Row, Store, WatchError, WatchScope, Write,
};
use tokio::task::JoinSet;

const DEADLINE: Duration = Duration::from_mins(1);

/// A log that takes a step for each append. Once nobody directs it, it goes on by itself.
struct DirectedLog {
    inner: MemoryLog,
    steps: Receiver<Step>,
    /// How many changes and how many forgotten rows each append had.
    appends: Sender<(usize, usize)>,
}

enum Step {
    Go,
    Panic,
}

/// The other end of a [`DirectedLog`]. `appends` ends when the log is closed.
struct Director {
    steps: Sender<Step>,
    appends: Receiver<(usize, usize)>,
}

impl Log for DirectedLog {
    fn header(&mut self) -> Result<Header, LogError> {
        self.inner.header()
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.inner.load(sink)
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        match self.steps.recv() {
            Ok(Step::Go) | Err(_) => {}
            Ok(Step::Panic) => panic!("as directed"),
        }
        self.appends.send((changes.len(), forget.revisions.len())).ok();
        self.inner.append(changes, forget)
    }
}

fn directed(inner: &MemoryLog) -> (DirectedLog, Director) {
    let (steps, take_steps) = mpsc::channel();
    let (tell_appends, appends) = mpsc::channel();
    (
        DirectedLog { inner: inner.clone(), steps: take_steps, appends: tell_appends },
        Director { steps, appends },
    )
}

impl Director {
    /// The appends of a log that was closed meanwhile, or will be.
    fn all_appends(self) -> Vec<(usize, usize)> {
        drop(self.steps);
        std::iter::from_fn(|| match self.appends.recv_timeout(DEADLINE) {
            Ok(append) => Some(append),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the log is never closed"),
        })
        .collect()
    }
}

fn open(log: impl Log) -> Store {
    Store::open(log, History::default(), ManualClock::default()).unwrap()
}

fn forgetful() -> History {
    History { max_changes: 0, ..History::default() }
}

fn key(name: &str) -> Key {
    Key::new(&ResourceName::new("tasks.example.dev"), "default", name)
}

fn put(name: &str, expect: Precondition) -> Write {
    Write::Put { key: key(name), expect, draft: Draft::joined("{\"v\":\"", "\"}") }
}

fn create(name: &str) -> Batch {
    Batch::of(put(name, Precondition::Absent))
}

/// Starts `count` commits; when this returns, all of them were submitted.
async fn submit(store: &Store, count: usize) -> JoinSet<Result<Revision, CommitError>> {
    let mut commits = JoinSet::new();
    for number in 0..count {
        let store = store.clone();
        commits.spawn(async move { Ok(store.commit(create(&number.to_string())).await?.revision) });
    }
    // On a runtime of one thread each of them runs until it waits.
    tokio::task::yield_now().await;
    commits
}

#[tokio::test]
async fn concurrent_commits_share_appends() {
    let (log, director) = directed(&MemoryLog::default());
    let store = open(log);
    let commits = submit(&store, 64).await;
    director.steps.send(Step::Go).unwrap();
    director.steps.send(Step::Go).unwrap();
    let mut revisions: Vec<_> = commits.join_all().await.into_iter().map(Result::unwrap).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=64).map(Revision).collect::<Vec<_>>());
    drop(store);
    let appends = director.all_appends();
    assert!(appends.len() <= 2, "{appends:?}");
    assert_eq!(appends.iter().map(|(changes, _)| changes).sum::<usize>(), 64);
}

#[tokio::test]
async fn batches_before_the_end_are_committed_and_later_ones_are_refused() {
    let (log, director) = directed(&MemoryLog::default());
    let store = open(log);
    let commits = submit(&store, 10).await;
    let closing = std::thread::spawn({
        let store = store.clone();
        move || store.close()
    });
    // No append happens yet, so only a refusal can be the answer.
    while !submit_nothing(&store).await.is_finished() {}
    drop(director);
    assert!(commits.join_all().await.into_iter().all(|outcome| outcome.is_ok()));
    closing.join().unwrap();
    assert!(matches!(store.commit(create("late")).await, Err(CommitError::Closed)));
}

async fn submit_nothing(store: &Store) -> tokio::task::JoinHandle<()> {
    let store = store.clone();
    let attempt = tokio::spawn(async move { drop(store.commit(Batch::default()).await) });
    tokio::task::yield_now().await;
    attempt
}

#[tokio::test]
async fn a_refused_append_changes_nothing_and_the_next_one_works() {
    let log = MemoryLog::default();
    let store = open(log.clone());
    store.commit(create("a")).await.unwrap();
    let mut watch = store.watch(WatchScope::All, Revision(1)).unwrap();
    log.fail_next(LogError::Full("as directed".into()));
    let error = store.commit(create("b")).await.unwrap_err();
    assert_eq!(error.to_string(), "the store could not take the change: no space left: as directed");
    assert_eq!((store.revision(), log.rows()), (Revision(1), 1));
    assert!(store.get(&key("b")).is_none());
    assert!(watch.poll_page(10).unwrap().is_empty());
    assert_eq!(store.commit(create("b")).await.unwrap().revision, Revision(2));
    assert_eq!(watch.next(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_failed_append_ends_all_writes_until_a_restart() {
    let log = MemoryLog::default();
    let store = open(log.clone());
    store.commit(create("a")).await.unwrap();
    log.fail_next(LogError::Io("as directed".into()));
    for name in ["b", "c"] {
        assert!(matches!(store.commit(create(name)).await.unwrap_err(), CommitError::Broken(_)));
    }
    assert_eq!(store.revision(), Revision(1));
    assert!(store.get(&key("a")).is_some());
    drop(store);
    let store = open(log);
    assert_eq!(store.commit(create("b")).await.unwrap().revision, Revision(2));
}

/// Rows to forget stay in order when the log is full meanwhile: a version goes before the deletion that hides it.
#[tokio::test]
async fn deleted_objects_stay_deleted_though_compaction_was_refused() {
    let names: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    let each = |write: fn(&str) -> Write| Batch {
        checks: Vec::new(),
        writes: names.iter().map(|name| write(name)).collect(),
    };
    for slices in 1..5 {
        let (log, clock) = (MemoryLog::default(), ManualClock::default());
        let store = Store::open_inline(log.clone(), History::default(), clock.clone()).unwrap();
        store.commit(each(|name| put(name, Precondition::Absent))).await.unwrap();
        store.commit(each(|name| put(name, Precondition::Exists))).await.unwrap();
        store
            .commit(each(|name| Write::Delete { key: key(name), expect: Precondition::Exists }))
            .await
            .unwrap();
        clock.advance(2 * 3_600_000);
        // All of the past is dropped at once, and its rows go in slices.
        store.commit(each(|name| put(&format!("later-{name}"), Precondition::Absent))).await.unwrap();
        log.fail_next(LogError::Full("as directed".into()));
        assert!(matches!(store.commit(Batch::default()).await.unwrap_err(), CommitError::Refused(_)));
        for _ in 0..slices {
            store.commit(Batch::default()).await.unwrap();
        }
        drop(store);
        let store = Store::open_inline(log, History::default(), clock).unwrap();
        let count: usize = store.counts().iter().map(|(_, count)| count).sum();
        assert_eq!(count, 200, "after {slices} slices");
    }
}

#[tokio::test]
async fn a_store_that_nobody_uses_forgets_by_itself() {
    let (log, director) = directed(&MemoryLog::default());
    for _ in 0..3 {
        director.steps.send(Step::Go).unwrap();
    }
    let store = Store::open(log, forgetful(), ManualClock::default()).unwrap();
    store.commit(create("a")).await.unwrap();
    store.commit(Batch::of(put("a", Precondition::Exists))).await.unwrap();
    let mut appends = std::iter::from_fn(|| director.appends.recv_timeout(DEADLINE).ok());
    assert_eq!(appends.find(|(changes, _)| *changes == 0), Some((0, 1)));
}

/// More of them than the queue has room for.
#[tokio::test]
async fn nobody_waits_for_a_writer_that_panicked() {
    let (log, director) = directed(&MemoryLog::default());
    director.steps.send(Step::Go).unwrap();
    let store = open(log);
    store.commit(create("there")).await.unwrap();
    let mut watch = store.watch(WatchScope::All, Revision(1)).unwrap();
    let watching = tokio::spawn(async move { watch.next(1).await.unwrap_err() });
    let commits = submit(&store, 5_000).await;
    director.steps.send(Step::Panic).unwrap();
    let outcomes = commits.join_all().await;
    assert!(outcomes.into_iter().all(|outcome| matches!(outcome, Err(CommitError::Closed))));
    assert_eq!(watching.await.unwrap(), WatchError::Closed);
    assert!(store.get(&key("there")).is_some());
    assert!(matches!(store.commit(create("later")).await, Err(CommitError::Closed)));
    drop(store);
    assert_eq!(director.all_appends(), [(1, 0)]);
}

#[tokio::test]
async fn a_writer_that_panicked_inline_is_not_used_again() {
    let (log, director) = directed(&MemoryLog::default());
    director.steps.send(Step::Panic).unwrap();
    let store = Store::open_inline(log, History::default(), ManualClock::default()).unwrap();
    let panicking = tokio::spawn({
        let store = store.clone();
        async move { drop(store.commit(create("a")).await) }
    });
    assert!(panicking.await.unwrap_err().is_panic());
    assert!(matches!(store.commit(create("a")).await, Err(CommitError::Closed)));
}

/// A commit that is dropped, with the last store in it, by the one who answers it.
struct DroppedByAnswer(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Wake for DroppedByAnswer {
    fn wake(self: Arc<Self>) {
        let commit = self.0.lock().unwrap().take();
        drop(commit);
    }
}

#[test]
fn the_last_store_may_be_dropped_by_the_writer_itself() {
    let (log, director) = directed(&MemoryLog::default());
    let store = open(log);
    let commit = Box::pin(async move { drop(store.commit(create("a")).await) });
    let task = Arc::new(DroppedByAnswer(Mutex::new(Some(commit))));
    let waker = Waker::from(task.clone());
    let pending = task.0.lock().unwrap().as_mut().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
    assert!(pending.is_pending());
    assert_eq!(director.all_appends(), [(1, 0)]);
    assert!(task.0.lock().unwrap().is_none());
}
