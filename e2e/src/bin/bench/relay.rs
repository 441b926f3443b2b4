//! `bench relay`: from a committed change to the broker's confirmation, beside a bare publisher with the same window.
//!
//! The relay runs in this process over a durable store; RabbitMQ is a real one. What is told was committed before: the figure is
//! that of the relay and not of the store.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use muster_e2e::brokers::Rabbit;
use muster_egress::EgressPolicy;
use muster_engine::relay;
use muster_ports::clock::SystemClock;
use muster_ports::publisher::{Boxed, Journal, PublishError, Publisher, Session, Sinks, Verdict};
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, Write};
use muster_ports::telemetry::Telemetry;
use muster_relay_sinks::address::Address;
use muster_relay_sinks::amqp::{AmqpPublisher, Consumer};
use muster_store_sql::SqliteLog;
use muster_types::{EventSink, Message, Task};
use serde_json::json;
use tokio::sync::Mutex;

use crate::plot::{Bar, Series, bars, number};
use crate::report::{Report, circumstances};

/// To reach: a share of the bare publisher, and added latency when idle.
const GOAL_OF_SHARE: f64 = 0.8;
const GOAL_OF_LATENCY: f64 = 20.0;
/// Messages under way at once.
const WINDOW: usize = 2000;
/// Single messages whose latency is measured.
const SINGLES: usize = 300;
const EXCHANGE: &str = "bench";

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let count = if quick { 20_000 } else { 200_000 };
    let rabbit = Rabbit::start();
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let found = runtime.block_on(measure(&rabbit, dir.path(), count))?;
    let share = found.relay / found.bare;
    let mut report = Report::default();
    report.line(
        format!("messages per second, {count} changes of as many tasks"),
        format!("{}/s", number(found.relay)),
        format!(
            "bare publisher {}/s: {:.0} %; goal {:.0} %",
            number(found.bare),
            share * 100.0,
            GOAL_OF_SHARE * 100.0
        ),
    );
    report.line(
        "p99 from commit to confirmation, idle",
        format!("{:.1} ms", found.latency),
        format!("bare publisher {:.1} ms; goal {GOAL_OF_LATENCY} ms more", found.bare_latency),
    );
    if write {
        let bar = |label: &str, value: f64, series| Bar { label: label.into(), value, series };
        let plot =
            [bar("relay", found.relay, Series::Muster), bar("bare publisher", found.bare, Series::Limit)];
        let svg = bars("Messages confirmed by RabbitMQ", "per second", &plot);
        report.write("relay", &circumstances("cargo xtask bench relay"), &svg)?;
    }
    Ok(())
}

struct Found {
    relay: f64,
    bare: f64,
    latency: f64,
    bare_latency: f64,
}

async fn measure(rabbit: &Rabbit, dir: &Path, count: usize) -> anyhow::Result<Found> {
    let address = Address::parse(&rabbit.url())?;
    // A queue that takes everything, emptied so that it does not slow the broker down.
    let mut consumer = Consumer::open(&address, EXCHANGE, "bench", &["#"], 1000).await?;
    let emptied = tokio::spawn(async move {
        while let Ok(delivery) = consumer.next().await {
            if delivery.tag % 200 == 0 && consumer.acknowledge(delivery.tag, true).await.is_err() {
                return;
            }
        }
    });
    let publisher = AmqpPublisher::new(address, EXCHANGE, EgressPolicy::unrestricted().into());
    let bare = bare_rate(&publisher, count).await?;
    let bare_latency = bare_latency(&publisher).await?;

    let tap = Tap { inner: Arc::new(publisher), heard: Arc::default(), confirmed: Arc::default() };
    let (heard, confirmed) = (tap.heard.clone(), tap.confirmed.clone());
    let forever = History {
        max_changes: usize::MAX,
        max_age: Duration::MAX,
        max_bytes: usize::MAX,
        fresh: Duration::MAX,
    };
    let store = Store::open(SqliteLog::open(&dir.join("store.db"))?, forever, SystemClock)?;
    put(&store, "eventsinks", "bench", &sink(true)?, Precondition::Absent).await?;
    let outside = relay::Outside {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        sinks: Arc::new(tap),
        telemetry: Telemetry::default(),
        kube_jobs: None,
    };
    let relay = tokio::spawn(relay::run(outside, relay::Settings::default()));
    // Begins where it is, and rests.
    put(&store, "eventsinks", "bench", &sink(false)?, Precondition::Exists).await?;
    while store.held_after().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    put(&store, "eventsinks", "bench", &sink(true)?, Precondition::Exists).await?;
    while store.held_after().is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for start in (0..count).step_by(1000) {
        let writes: Vec<_> = (start..(start + 1000).min(count))
            .map(|at| new_task(&format!("t{at}")))
            .collect::<Result<_, _>>()?;
        store.commit(Batch { checks: Vec::new(), writes }).await?;
    }
    let begun = Instant::now();
    put(&store, "eventsinks", "bench", &sink(false)?, Precondition::Exists).await?;
    while confirmed.load(Ordering::Relaxed) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let relay_rate = per_second(count, begun);

    let mut latencies = Vec::new();
    for at in 0..SINGLES {
        let name = format!("single{at}");
        store.commit(Batch::of(new_task(&name)?)).await?;
        let committed = Instant::now();
        let id = format!("{name}/starting");
        let heard_at = loop {
            if let Some(at) = heard.lock().await.get(&id) {
                break *at;
            }
            tokio::time::sleep(Duration::from_micros(200)).await;
        };
        latencies.push(heard_at.saturating_duration_since(committed).as_secs_f64() * 1000.0);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    relay.abort();
    emptied.abort();
    Ok(Found { relay: relay_rate, bare, latency: p99(latencies), bare_latency })
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn per_second(count: usize, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64()
}

fn p99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).copied().unwrap_or(0.0)
}

fn plain(at: u64) -> (u64, Arc<Message>) {
    let uid = format!("bare{at}");
    let body = json!({"job-id": uid, "job-name": uid, "job-namespace": "default", "retry-count": 0});
    let message = Message {
        id: format!("{uid}/starting"),
        key: uid.as_str().into(),
        topic: "cds.job.starting".to_owned(),
        content_type: "application/json",
        attributes: Vec::new(),
        body: body.to_string().into_bytes(),
    };
    (at, Arc::new(message))
}

/// The same messages, made before, with the same window and nothing else.
async fn bare_rate(publisher: &AmqpPublisher, count: usize) -> anyhow::Result<f64> {
    let messages: Vec<_> = (0..count as u64).map(plain).collect();
    let mut session = publisher.open().await?;
    let (mut sent, mut confirmed) = (0, 0);
    let begun = Instant::now();
    while confirmed < count {
        let end = (confirmed + WINDOW).min(count);
        if sent < end {
            session.send(&messages[sent..end]).await?;
            sent = end;
        }
        confirmed += session.verdicts().await?.len();
    }
    Ok(per_second(count, begun))
}

async fn bare_latency(publisher: &AmqpPublisher) -> anyhow::Result<f64> {
    let mut session = publisher.open().await?;
    let mut latencies = Vec::new();
    for at in 0..SINGLES as u64 {
        let begun = Instant::now();
        session.send(&[plain(1_000_000 + at)]).await?;
        session.verdicts().await?;
        latencies.push(begun.elapsed().as_secs_f64() * 1000.0);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(p99(latencies))
}

fn sink(suspend: bool) -> anyhow::Result<Vec<u8>> {
    let sink: EventSink = serde_json::from_value(json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink",
        "metadata": {"name": "bench", "namespace": "default", "uid": "bench", "generation": 1},
        "spec": {"amqp": {"url": "amqp://in-this-process"}, "window": WINDOW, "suspend": suspend},
    }))?;
    Ok(serde_json::to_vec(&sink)?)
}

fn new_task(name: &str) -> anyhow::Result<Write> {
    let task: Task = serde_json::from_value(json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-11-15T12:00:00Z"},
        "spec": {"container": {"command": ["sh", "-c", "echo hello"], "env": [{"name": "A", "value": "b"}]}},
    }))?;
    let key = Key::new(&ResourceName::new("tasks.muster.dev"), "default", name);
    let draft = Draft::of_object(serde_json::to_vec(&task)?).context("no place for the revision")?;
    Ok(Write::Put { key, expect: Precondition::Absent, draft })
}

async fn put(
    store: &Store,
    plural: &str,
    name: &str,
    json: &[u8],
    expect: Precondition,
) -> anyhow::Result<()> {
    let key = Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "default", name);
    let draft = Draft::of_object(json.to_vec()).context("no place for the revision")?;
    store.commit(Batch::of(Write::Put { key, expect, draft })).await?;
    Ok(())
}

/// A publisher that writes down when each message was confirmed.
#[derive(Clone)]
struct Tap {
    inner: Arc<dyn Publisher>,
    heard: Arc<Mutex<HashMap<String, Instant>>>,
    confirmed: Arc<AtomicUsize>,
}

struct TapSession {
    inner: Box<dyn Session>,
    tap: Tap,
    sent: HashMap<u64, Arc<Message>>,
}

impl Publisher for Tap {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Session>, PublishError>> {
        Box::pin(async {
            let inner = self.inner.open().await?;
            Ok(Box::new(TapSession { inner, tap: self.clone(), sent: HashMap::new() }) as Box<dyn Session>)
        })
    }
}

impl Session for TapSession {
    fn send<'a>(&'a mut self, messages: &'a [(u64, Arc<Message>)]) -> Boxed<'a, Result<(), PublishError>> {
        self.sent.extend(messages.iter().filter(|(_, it)| it.id.starts_with("single")).cloned());
        self.inner.send(messages)
    }

    fn verdicts(&mut self) -> Boxed<'_, Result<Vec<(u64, Verdict)>, PublishError>> {
        Box::pin(async {
            let verdicts = self.inner.verdicts().await?;
            let now = Instant::now();
            self.tap.confirmed.fetch_add(verdicts.len(), Ordering::Relaxed);
            for (number, _) in &verdicts {
                if let Some(message) = self.sent.remove(number) {
                    self.tap.heard.lock().await.insert(message.id.clone(), now);
                }
            }
            Ok(verdicts)
        })
    }
}

impl Sinks for Tap {
    fn publisher(&self, _: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        Ok(Arc::new(self.clone()))
    }

    fn dead_letters(&self, _: &EventSink) -> Result<Arc<dyn Publisher>, PublishError> {
        Err(PublishError::new("NoTarget", "nothing is set aside here"))
    }

    fn journal(&self, _: &EventSink) -> Result<Option<Arc<dyn Journal>>, PublishError> {
        Ok(None)
    }
}
