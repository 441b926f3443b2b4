//! Two hundred thousand messages while RabbitMQ, Redis and the server, which is also the relay, are killed again and again.

use std::path::Path;
use std::time::Duration;

use muster_e2e::brokers::{Rabbit, Redis};
use muster_e2e::load::random::Random;
use muster_e2e::server::Server;
use muster_e2e::wait::{holds_within, wait_for};
use muster_ports::clock::SystemClock;
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, Write};
use muster_store_sql::SqliteLog;
use muster_types::Task;
use serde_json::{Value, json};

use crate::consumer::Consumer;
use crate::world::{LONG, make_sink, status, wait_for_reason};

/// How often the server is killed.
const ROUNDS: usize = 20;
/// Tasks whose lives are told per round.
const TASKS: usize = 2500;
/// What is told of a life.
const LIFE: [&str; 4] = ["starting", "running", "retry", "success"];

fn task(uid: &str, state: &str, ran: u32) -> Task {
    let records: Vec<Value> = (1..=ran)
        .map(|attempt| json!({"kind": "PodRunning", "count": 1, "reason": format!("{uid}-{attempt}"), "last": "2026-11-15T12:00:00Z"}))
        .collect();
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
        "metadata": {"name": uid, "namespace": "default", "uid": uid, "creationTimestamp": "2026-11-15T12:00:00Z"},
        "spec": {"container": {"command": ["true"]}},
        "status": {"state": state, "attempt": ran, "events": records, "retries": ran.saturating_sub(1)},
    });
    serde_json::from_value(task).expect("a task")
}

/// Writes the lives of tasks into the database of a server that was killed, as fast as it takes them.
fn write_lives(database: &Path, round: usize) {
    let forever = History {
        max_changes: usize::MAX,
        max_age: Duration::MAX,
        max_bytes: usize::MAX,
        fresh: Duration::MAX,
    };
    let log = SqliteLog::open(database).expect("the database can be opened after a kill");
    let store = Store::open(log, forever, SystemClock).expect("a store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let tasks = ResourceName::new("tasks.muster.dev");
    for (state, ran) in [("Ready", 0), ("Running", 1), ("Running", 2), ("Succeeded", 2)] {
        let writes = (0..TASKS).map(|number| {
            let uid = format!("t{round}-{number}");
            let json = serde_json::to_vec(&task(&uid, state, ran)).expect("JSON");
            let draft = Draft::of_object(json).expect("a place for the revision");
            let expect = if ran == 0 { Precondition::Absent } else { Precondition::Exists };
            Write::Put { key: Key::new(&tasks, "default", &uid), expect, draft }
        });
        let batch = Batch { checks: Vec::new(), writes: writes.collect() };
        runtime.block_on(store.commit(batch)).expect("it is committed");
    }
    store.close();
}

#[test]
fn no_message_is_lost_and_order_holds_though_broker_journal_relay_and_server_are_killed() {
    let (mut rabbit, mut redis) = (Rabbit::start(), Redis::start());
    let mut server = Server::start(&["--roles", "api,relay", "--egress-allow", "127.0.0.0/8,::1"]);
    let consumer = Consumer::start(&rabbit.url(), "kills");
    let journal = json!({"redis": {"url": redis.url()}});
    make_sink(&server, "rabbit", &json!({"amqp": {"url": rabbit.url()}, "journal": journal}));
    wait_for_reason(&server, "rabbit", "Connected", "Connected");
    let mut random = Random::new(8);
    let mut kills = 0;
    for round in 0..ROUNDS {
        server.kill();
        write_lives(&server.data().join("muster.db"), round);
        server.restart();
        kills += 1;
        // The next blow falls somewhere among the messages.
        let enough = consumer.with(|heard| heard.messages) + usize::try_from(random.below(9000)).unwrap_or(0);
        holds_within(Duration::from_secs(5), || consumer.with(|heard| heard.messages) >= enough);
        if round % 2 == 0 {
            rabbit.kill();
            rabbit.restart();
            kills += 1;
        } else if round % 4 == 1 {
            redis.kill();
            redis.restart();
            kills += 1;
        }
    }
    assert!(kills >= 30, "{kills}");
    let expected = ROUNDS * TASKS * LIFE.len();
    assert!(expected >= 200_000);
    let unique = || consumer.with(|heard| heard.ids.len());
    let mut last = unique();
    while !holds_within(Duration::from_mins(1), || unique() >= expected) {
        let now = unique();
        assert!(now > last, "{now} of {expected} came, and no more do: {}", status(&server, "rabbit"));
        last = now;
    }
    wait_for("all is confirmed", LONG, || status(&server, "rabbit")["backlog"].is_null());
    let duplicates = consumer.with(|heard| {
        assert_eq!(heard.ids.len(), expected, "nothing came that was not told");
        for (object, words) in &heard.words {
            assert_eq!(words, &LIFE, "{object}");
        }
        heard.duplicates()
    });
    println!("{expected} messages, {kills} kills, {duplicates} duplicates");
    assert_eq!(status(&server, "rabbit")["resyncs"], Value::Null, "the log sufficed");
}
