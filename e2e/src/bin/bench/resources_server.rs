//! Reports and changes of managed resources through a real server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_types::timestamp::MicroTimestamp;
use serde_json::json;

use crate::clients::{Connection, Endpoint, Timing, load};
use crate::muster_peer::{Muster, TASKS};
use crate::resources::{ADAPTERS, report_of, type_of};

const TYPES: &str = "/apis/muster.dev/v1alpha1/resourcetypes";
const OWN: &str = "/apis/muster.dev/v1alpha1/namespaces/default/adapters";
const CLUSTERS: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default/clusters";
const PROBES: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default/probes";
const JSON: &str = "application/json";
/// Clients that report at a time.
const CLIENTS: usize = 64;
/// Changes whose way to a task is measured.
const CHANGES: usize = 200;

/// What was measured, in milliseconds but for the reports per second.
pub struct Served {
    pub reports: f64,
    pub report_p50: f64,
    pub report_p99: f64,
    pub start_p50: f64,
    pub start_p99: f64,
}

/// Measures a server of its own.
pub async fn measure(data: &Path, resources: usize) -> anyhow::Result<Served> {
    let server = Muster::start_with(data, &["--roles", "api,engine", "--slots", "2"]).await?;
    let mut connection = server.plain.connect().await?;
    create(&mut connection, TYPES, &type_of(ADAPTERS, false)).await?;
    let body = |number: usize| {
        let cluster = json!({
            "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": format!("cluster-{number:06}")}, "spec": {"size": 3},
        });
        cluster.to_string().into_bytes()
    };
    load(&server.plain, 16, resources, CLUSTERS, body).await?;
    // The first pulses are no part of what is measured.
    let last = format!("{CLUSTERS}/cluster-{:06}", resources - 1);
    wait_for_text(&mut connection, &last, "\"pulse\"").await?;
    let reports = hand_in(&server.plain, resources).await?;
    let changes = follow_changes(&server.plain, &mut connection).await?;
    let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
    Ok(Served {
        reports: reports.per_second(),
        report_p50: millis(reports.quantile(0.5)),
        report_p99: millis(reports.quantile(0.99)),
        start_p50: millis(changes.quantile(0.5)),
        start_p99: millis(changes.quantile(0.99)),
    })
}

async fn create(connection: &mut Connection, path: &str, object: &serde_json::Value) -> anyhow::Result<()> {
    let status = connection.round_trip("POST", path, JSON, object.to_string().as_bytes()).await?;
    if status != 201 {
        bail!("answer {status}: {}", connection.last_answer());
    }
    Ok(())
}

async fn wait_for_text(connection: &mut Connection, path: &str, text: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_mins(2);
    while Instant::now() < deadline {
        connection.round_trip("GET", path, JSON, b"").await?;
        if connection.last_answer_has(text) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("{path} never has {text}")
}

/// Every adapter reports once on every resource.
async fn hand_in(endpoint: &Endpoint, resources: usize) -> anyhow::Result<Timing> {
    let next = Arc::new(AtomicUsize::new(0));
    let all = resources * ADAPTERS;
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        connections.push(endpoint.connect().await?);
    }
    let begun = Instant::now();
    let workers = connections.into_iter().map(|mut connection| {
        let next = next.clone();
        tokio::spawn(async move {
            let mut micros = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= all {
                    return anyhow::Ok(micros);
                }
                let path = format!("{CLUSTERS}/cluster-{:06}/statuses", number % resources);
                let now = MicroTimestamp::from_microsecond(SystemClock.now().0 * 1000);
                let body = serde_json::to_vec(&report_of(number / resources, now))?;
                let sent = Instant::now();
                let status = connection.round_trip("PUT", &path, JSON, &body).await?;
                if status != 200 {
                    bail!("answer {status}: {}", connection.last_answer());
                }
                micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
        })
    });
    let mut micros = Vec::with_capacity(all);
    for worker in workers.collect::<Vec<_>>() {
        micros.extend(worker.await??);
    }
    Ok(Timing::new(micros, begun.elapsed()))
}

/// Changes a spec again and again, and waits each time until the task of its adapter runs, which it does for a moment.
async fn follow_changes(endpoint: &Endpoint, connection: &mut Connection) -> anyhow::Result<Timing> {
    let of_type = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": "probes"},
        "spec": {"names": {"kind": "Probe", "plural": "probes"}, "adapters": ["run"]},
    });
    create(connection, TYPES, &of_type).await?;
    let adapter = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Adapter", "metadata": {"name": "run"},
        "spec": {"resourceType": "probes", "task": {"spec": {"container": {"command": ["sleep", "0.05"]}}}},
    });
    create(connection, OWN, &adapter).await?;
    let probe = json!({
        "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Probe", "metadata": {"name": "probe"}, "spec": {"size": 0},
    });
    create(connection, PROBES, &probe).await?;
    let mut watch = Watched::new(endpoint).await?;
    watch.until("\"state\":\"Succeeded\"").await?;
    let mut micros = Vec::new();
    let begun = Instant::now();
    for change in 1..=CHANGES {
        let body = json!({"spec": {"size": change}}).to_string();
        let sent = Instant::now();
        let path = format!("{PROBES}/probe");
        let status =
            connection.round_trip("PATCH", &path, "application/merge-patch+json", body.as_bytes()).await?;
        if status != 200 {
            bail!("answer {status}: {}", connection.last_answer());
        }
        watch.until("\"state\":\"Running\"").await?;
        micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        watch.until("\"state\":\"Succeeded\"").await?;
    }
    Ok(Timing::new(micros, begun.elapsed()))
}

/// The tasks, as they change.
struct Watched {
    connection: Connection,
    buffer: Vec<u8>,
}

impl Watched {
    async fn new(endpoint: &Endpoint) -> anyhow::Result<Self> {
        let mut connection = endpoint.connect().await?;
        connection.send("GET", &format!("{TASKS}?watch=true"), JSON, b"").await?;
        Ok(Self { connection, buffer: Vec::new() })
    }

    /// Reads on until a text came by.
    async fn until(&mut self, text: &str) -> anyhow::Result<()> {
        let mut part = vec![0; 64 * 1024];
        loop {
            let found = end_of(&self.buffer, text.as_bytes());
            if let Some(end) = found {
                self.buffer.drain(..end);
                return Ok(());
            }
            let read = tokio::time::timeout(Duration::from_secs(30), self.connection.read_some(&mut part));
            match read.await.with_context(|| format!("{text} was not seen"))?? {
                0 => bail!("the watch ended"),
                read => self.buffer.extend_from_slice(&part[..read]),
            }
        }
    }
}

fn end_of(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle).map(|at| at + needle.len())
}
