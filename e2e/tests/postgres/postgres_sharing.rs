//! Several stores on one database are one store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use muster_e2e::databases::Postgres;
use muster_ports::clock::{ManualClock, SystemClock};
use muster_ports::store::{
    Batch, CommitError, Draft, History, Key, Lease, LogError, Precondition, ResourceName, Revision, Standing,
    Store, WatchScope, Write,
};
use muster_store_sql::{PostgresLog, Target};
use tokio::task::JoinSet;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_mins(1);

fn target(url: &str) -> Target {
    Target::parse(url, |_| None).unwrap()
}

fn open_with(url: &str, history: History) -> Store {
    Store::open(PostgresLog::open(&target(url), "test").unwrap(), history, SystemClock).unwrap()
}

fn open(url: &str) -> Store {
    open_with(url, History::default())
}

fn key(name: &str) -> Key {
    Key::new(&ResourceName::new("tasks.example.dev"), "default", name)
}

fn put(name: &str, expect: Precondition) -> Batch {
    let draft = Draft::joined("{\"revision\":\"", "\"}");
    Batch::of(Write::Put { key: key(name), expect, draft })
}

/// The revisions that a watch of everything delivers, up to one.
async fn watched(store: &Store, upto: Revision) -> Vec<(u64, String)> {
    let mut watch = store.watch(WatchScope::All, Revision::ZERO).unwrap();
    let mut seen = Vec::new();
    while watch.position() < upto {
        for change in timeout(DEADLINE, watch.next(100)).await.unwrap().unwrap() {
            seen.push((change.revision().0, change.object.path.to_string()));
        }
    }
    seen
}

#[tokio::test]
async fn what_one_writes_the_others_see_by_themselves_in_one_order_without_a_gap() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let stores = [open(&url), open(&url), open(&url)];
    let mut writers = JoinSet::new();
    for (number, store) in stores.iter().enumerate() {
        for caller in 0..4 {
            let store = store.clone();
            writers.spawn(async move {
                for round in 0..25 {
                    let name = format!("{number}-{caller}-{round}");
                    store.commit(put(&name, Precondition::Absent)).await.unwrap();
                    assert!(store.get(&key(&name)).is_some(), "a write is visible to its writer");
                }
            });
        }
    }
    writers.join_all().await;
    let first = watched(&stores[0], Revision(300)).await;
    assert_eq!(
        first.iter().map(|(revision, _)| *revision).collect::<Vec<_>>(),
        (1..=300).collect::<Vec<_>>()
    );
    assert_eq!(watched(&stores[1], Revision(300)).await, first);
    assert_eq!(watched(&stores[2], Revision(300)).await, first);
    assert_eq!(watched(&open(&url), Revision(300)).await, first);
}

#[tokio::test]
async fn of_many_who_expect_the_same_revision_one_succeeds() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let stores = [open(&url), open(&url)];
    let mut at = stores[0].commit(put("counter", Precondition::Absent)).await.unwrap().revision;
    for _ in 0..30 {
        let mut tries = JoinSet::new();
        for store in stores.iter().chain(&stores) {
            let store = store.clone();
            tries.spawn(async move { store.commit(put("counter", Precondition::At(at))).await });
        }
        let outcomes = tries.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 3));
        at = won[0].as_ref().unwrap().revision;
        for outcome in lost {
            let Err(CommitError::Conflict { found, .. }) = outcome else { panic!("{outcome:?}") };
            assert_eq!(found.unwrap().revision, at, "a refusal shows what is there, not what was");
        }
    }
}

#[tokio::test]
async fn whoever_catches_up_has_seen_every_acknowledged_write() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let (one, two) = (open(&url), open(&url));
    for number in 0..50 {
        let name = number.to_string();
        one.commit(put(&name, Precondition::Absent)).await.unwrap();
        two.catch_up().await.unwrap();
        assert!(two.get(&key(&name)).is_some());
    }
}

#[tokio::test]
async fn a_former_holder_behind_its_fence_can_do_nothing() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let (one, two) = (open(&url), open(&url));
    let clock = ManualClock::default();
    let now = muster_ports::clock::Clock::now(&clock);
    let old = Lease::acquire(&one, "leader", "one", DEADLINE, now).await.unwrap();
    let fence = old.fence();
    let fenced = one.fenced(fence.clone());
    fenced.commit(put("in-time", Precondition::Absent)).await.unwrap();
    two.catch_up().await.unwrap();
    let seen = Lease::look(&two, "leader").unwrap();
    let new = Lease::take_over(&two, "leader", "two", DEADLINE, now, Some(&seen)).await.unwrap();
    assert!(new.fence > old.fence);
    let late = tokio::spawn(async move { fenced.commit(put("too-late", Precondition::Absent)).await });
    timeout(DEADLINE, fence.fallen()).await.unwrap();
    assert!(!late.is_finished());
    late.abort();
    two.catch_up().await.unwrap();
    assert!(two.get(&key("in-time")).is_some() && two.get(&key("too-late")).is_none());
}

#[tokio::test]
async fn a_store_whose_database_went_away_says_so_and_goes_on_when_it_is_back() {
    let postgres = Arc::new(Postgres::start());
    let (one, two) = (open(&postgres.url()), open(&postgres.url()));
    one.commit(put("before", Precondition::Absent)).await.unwrap();
    postgres.kill();
    let error =
        timeout(DEADLINE, one.commit(put("during", Precondition::Absent))).await.unwrap().unwrap_err();
    assert!(matches!(error, CommitError::Refused(_) | CommitError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("muster at 127.0.0.1"), "{error}");
    assert!(matches!(*one.standing().borrow(), Standing::Away(_)));
    assert!(one.get(&key("before")).is_some(), "what is known can be read");
    let again = postgres.clone();
    tokio::task::spawn_blocking(move || again.restart()).await.unwrap();
    let mut standing = one.standing();
    timeout(DEADLINE, standing.wait_for(|standing| *standing == Standing::Good)).await.unwrap().unwrap();
    one.commit(put("after", Precondition::Absent)).await.unwrap();
    timeout(DEADLINE, async { while two.catch_up().await.is_err() {} }).await.unwrap();
    assert!(two.get(&key("before")).is_some() && two.get(&key("after")).is_some());
}

#[tokio::test]
async fn a_store_that_slept_through_what_was_forgotten_reads_everything_anew() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let history = History { max_changes: 10, ..History::default() };
    let sleeper = open_inline(&url);
    let busy = open_with(&url, history);
    for number in 0..200 {
        busy.commit(put("a", if number == 0 { Precondition::Absent } else { Precondition::Exists }))
            .await
            .unwrap();
    }
    for _ in 0..8 {
        busy.commit(Batch::default()).await.unwrap();
    }
    assert_eq!(sleeper.revision(), Revision::ZERO);
    sleeper.commit(put("b", Precondition::Absent)).await.unwrap();
    assert_eq!(sleeper.revision(), Revision(201));
    assert_eq!(sleeper.get(&key("a")).unwrap().revision, Revision(200));
    assert!(sleeper.watch(WatchScope::All, Revision(1)).is_err());
}

fn open_inline(url: &str) -> Store {
    Store::open_inline(PostgresLog::open(&target(url), "test").unwrap(), History::default(), SystemClock)
        .unwrap()
}

#[tokio::test]
async fn a_database_of_another_installation_or_a_newer_server_is_refused_in_words() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    drop(open(&url));
    let error = PostgresLog::open(&target(&url), "another").unwrap_err();
    assert!(matches!(error, LogError::InUse(_)), "{error}");
    assert!(error.to_string().contains("belongs to the installation `test`"), "{error}");
    let schema = url.rsplit("%3D").next().unwrap();
    postgres.sql(&format!("UPDATE {schema}.muster_schema SET version = 99, needs = 98"));
    let error = PostgresLog::open(&target(&url), "test").unwrap_err();
    assert!(matches!(error, LogError::TooNew(_)), "{error}");
    postgres.sql(&format!("UPDATE {schema}.muster_schema SET needs = 1"));
    drop(open(&url));
}

#[tokio::test]
async fn a_row_that_is_not_what_was_written_is_noticed() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let store = open(&url);
    store.commit(put("a", Precondition::Absent)).await.unwrap();
    drop(store);
    let schema = url.rsplit("%3D").next().unwrap();
    postgres.sql(&format!("UPDATE {schema}.muster_log SET path = 'default/b'"));
    let log = PostgresLog::open(&target(&url), "test").unwrap();
    let error = Store::open(log, History::default(), SystemClock).unwrap_err();
    assert!(matches!(error, LogError::Corrupt(_)), "{error}");
}

#[tokio::test]
async fn a_database_that_lost_acknowledged_writes_is_not_written_to() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let store = open(&url);
    store.commit(put("a", Precondition::Absent)).await.unwrap();
    store.commit(put("b", Precondition::Absent)).await.unwrap();
    let schema = url.rsplit("%3D").next().unwrap();
    // As a standby would look that had not seen the last write.
    postgres.sql(&format!(
        "DELETE FROM {schema}.muster_log WHERE revision = 2; UPDATE {schema}.muster_header SET revision = 1"
    ));
    let error = store.commit(put("c", Precondition::Absent)).await.unwrap_err();
    assert!(matches!(error, CommitError::Broken(_)), "{error}");
    assert!(error.to_string().contains("not the one this server knew"), "{error}");
}

#[test]
fn nobody_listens_there_is_said_in_words() {
    let port = muster_e2e::brokers::free_port();
    let url = format!("postgres://muster@127.0.0.1:{port}/muster?connect_timeout=1");
    let error = PostgresLog::open(&target(&url), "test").unwrap_err();
    assert!(error.to_string().contains("cannot be used now"), "{error}");
}
