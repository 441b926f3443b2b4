//! Leases of singleton roles: who holds them, how long the next one waits, and servers of an earlier version beside newer ones.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use muster_engine::leadership::{Candidate, ENGINE_MARK, ONE_LEASE, Term};
use muster_ports::clock::{Clock, ManualClock, SystemClock};
use muster_ports::store::{History, Lease, MemoryLog, Store};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_mins(1);
const LEASE: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_hours(1);

fn store() -> Store {
    Store::open(MemoryLog::default(), History::default(), SystemClock).unwrap()
}

fn still() -> Duration {
    Duration::from_secs(100)
}

fn candidate(store: &Store, role: &str, holder: &str) -> Candidate {
    Candidate {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        name: role.to_owned(),
        holder: holder.to_owned(),
        lease: LEASE,
        grace: Duration::ZERO,
        machine_time: still,
    }
}

fn engine(store: &Store, holder: &str) -> Candidate {
    candidate(store, ONE_LEASE, &format!("{holder}{ENGINE_MARK}"))
}

async fn elected(candidate: &Candidate) -> Term {
    timeout(DEADLINE, candidate.campaign()).await.unwrap().unwrap()
}

fn holder(store: &Store, role: &str) -> Option<String> {
    Lease::look(store, role)?.holder
}

#[tokio::test]
async fn each_role_has_a_lease_of_its_own() {
    let store = store();
    let relay = Candidate { lease: LONG, ..candidate(&store, "relay", "one") };
    let _relays = elected(&relay).await;
    let _leads = elected(&engine(&store, "two")).await;
    assert_eq!(holder(&store, "relay").unwrap(), "one");
    assert_eq!(holder(&store, ONE_LEASE).unwrap(), "two engine");
}

#[tokio::test]
async fn a_lease_that_was_not_given_up_is_taken_after_its_time_and_the_grace() {
    let store = store();
    let grace = Duration::from_millis(300);
    drop(elected(&engine(&store, "silent")).await);
    let begun = Instant::now();
    let next = Candidate { grace, ..engine(&store, "next") };
    drop(elected(&next).await);
    assert!(begun.elapsed() >= LEASE + grace, "processes of the former holder may still run");
}

#[tokio::test]
async fn a_lease_that_was_given_up_is_taken_at_once() {
    let store = store();
    let waits_long = |holder| Candidate { lease: LONG, grace: LONG, ..engine(&store, holder) };
    let (first, next) = (waits_long("first"), waits_long("next"));
    let term = elected(&first).await;
    let waiting = tokio::spawn(async move { next.campaign().await });
    term.resign().await;
    assert!(timeout(DEADLINE, waiting).await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn a_wall_clock_that_jumps_ends_no_lease_and_prolongs_none() {
    const HOURS: i64 = 2 * 3_600_000;
    let (store, wall) = (store(), ManualClock::default());
    let lease = 5 * LEASE;
    let on = |holder| Candidate { lease, clock: Arc::new(wall.clone()), ..engine(&store, holder) };
    let mut term = elected(&on("holder")).await;
    let holding = tokio::spawn(async move { term.hold().await });
    let other = on("other");
    let mut waiting = tokio::spawn(async move { other.campaign().await });
    for jump in [HOURS, -HOURS, -HOURS, HOURS, HOURS] {
        wall.jump_wall(jump);
        assert!(timeout(lease / 2, &mut waiting).await.is_err(), "the holder renews its lease");
    }
    assert!(!holding.is_finished() && holder(&store, ONE_LEASE).unwrap() == "holder engine");
    holding.abort();
    wall.jump_wall(-HOURS);
    assert!(timeout(DEADLINE, waiting).await.unwrap().unwrap().is_some(), "nobody renews it any more");
}

/// Moves by a second whenever it is read.
fn moving() -> Duration {
    static SECONDS: AtomicU64 = AtomicU64::new(1000);
    Duration::from_secs(SECONDS.fetch_add(1, Ordering::SeqCst))
}

#[tokio::test]
async fn a_term_lasts_for_the_lease_from_before_it_was_asked_for_and_each_renewal_prolongs_it() {
    let store = store();
    let candidate = Candidate { machine_time: moving, ..engine(&store, "one") };
    let mut term = elected(&candidate).await;
    let mut lasts = term.lasts();
    let first = *lasts.borrow_and_update();
    assert_eq!(first, Duration::from_secs(1000) + LEASE);
    let holding = tokio::spawn(async move { term.hold().await });
    timeout(DEADLINE, lasts.changed()).await.unwrap().unwrap();
    assert!(*lasts.borrow() >= first + Duration::from_secs(1));
    holding.abort();
}

/// A server of an earlier version, which does the work of all roles under one lease.
async fn earlier_version(store: &Store) -> Lease {
    let seen = Lease::look(store, ONE_LEASE);
    let now = SystemClock.now();
    Lease::take_over(store, ONE_LEASE, "http://old word", LEASE, now, seen.as_ref()).await.unwrap()
}

#[tokio::test]
async fn a_role_stays_with_a_server_of_an_earlier_version_that_leads() {
    let store = store();
    let mut old = earlier_version(&store).await;
    let relay = candidate(&store, "relay", "new");
    let waiting = tokio::spawn(async move { relay.campaign().await });
    let begun = Instant::now();
    let mut renewals = tokio::time::interval(LEASE / 10);
    while begun.elapsed() < 3 * LEASE {
        renewals.tick().await;
        old = old.renew(&store, LEASE, SystemClock.now()).await.unwrap();
    }
    assert!(!waiting.is_finished() && holder(&store, "relay").is_none());
    old.release(&store).await.unwrap();
    assert!(timeout(DEADLINE, waiting).await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn a_role_is_left_to_a_server_of_an_earlier_version_that_begins_to_lead() {
    let store = store();
    let _leads = elected(&Candidate { lease: LONG, ..engine(&store, "new") }).await;
    let mut relays = elected(&Candidate { lease: LONG, ..candidate(&store, "relay", "new") }).await;
    let holding = tokio::spawn(async move { relays.hold().await });
    let _old = earlier_version(&store).await;
    let why = timeout(DEADLINE, holding).await.unwrap().unwrap();
    assert_eq!(why, "a server of an earlier version leads");
}

#[tokio::test]
async fn a_server_of_an_earlier_version_that_is_gone_keeps_no_role() {
    let store = store();
    let _old = earlier_version(&store).await;
    drop(elected(&candidate(&store, "relay", "new")).await);
    assert_eq!(holder(&store, "relay").unwrap(), "new");
}
