//! The relay over a store and a broker in memory: whatever happens to either, nothing is lost and the order of an object holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_engine::relay::{Outside, Settings, hold_for_sinks, run};
use muster_ports::clock::SystemClock;
use muster_ports::publisher::{
    Boxed, Journal, JournalError, MemoryPublisher, PublishError, Publisher, Sinks,
};
use muster_ports::store::{
    Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Revision, Store, Write,
};
use muster_ports::telemetry::Telemetry;
use muster_types::{EventSink, Task};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval};

const SOON: Duration = Duration::from_secs(20);

/// A journal that can be broken, and says what it was told.
#[derive(Default)]
struct Note {
    value: Mutex<Option<String>>,
    broken: Mutex<bool>,
}

impl Journal for Note {
    fn read(&self) -> Boxed<'_, Result<Option<String>, JournalError>> {
        Box::pin(async { Ok(self.value.lock().clone()) })
    }

    fn write<'a>(&'a self, value: &'a str) -> Boxed<'a, Result<(), JournalError>> {
        Box::pin(async move {
            if *self.broken.lock() {
                return Err(JournalError("gone".to_owned()));
            }
            *self.value.lock() = Some(value.to_owned());
            Ok(())
        })
    }
}

#[derive(Clone, Default)]
struct Places {
    broker: MemoryPublisher,
    /// What is said of the broker makes no sense.
    nonsense: Arc<AtomicBool>,
    dead: MemoryPublisher,
    note: Option<Arc<Note>>,
}

impl Sinks for Places {
    fn publisher(&self, _: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        if self.nonsense.load(Ordering::Relaxed) {
            return Err(PublishError::new("NoSecret", "the secret it names does not exist"));
        }
        Ok(Arc::new(self.broker.clone()))
    }

    fn dead_letters(&self, _: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        Ok(Arc::new(self.dead.clone()))
    }

    fn journal(&self, _: &EventSink) -> Result<Option<Arc<dyn Journal>>, PublishError> {
        Ok(self.note.clone().map(|note| note as Arc<dyn Journal>))
    }
}

struct World {
    log: MemoryLog,
    history: History,
    settings: Settings,
    store: Store,
    places: Places,
    relay: JoinHandle<()>,
}

impl World {
    fn new() -> Self {
        Self::with(History::default(), Settings::default(), Places::default())
    }

    fn with(history: History, settings: Settings, places: Places) -> Self {
        let log = MemoryLog::default();
        let store = Store::open(log.clone(), history, SystemClock).expect("a store");
        let relay = start(&store, &places, &settings);
        Self { log, history, settings, store, places, relay }
    }

    /// As a `kill -9` would: what is in memory is gone.
    fn crash(&mut self) {
        self.relay.abort();
        self.store.close();
        let store = Store::open(self.log.clone(), self.history, SystemClock).expect("a store");
        hold_for_sinks(&store, &self.settings);
        self.relay = start(&store, &self.places, &self.settings);
        self.store = store;
    }

    async fn put(&self, plural: &str, name: &str, object: &Value) -> Revision {
        put(&self.store, plural, name, object).await
    }

    async fn sink(&self, spec: &Value) -> Revision {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink",
            "metadata": {"name": "s", "namespace": "default", "uid": "sink-uid", "resourceVersion": "", "generation": 1},
            "spec": spec,
        });
        self.put("eventsinks", "s", &object).await
    }

    async fn amqp(&self) {
        self.sink(&json!({"amqp": {"url": "amqp://b"}})).await;
        self.until("the sink is connected", |status| connected(status) == "True").await;
    }

    /// A task through its whole life.
    async fn task(&self, name: &str) {
        for status in [json!({}), state("Pending", 0), state("Running", 1), state("Succeeded", 1)] {
            self.put("tasks", name, &task(name, &status)).await;
        }
    }

    fn status(&self) -> Value {
        let key = Key::new(&ResourceName::new("eventsinks.muster.dev"), "default", "s");
        let stored = self.store.get(&key).map(|stored| stored.json().to_vec()).unwrap_or_default();
        let sink: Value = serde_json::from_slice(&stored).unwrap_or_default();
        sink["status"].clone()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        wait_for(what, || holds(&self.status()), || format!("{}", self.status())).await;
    }

    async fn arrived(&self, least: usize) -> Vec<String> {
        let ids = || self.places.broker.kept().iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        wait_for("messages", || ids().len() >= least, || format!("{:?} {}", ids(), self.status())).await;
        ids()
    }

    /// What arrived, once all of an object did. What was not confirmed when a relay ended comes twice.
    async fn arrived_whole(&self, object: &str) -> Vec<String> {
        let ids = || self.places.broker.kept().iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        let is_whole = || by_object(&ids()).get(object).is_some_and(|words| words.len() >= LIFE.len());
        wait_for("the whole life", is_whole, || format!("{:?} {}", ids(), self.status())).await;
        ids()
    }

    async fn annotate(&self, name: &str, value: &str) {
        let key = Key::new(&ResourceName::new("eventsinks.muster.dev"), "default", "s");
        loop {
            let stored = self.store.get(&key).expect("the sink is there");
            let mut sink: Value = serde_json::from_slice(stored.json()).expect("JSON");
            sink["metadata"]["annotations"][name] = json!(value);
            if commit(&self.store, key.clone(), Precondition::At(stored.revision), &sink).await.is_ok() {
                return;
            }
        }
    }
}

fn start(store: &Store, places: &Places, settings: &Settings) -> JoinHandle<()> {
    let outside = Outside {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        sinks: Arc::new(places.clone()),
        telemetry: Telemetry::default(),
        kube_jobs: None,
    };
    tokio::spawn(run(outside, settings.clone()))
}

fn connected(status: &Value) -> &str {
    condition(status, "Connected")["status"].as_str().unwrap_or_default()
}

fn condition<'a>(status: &'a Value, of: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|it| it["type"] == of).unwrap_or(&Value::Null)
}

async fn wait_for(what: &str, holds: impl Fn() -> bool, show: impl Fn() -> String) {
    let deadline = Instant::now() + SOON;
    let mut looks = interval(Duration::from_millis(2));
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come: {}", show());
        looks.tick().await;
    }
}

async fn commit(store: &Store, key: Key, expect: Precondition, object: &Value) -> Result<Revision, String> {
    let mut text = object.clone();
    text["metadata"]["resourceVersion"] = json!("");
    // Kinds of ours are written in their own order, in which the first revision is theirs.
    let json = match object["kind"].as_str() {
        Some("Task") => serde_json::to_vec(&serde_json::from_value::<Task>(text).expect("a task")),
        _ => serde_json::to_vec(&serde_json::from_value::<EventSink>(text).expect("a sink")),
    };
    let draft = Draft::of_object(json.expect("JSON")).expect("a place for the revision");
    let done = store.commit(Batch::of(Write::Put { key, expect, draft })).await;
    done.map(|committed| committed.revision).map_err(|error| error.to_string())
}

async fn put(store: &Store, plural: &str, name: &str, object: &Value) -> Revision {
    let key = Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "default", name);
    loop {
        let expect = store.get(&key).map_or(Precondition::Absent, |stored| Precondition::At(stored.revision));
        if let Ok(revision) = commit(store, key.clone(), expect, object).await {
            return revision;
        }
    }
}

fn state(state: &str, ran: u32) -> Value {
    let record = json!({"kind": "PodRunning", "count": 1, "reason": "u-1", "last": "2026-01-01T00:00:00Z"});
    let events = if ran > 0 { vec![record] } else { Vec::new() };
    json!({"state": state, "attempt": 1, "events": events})
}

fn task(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": ""},
        "spec": {"container": {"command": ["true"]}}, "status": status,
    })
}

/// The first of each id, by object.
fn by_object(ids: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (object, word) in ids.iter().filter_map(|id| id.split_once('/')) {
        let words = seen.entry(object.to_owned()).or_default();
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    seen
}

const LIFE: [&str; 3] = ["starting", "running", "success"];

#[tokio::test]
async fn every_transition_is_told_in_order_and_the_status_says_so() {
    let world = World::new();
    world.amqp().await;
    world.task("a").await;
    world.task("b").await;
    let arrived = world.arrived(6).await;
    assert_eq!(
        by_object(&arrived),
        BTreeMap::from([
            ("a".into(), LIFE.map(String::from).to_vec()),
            ("b".into(), LIFE.map(String::from).to_vec())
        ])
    );
    world.until("six are confirmed", |status| status["confirmed"] == 6 && status["backlog"].is_null()).await;
    let status = world.status();
    assert!(
        status["confirmedRevision"].as_u64().is_some() && status["lastConfirmedTime"].is_string(),
        "{status}"
    );
    assert_eq!(condition(&status, "Lagging")["status"], "False");
}

#[tokio::test]
async fn a_new_sink_hears_of_nothing_that_was_before_it() {
    let world = World::new();
    world.task("before").await;
    world.amqp().await;
    world.task("after").await;
    assert!(world.arrived(3).await.iter().all(|id| id.starts_with("after/")));
}

#[tokio::test]
async fn a_new_sink_hears_of_what_came_after_it_although_it_could_not_be_reached_at_first() {
    let world = World::new();
    world.places.nonsense.store(true, Ordering::Relaxed);
    world.sink(&json!({"amqp": {"url": "amqp://b"}})).await;
    world.task("a").await;
    world.until("it is told", |status| condition(status, "Connected")["reason"] == "NoSecret").await;
    world.places.nonsense.store(false, Ordering::Relaxed);
    assert_eq!(by_object(&world.arrived(3).await)["a"], LIFE);
}

#[tokio::test]
async fn a_new_sink_that_was_changed_before_it_was_told_anything_begins_where_it_was_made() {
    let mut world = World::new();
    world.relay.abort();
    let made = world.sink(&json!({"amqp": {"url": "amqp://b"}})).await;
    world.task("a").await;
    let changed = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink",
        "metadata": {"name": "s", "namespace": "default", "uid": "sink-uid", "generation": 2},
        "spec": {"amqp": {"url": "amqp://b"}, "window": 5},
        // So the API writes it.
        "status": {"confirmedRevision": made.0},
    });
    world.put("eventsinks", "s", &changed).await;
    world.crash();
    assert_eq!(by_object(&world.arrived(3).await)["a"], LIFE);
}

#[tokio::test]
async fn a_broker_that_goes_and_comes_back_misses_nothing() {
    let world = World::new();
    world.amqp().await;
    world.task("a").await;
    world.places.broker.set_down(true);
    world.task("b").await;
    world.until("it is told", |status| condition(status, "Connected")["reason"] == "Unreachable").await;
    world.places.broker.set_down(false);
    world.arrived(6).await;
    world.until("all is well", |status| connected(status) == "True" && status["backlog"].is_null()).await;
    let seen = by_object(&world.arrived(6).await);
    assert_eq!((&seen["a"][..], &seen["b"][..]), (&LIFE.map(String::from)[..], &LIFE.map(String::from)[..]));
}

#[tokio::test]
async fn a_crash_at_any_moment_repeats_messages_and_loses_none() {
    let mut world = World::new();
    world.amqp().await;
    for round in 0..20 {
        for task in 0..5 {
            world.task(&format!("t{round}-{task}")).await;
        }
        if round % 3 == 0 {
            world.places.broker.set_silent(true);
        }
        world.crash();
        world.places.broker.set_silent(false);
    }
    let expected: Vec<String> =
        (0..20).flat_map(|round| (0..5).map(move |task| format!("t{round}-{task}"))).collect();
    let complete = |ids: &[String]| {
        let seen = by_object(ids);
        expected.iter().all(|name| seen.get(name).is_some_and(|words| words.len() == 3))
    };
    let ids = || world.places.broker.kept().iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    wait_for("everything", || complete(&ids()), || format!("{}", world.status())).await;
    for (object, words) in by_object(&ids()) {
        assert_eq!(words, LIFE, "{object}");
    }
}

#[tokio::test]
async fn a_message_that_nobody_wants_waits_and_those_behind_it_too() {
    let world = World::new();
    world.places.broker.refuse_topic(Some(("cds.job.starting", None)));
    world.amqp().await;
    world.task("a").await;
    world.until("it is told", |status| condition(status, "Delivering")["reason"] == "Unroutable").await;
    assert!(world.places.broker.kept().is_empty(), "running and success must not overtake");
    world.places.broker.refuse_topic(None);
    assert_eq!(by_object(&world.arrived(3).await)["a"], LIFE);
}

#[tokio::test]
async fn a_message_that_is_refused_for_good_is_set_aside_and_the_next_goes() {
    let world = World::new();
    world.places.broker.refuse_topic(Some(("cds.job.running", Some(2))));
    world.amqp().await;
    world.task("a").await;
    assert_eq!(world.arrived(2).await, ["a/starting", "a/success"]);
    assert_eq!(world.places.dead.kept()[0].id, "a/running");
    world.until("it is counted", |status| status["deadLettered"] == 1).await;
}

#[tokio::test]
async fn what_was_forgotten_is_told_as_it_is_and_loudly() {
    let history = History { max_changes: 5, ..History::default() };
    let settings = Settings { max_held_changes: 10, ..Settings::default() };
    let world = World::with(history, settings, Places::default());
    world.amqp().await;
    world.places.broker.set_down(true);
    for number in 0..30 {
        world.task(&format!("t{number}")).await;
    }
    world.places.broker.set_down(false);
    let ids = || world.places.broker.kept().iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    wait_for(
        "everything",
        || by_object(&ids()).values().filter(|words| words.len() == 3).count() == 30,
        || format!("{:?}", by_object(&ids())),
    )
    .await;
    for words in by_object(&ids()).values() {
        assert_eq!(words, &LIFE);
    }
    world.until("it was loud", |status| status["resyncs"].as_u64() >= Some(1)).await;
    world.until("it is over", |status| condition(status, "Lagging")["status"] == "False").await;
}

#[tokio::test]
async fn a_paused_sink_says_nothing_and_goes_on_where_it_was() {
    let world = World::new();
    world.amqp().await;
    world.task("a").await;
    world.arrived(3).await;
    world.until("it is written down", |status| status["confirmed"] == 3).await;
    world.sink(&json!({"amqp": {"url": "amqp://b"}, "suspend": true})).await;
    world.until("it rests", |status| condition(status, "Connected")["reason"] == "Suspended").await;
    world.task("b").await;
    world.sink(&json!({"amqp": {"url": "amqp://b"}})).await;
    assert_eq!(by_object(&world.arrived(6).await)["b"], LIFE);
}

#[tokio::test]
async fn a_test_message_is_sent_once_and_its_outcome_told() {
    let world = World::new();
    world.amqp().await;
    world.annotate("muster.dev/sink-test", "one").await;
    world.until("it was sent", |status| status["test"]["request"] == "one").await;
    assert_eq!(
        (&world.status()["test"]["done"], world.arrived(1).await),
        (&json!(true), vec!["test/one".to_owned()])
    );
    world.places.broker.set_down(true);
    world.annotate("muster.dev/sink-test", "two").await;
    world.until("it failed", |status| status["test"]["request"] == "two").await;
    let test = &world.status()["test"];
    assert_eq!(test["done"], false);
    assert!(test["message"].as_str().is_some_and(|said| said.contains("Unreachable")), "{test}");
}

#[tokio::test]
async fn a_replay_tells_again_under_the_same_ids() {
    let world = World::new();
    world.amqp().await;
    let before = world.store.revision();
    world.task("a").await;
    world.arrived(3).await;
    world.annotate("muster.dev/sink-replay", &format!("{before}#1")).await;
    let arrived = world.arrived(6).await;
    assert_eq!(arrived[..3], arrived[3..6]);
    world.annotate("muster.dev/sink-replay", "999999999#2").await;
    world.until("it is refused", |status| status["replay"]["request"] == "999999999#2").await;
    assert_eq!(world.status()["replay"]["done"], false);
    world.annotate("muster.dev/sink-replay", "2020-01-01T00:00:00Z#3").await;
    assert!(world.arrived(9).await.len() >= 9, "a time works too");
}

#[tokio::test]
async fn a_journal_outside_counts_unless_what_it_says_cannot_be() {
    let note = Arc::new(Note::default());
    let places = Places { note: Some(note.clone()), ..Places::default() };
    let mut world = World::with(History::default(), Settings::default(), places);
    world.amqp().await;
    let before = world.store.revision();
    world.task("a").await;
    world.arrived(3).await;
    let written = || note.value.lock().as_deref().and_then(|text| text.parse::<u64>().ok());
    wait_for("the note", || written() > Some(before.0 + 3), || format!("{:?}", written())).await;
    // Set back: told again.
    *note.value.lock() = Some(before.to_string());
    world.crash();
    world.arrived(6).await;
    for wrong in ["not a number", "99999999999"] {
        wait_for("the note", || written() > Some(before.0 + 3), || format!("{:?}", written())).await;
        *note.value.lock() = Some(wrong.to_owned());
        world.crash();
        let name = format!("after-{}", wrong.len());
        world.task(&name).await;
        wait_for(
            "life goes on",
            || world.places.broker.kept().iter().any(|it| it.id == format!("{name}/success")),
            || world.status().to_string(),
        )
        .await;
    }
}

#[tokio::test]
async fn without_its_journal_a_sink_stops_and_says_so() {
    let note = Arc::new(Note::default());
    let places = Places { note: Some(note.clone()), ..Places::default() };
    let world = World::with(History::default(), Settings::default(), places);
    world.amqp().await;
    *note.broken.lock() = true;
    world.task("a").await;
    world.until("it is told", |status| condition(status, "Connected")["reason"] == "JournalFailed").await;
    *note.broken.lock() = false;
    world
        .until("it goes on", |status| connected(status) == "True" && status["confirmed"].as_u64() >= Some(3))
        .await;
}

#[tokio::test]
async fn of_two_relays_one_tells_and_the_other_takes_over() {
    let lease = Duration::from_millis(600);
    let first = Settings { holder: "one".into(), lease, ..Settings::default() };
    let world = World::with(History::default(), first, Places::default());
    world.amqp().await;
    let second = Settings { holder: "two".into(), lease, ..Settings::default() };
    let other = start(&world.store, &world.places, &second);
    world.task("a").await;
    assert_eq!(world.arrived(3).await.len(), 3);
    world.relay.abort();
    world.task("b").await;
    let seen = by_object(&world.arrived_whole("b").await);
    assert_eq!(seen["b"], LIFE);
    other.abort();
}

#[tokio::test]
async fn the_store_holds_what_is_not_told_and_lets_go_of_it_afterwards() {
    let world = World::new();
    world.amqp().await;
    world.places.broker.set_silent(true);
    world.task("a").await;
    world.arrived(1).await;
    let told = world.store.held_after().expect("the sink holds");
    assert!(told < world.store.revision());
    world.places.broker.set_silent(false);
    world.places.broker.set_down(true);
    world.places.broker.set_down(false);
    let newest = world.store.revision();
    wait_for("it is let go", || world.store.held_after() > Some(told), || format!("{told} {newest}")).await;
    let key = Key::new(&ResourceName::new("eventsinks.muster.dev"), "default", "s");
    world
        .store
        .commit(Batch::of(Write::Delete { key, expect: Precondition::Exists }))
        .await
        .expect("deleted");
    wait_for("a sink that is gone holds nothing", || world.store.held_after().is_none(), String::new).await;
}
