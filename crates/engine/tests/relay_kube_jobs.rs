//! Jobs of a cluster, told by the relay: whatever happens to the cluster, the broker or the server.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::relay::{Outside, Settings, run};
use muster_ports::clock::SystemClock;
use muster_ports::kube_jobs::MemoryKubeJobs;
use muster_ports::publisher::{
    Boxed, Journal, JournalError, MemoryPublisher, PublishError, Publisher, Sinks,
};
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_types::{EventSink, KubeJobEnd, KubeJobView, KubePodView};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval};

#[derive(Clone, Default)]
struct Places {
    broker: MemoryPublisher,
    note: Option<Arc<Note>>,
}

#[derive(Default)]
struct Note(Mutex<Option<String>>);

impl Journal for Note {
    fn read(&self) -> Boxed<'_, Result<Option<String>, JournalError>> {
        Box::pin(async { Ok(self.0.lock().clone()) })
    }

    fn write<'a>(&'a self, value: &'a str) -> Boxed<'a, Result<(), JournalError>> {
        Box::pin(async move {
            *self.0.lock() = Some(value.to_owned());
            Ok(())
        })
    }
}

impl Sinks for Places {
    fn publisher(&self, _: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        Ok(Arc::new(self.broker.clone()))
    }

    fn dead_letters(&self, _: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        Ok(Arc::new(MemoryPublisher::default()))
    }

    fn journal(&self, _: &EventSink) -> Result<Option<Arc<dyn Journal>>, PublishError> {
        Ok(self.note.clone().map(|note| note as Arc<dyn Journal>))
    }
}

struct World {
    log: MemoryLog,
    store: Store,
    cluster: MemoryKubeJobs,
    places: Places,
    relay: Option<JoinHandle<()>>,
}

fn open(log: &MemoryLog) -> Store {
    Store::open(log.clone(), History::default(), SystemClock).expect("a store")
}

impl World {
    fn new(places: Places) -> Self {
        let log = MemoryLog::default();
        let store = open(&log);
        let mut world = Self { log, store, cluster: MemoryKubeJobs::default(), places, relay: None };
        world.start();
        world
    }

    fn start(&mut self) {
        let outside = Outside {
            store: self.store.clone(),
            clock: Arc::new(SystemClock),
            sinks: Arc::new(self.places.clone()),
            telemetry: Telemetry::default(),
            kube_jobs: Some(Arc::new(self.cluster.clone())),
        };
        self.relay = Some(tokio::spawn(run(outside, Settings::default())));
    }

    /// As a `kill -9` would.
    fn stop(&mut self) {
        self.relay.take().expect("it runs").abort();
        self.store.close();
        self.store = open(&self.log);
    }

    /// All that was kept is gone.
    fn lose_store(&mut self) {
        self.stop();
        self.log = MemoryLog::default();
        self.store = open(&self.log);
    }

    async fn sink(&self, source: &Value) {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink",
            "metadata": {"name": "s", "namespace": "default", "uid": "sink-uid", "resourceVersion": "", "generation": 1},
            "spec": {"amqp": {"url": "amqp://b"}, "sources": {"kubeJobs": source}},
        });
        let sink: EventSink = serde_json::from_value(object).expect("a sink");
        let draft = Draft::of_object(serde_json::to_vec(&sink).expect("JSON")).expect("a place");
        let write = Write::Put { key: key(), expect: Precondition::Absent, draft };
        self.store.commit(Batch::of(write)).await.expect("it is committed");
        self.until("jobs are seen", |status| watching(status)["status"] == "True").await;
    }

    fn status(&self) -> Value {
        let stored = self.store.get(&key()).map(|stored| stored.json().to_vec()).unwrap_or_default();
        serde_json::from_slice::<Value>(&stored).unwrap_or_default()["status"].clone()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        wait_for(what, || holds(&self.status()), || self.status().to_string()).await;
    }

    /// Ids of what arrived, each once, by object, when the last of them is there.
    async fn told(&self, last: &str) -> Vec<String> {
        let ids = || -> Vec<String> {
            let mut ids = Vec::new();
            for message in self.places.broker.kept() {
                if !ids.contains(&message.id) {
                    ids.push(message.id.clone());
                }
            }
            ids
        };
        wait_for(last, || ids().iter().any(|id| id == last), || format!("{:?} {}", ids(), self.status()))
            .await;
        let mut ids = ids();
        // Of one object they come in order, of different ones in any.
        ids.sort_by_key(|id| id.split('/').next().map(str::to_owned));
        ids
    }

    /// A job that begins to run.
    fn begin(&self, uid: &str) {
        self.cluster.put_job(&job(uid));
        self.cluster.put_pod(&pod(uid));
    }

    fn complete(&self, uid: &str) {
        let end = Some(KubeJobEnd::Complete);
        self.cluster.put_job(&KubeJobView { succeeded: 1, end, ..job(uid) });
    }
}

fn key() -> Key {
    Key::new(&ResourceName::new("eventsinks.muster.dev"), "default", "s")
}

fn watching(status: &Value) -> &Value {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|it| it["type"] == "Watching").unwrap_or(&Value::Null)
}

async fn wait_for(what: &str, holds: impl Fn() -> bool, show: impl Fn() -> String) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut looks = interval(Duration::from_millis(2));
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come: {}", show());
        looks.tick().await;
    }
}

fn job(uid: &str) -> KubeJobView {
    KubeJobView {
        uid: uid.into(),
        name: format!("cds-{uid}"),
        namespace: "own".into(),
        ..KubeJobView::default()
    }
}

fn pod(job: &str) -> KubePodView {
    let uid = format!("{job}-pod");
    KubePodView { uid, job: job.into(), started: Some(5), ..KubePodView::default() }
}

#[tokio::test]
async fn a_job_is_told_of_from_its_start_to_its_end_and_others_are_not() {
    let world = World::new(Places::default());
    world.begin("before");
    world.sink(&json!({})).await;
    world.cluster.put_job(&KubeJobView { namespace: "elsewhere".into(), ..job("x") });
    world.begin("a");
    world.complete("a");
    assert_eq!(world.told("a/success").await, ["a/starting", "a/running", "a/success"]);
    world.complete("before");
    let told = world.told("before/success").await;
    assert_eq!(told[3..], ["before/success"], "what came before the first look is not told");
}

#[tokio::test]
async fn what_happened_while_nobody_looked_is_told_also_of_jobs_that_are_gone_by_now() {
    let mut world = World::new(Places::default());
    world.sink(&json!({})).await;
    world.begin("a");
    world.told("a/running").await;
    world.stop();
    world.complete("a");
    world.begin("b");
    world.complete("b");
    world.cluster.delete_job("b");
    let lists = world.cluster.lists();
    world.start();
    let told = world.told("b/success").await;
    assert_eq!(told, ["a/starting", "a/running", "a/success", "b/starting", "b/running", "b/success"]);
    assert_eq!(world.cluster.lists(), lists, "the watch was taken up where it was");
}

#[tokio::test]
async fn after_the_cluster_forgot_what_was_missed_is_told_once_and_the_sink_says_so() {
    let mut world = World::new(Places::default());
    world.sink(&json!({})).await;
    for uid in ["a", "b"] {
        world.begin(uid);
        world.told(&format!("{uid}/running")).await;
    }
    world.stop();
    world.complete("a");
    world.cluster.delete_job("b");
    world.begin("c");
    world.cluster.forget();
    world.start();
    let told = world.told("c/running").await;
    let expected =
        ["a/starting", "a/running", "a/success", "b/starting", "b/running", "c/starting", "c/running"];
    assert_eq!(told, expected);
    world.until("it is said", |status| watching(status)["reason"] == "AfterGap").await;
    let said = watching(&world.status())["message"].to_string();
    assert!(said.contains("1 jobs went without their end being seen"), "{said}");
    world.complete("c");
    world.told("c/success").await;
}

#[tokio::test]
async fn who_wants_the_latest_alone_is_not_told_what_was_missed() {
    let mut world = World::new(Places::default());
    world.sink(&json!({"onExpired": "latest"})).await;
    world.begin("a");
    world.told("a/running").await;
    world.stop();
    world.complete("a");
    world.cluster.forget();
    world.start();
    world.until("it is said", |status| watching(status)["reason"] == "AfterGap").await;
    world.begin("b");
    world.complete("b");
    let told = world.told("b/success").await;
    assert_eq!(told, ["a/starting", "a/running", "b/starting", "b/running", "b/success"]);
}

#[tokio::test]
async fn jobs_are_seen_while_the_broker_is_away() {
    let world = World::new(Places::default());
    world.sink(&json!({})).await;
    world.places.broker.set_down(true);
    world.begin("a");
    world.complete("a");
    let seen = || {
        let snapshot = world.store.snapshot(&ResourceName::new("kubejobs.internal"));
        snapshot.range(Some("sink-uid"), None).any(|kept| kept.json().windows(8).any(|it| it == b"complete"))
    };
    wait_for("the end is kept", seen, || world.status().to_string()).await;
    // Nothing of it can be learned from the cluster any more.
    world.cluster.delete_job("a");
    world.cluster.forget();
    world.places.broker.set_down(false);
    assert_eq!(world.told("a/success").await, ["a/starting", "a/running", "a/success"]);
}

#[tokio::test]
async fn a_journal_outside_holds_the_version_of_the_cluster_and_suffices_to_go_on() {
    let note = Arc::new(Note::default());
    let mut world = World::new(Places { note: Some(note.clone()), ..Places::default() });
    world.sink(&json!({})).await;
    world.begin("a");
    world.told("a/running").await;
    let version = world.cluster.version().to_string();
    wait_for("the version", || *note.0.lock() == Some(version.clone()), || format!("{:?}", note.0.lock()))
        .await;
    world.lose_store();
    world.complete("a");
    world.begin("b");
    world.start();
    world.sink(&json!({})).await;
    let told = world.told("b/running").await;
    assert_eq!(told, ["a/starting", "a/running", "a/success", "b/starting", "b/running"]);
}

#[tokio::test]
async fn a_journal_that_holds_nonsense_or_too_old_a_version_is_told() {
    for (value, expected) in
        [("nonsense", vec!["b/starting"]), ("1", vec!["a/starting", "a/running", "b/starting"])]
    {
        let note = Arc::new(Note(Mutex::new(Some(value.to_owned()))));
        let world = World::new(Places { note: Some(note), ..Places::default() });
        world.begin("a");
        world.cluster.forget();
        world.sink(&json!({})).await;
        world.cluster.put_job(&job("b"));
        assert_eq!(world.told("b/starting").await, expected, "{value}");
    }
}

#[tokio::test]
async fn a_cluster_that_goes_is_told_and_followed_again_when_it_comes() {
    let world = World::new(Places::default());
    world.sink(&json!({})).await;
    world.cluster.set_down(true);
    world.until("it is told", |status| watching(status)["reason"] == "ClusterUnreachable").await;
    world.begin("a");
    world.cluster.set_down(false);
    world.told("a/running").await;
    world.until("all is well", |status| watching(status)["status"] == "True").await;
}
