//! Databases that refuse: by their certificates, by taking no writes, by having no connection left. And clocks that differ.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use muster_e2e::databases::Postgres;
use muster_engine::leadership::Candidate;
use muster_ports::clock::{Clock, Millis, SystemClock};
use muster_ports::store::{
    Batch, CommitError, Draft, History, Key, LogError, Precondition, ResourceName, Standing, Store, Write,
};
use muster_store_sql::{PostgresLog, Target};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_mins(1);

fn try_open(url: &str) -> Result<PostgresLog, LogError> {
    PostgresLog::open(&Target::parse(url, |_| None)?, "test")
}

fn open(url: &str) -> Store {
    Store::open(try_open(url).unwrap(), History::default(), SystemClock).unwrap()
}

fn key(name: &str) -> Key {
    Key::new(&ResourceName::new("tasks.example.dev"), "default", name)
}

fn create(name: &str) -> Batch {
    let draft = Draft::joined("{\"revision\":\"", "\"}");
    Batch::of(Write::Put { key: key(name), expect: Precondition::Absent, draft })
}

/// Waits until a store can be used again, and writes to it.
async fn goes_on(store: &Store) {
    let mut standing = store.standing();
    timeout(DEADLINE, standing.wait_for(|standing| *standing == Standing::Good)).await.unwrap().unwrap();
    store.commit(create("after")).await.unwrap();
    assert!(store.get(&key("before")).is_some() && store.get(&key("after")).is_some());
}

/// A write that is refused for a reason, of which nothing is left; reads go on.
async fn is_refused(store: &Store, why: &str) {
    let error = timeout(DEADLINE, store.commit(create("during"))).await.unwrap().unwrap_err();
    assert!(matches!(error, CommitError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains(why), "{error}");
    assert!(matches!(*store.standing().borrow(), Standing::Away(_)));
    assert!(store.get(&key("before")).is_some() && store.get(&key("during")).is_none());
}

#[test]
fn tls_is_spoken_as_sslmode_says_with_a_real_server() {
    let (postgres, authority) = Postgres::start_with_tls();
    let url =
        |host: &str, options: &str| format!("postgres://muster@{host}:{}/muster?{options}", postgres.port());
    let of = |path: &Path| path.display().to_string().replace('/', "%2F");
    let root = format!("sslrootcert={}", of(&authority));
    let secret = || {
        postgres.sql("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'muster'")
    };
    for (host, options, is_secret) in [
        ("127.0.0.1", "sslmode=disable".to_owned(), "0"),
        ("127.0.0.1", "sslmode=prefer".to_owned(), "1"),
        ("127.0.0.1", "sslmode=require".to_owned(), "1"),
        ("127.0.0.1", format!("sslmode=verify-ca&{root}"), "1"),
        ("localhost", format!("sslmode=verify-full&{root}"), "1"),
    ] {
        let log = try_open(&url(host, &options)).unwrap();
        assert_eq!(secret(), is_secret, "{options}");
        drop(log);
        muster_e2e::wait::wait_for("the connection to end", DEADLINE, || secret() == "0");
    }
    // What makes a password safe on this line is that it is bound to the certificate.
    let bound = format!("sslmode=verify-full&{root}&channel_binding=require");
    let with = |word: &str| url("localhost", &bound).replace("muster@", &format!("secret:{word}@"));
    drop(try_open(&with("word")).unwrap());
    let error = try_open(&with("guess")).unwrap_err().to_string();
    assert!(error.contains("password authentication failed"), "{error}");
}

#[test]
fn a_server_that_is_not_the_right_one_is_refused_before_anything_is_said_to_it() {
    let (postgres, authority) = Postgres::start_with_tls();
    let other = tempfile::tempdir().unwrap();
    let stranger = other.path().join("stranger.pem");
    let made = rcgen::generate_simple_self_signed(vec!["stranger".to_owned()]).unwrap();
    std::fs::write(&stranger, made.cert.pem()).unwrap();
    let refuses = |host: &str, mode: &str, root: &Path, why: &str| {
        let root = root.display().to_string().replace('/', "%2F");
        let place = format!("postgres://muster@{host}:{}/muster", postgres.port());
        let error =
            try_open(&format!("{place}?sslmode={mode}&sslrootcert={root}&connect_timeout=1")).unwrap_err();
        assert!(error.to_string().contains(why), "{mode}: {error}");
        assert!(matches!(error, LogError::Io(_)), "{mode}: nobody waits for another certificate: {error:?}");
    };
    refuses("127.0.0.1", "verify-full", &authority, "not valid for name");
    refuses("localhost", "verify-full", &stranger, "certificate");
    refuses("localhost", "verify-ca", &stranger, "certificate");
    refuses("localhost", "require", &stranger, "certificate");
    assert_eq!(postgres.sql("SELECT to_regclass('muster_schema') IS NULL"), "t", "nothing was made there");
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_said_in_words_and_used_again_when_it_does() {
    let postgres = Postgres::start();
    let store = open(&postgres.url());
    store.commit(create("before")).await.unwrap();
    postgres.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    postgres.sql("SELECT pg_reload_conf()");
    muster_e2e::wait::wait_for("it to take no writes", DEADLINE, || {
        let told =
            postgres.sql("SELECT setting FROM pg_file_settings WHERE name = 'default_transaction_read_only'");
        told == "on"
    });
    is_refused(&store, "read-only").await;
    let error = try_open(&postgres.url()).unwrap_err().to_string();
    assert!(error.contains("cannot be used now"), "{error}");
    postgres.sql("ALTER SYSTEM RESET default_transaction_read_only");
    postgres.sql("SELECT pg_reload_conf()");
    goes_on(&store).await;
}

#[tokio::test]
async fn a_database_without_a_connection_left_is_said_in_words_and_used_again_when_there_is_one() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let schema = url.rsplit("%3D").next().unwrap();
    postgres.sql("CREATE ROLE few LOGIN");
    postgres.sql(&format!("ALTER SCHEMA {schema} OWNER TO few"));
    let store = open(&url.replace("muster@", "few@"));
    store.commit(create("before")).await.unwrap();
    postgres.sql("ALTER ROLE few CONNECTION LIMIT 0");
    postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'");
    is_refused(&store, "too many connections").await;
    postgres.sql("ALTER ROLE few CONNECTION LIMIT 5");
    goes_on(&store).await;
}

/// A clock that is wrong.
struct Skewed(i64);

impl Clock for Skewed {
    fn now(&self) -> Millis {
        Millis(SystemClock.now().0 + self.0)
    }

    fn wall(&self) -> Millis {
        Millis(SystemClock.wall().0 + self.0)
    }
}

#[tokio::test]
async fn clocks_that_differ_by_hours_change_nothing_about_who_leads() {
    let postgres = Postgres::shared();
    let url = postgres.fresh_url();
    let hours = |count: i64| count * 3_600_000;
    let candidate = |skew: i64, holder: &str| {
        let log = try_open(&url).unwrap();
        Candidate {
            store: Store::open(log, History::default(), Skewed(skew)).unwrap(),
            clock: Arc::new(Skewed(skew)),
            name: "leader".into(),
            holder: holder.into(),
            lease: Duration::from_secs(1),
            grace: Duration::ZERO,
            machine_time: Duration::default,
        }
    };
    let (late, early) = (candidate(hours(-5), "late"), candidate(hours(5), "early"));
    let mut term = timeout(DEADLINE, late.campaign()).await.unwrap().unwrap();
    let waiting = tokio::spawn(async move { early.campaign().await });
    // For three leases it is renewed, though the other one's clock says that it ended long ago.
    let held = timeout(Duration::from_secs(3), term.hold()).await;
    assert!(held.is_err() && !waiting.is_finished(), "{held:?}");
    term.store().commit(create("by-late")).await.unwrap();
    // The holder is gone without a word; the other one leads after the lease, not after ten hours.
    let fenced = term.store();
    drop(term);
    let next = timeout(DEADLINE, waiting).await.unwrap().unwrap().unwrap();
    next.store().commit(create("by-early")).await.unwrap();
    let too_late = tokio::spawn(async move { fenced.commit(create("too-late")).await });
    late.store.catch_up().await.unwrap();
    assert!(late.store.get(&key("by-early")).is_some());
    next.store().commit(create("behind")).await.unwrap();
    assert!(!too_late.is_finished() && late.store.get(&key("too-late")).is_none());
    too_late.abort();
}
