//! `bench resources`: reports of adapters, conditions, expressions and the sentinel, in this process on a durable store; and
//! the same through a real server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Context;
use futures_util::future::join_all;
use muster_engine::resources::{Resources, Settings};
use muster_expr::cel::{Program, Scope, Type};
use muster_ports::clock::{Clock as _, ManualClock, SystemClock};
use muster_ports::store::{
    Batch, CommitError, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write,
};
use muster_resources::root_conditions::fold_conditions;
use muster_resources::{TypeRules, accept_report};
use muster_store_sql::SqliteLog;
use muster_types::managed_resource::{Pulse, PulseReason};
use muster_types::timestamp::MicroTimestamp;
use muster_types::{AdapterReport, ManagedResource, Millis, ResourceType};
use serde_json::{Value, json};

use crate::plot::{Bar, Series, bars, number};
use crate::report::{Report, circumstances};
use crate::resources_server;

/// Adapters of each resource.
pub const ADAPTERS: usize = 8;
/// To reach: reports per second, an idle pass, and from a change to the start of a task.
const GOAL_OF_REPORTS: f64 = 5_000.0;
const GOAL_OF_IDLE_MILLIS: f64 = 5.0;
pub const GOAL_OF_START_MILLIS: f64 = 50.0;
/// Writers at a time.
const WRITERS: usize = 64;
/// Resources that are due in one pass.
const DUE: usize = 100;

/// The seed's two conditions.
const AVAILABLE: &str = "self.items.all(i, i.observed_generation == self.items[0].observed_generation && \
    i.conditions.exists(c, c.type == 'Available' && c.status == 'True'))";
const READY: &str = "available && self.items.all(i, i.observed_generation == generationN)";

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let (resources, sentinel) = if quick { (500, 5_000) } else { (10_000, 100_000) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    let dir = tempfile::tempdir()?;

    let (plain, ruled) = (cost_of_report(false)?, cost_of_report(true)?);
    report.line(format!("deciding one report, {ADAPTERS} adapters"), micros(plain), "pure: no store");
    report.line("the same with the seed's two CEL conditions", micros(ruled), "");
    report.line("one CEL condition over eight reports", micros(cost_of_expression()?), "compiled before");

    let durable = runtime.block_on(durable_reports(dir.path(), resources))?;
    report.line(
        format!("durable reports, {resources} resources × {ADAPTERS} adapters"),
        format!("{}/s", number(durable)),
        format!("goal {}/s; read, decided and committed, {WRITERS} at a time", number(GOAL_OF_REPORTS)),
    );
    let served = runtime.block_on(resources_server::measure(&dir.path().join("server"), resources))?;
    report.line(
        "durable reports through the server, 64 clients",
        format!("{}/s", number(served.reports)),
        format!("p50 {:.2} ms, p99 {:.2} ms", served.report_p50, served.report_p99),
    );
    report.line(
        "from a change of the spec to the start of the adapter's task",
        format!("p99 {:.2} ms", served.start_p99),
        format!(
            "goal {GOAL_OF_START_MILLIS} ms; p50 {:.2} ms, over HTTP, until Running is seen",
            served.start_p50
        ),
    );

    let small = runtime.block_on(passes(sentinel / 100))?;
    let large = runtime.block_on(passes(sentinel))?;
    report.line(
        format!("idle pass of the sentinel over {sentinel} resources"),
        format!("{:.4} ms", large.idle),
        format!("goal {GOAL_OF_IDLE_MILLIS} ms; over {} resources {:.4} ms", sentinel / 100, small.idle),
    );
    report.line(
        format!("pass in which {DUE} of {sentinel} resources are due"),
        format!("{:.2} ms", large.due),
        format!("over {} resources {:.2} ms", sentinel / 100, small.due),
    );
    report.line(
        format!("start with {sentinel} resources"),
        format!("{:.2} s", large.start),
        "until all are decided on",
    );
    if write {
        let bar = |label: &str, value: f64, series| Bar { label: label.into(), value, series };
        let plot = [
            bar("reports, in process", durable, Series::Muster),
            bar("reports, through the server", served.reports, Series::Muster),
            bar("goal", GOAL_OF_REPORTS, Series::Limit),
        ];
        let svg = bars("Durable reports of adapters", "/s", &plot);
        report.write("resources", &circumstances("cargo xtask bench resources"), &svg)?;
    }
    Ok(())
}

fn micros(seconds: f64) -> String {
    format!("{:.1} µs", seconds * 1e6)
}

/// A type that requires so many adapters.
pub fn type_of(adapters: usize, ruled: bool) -> Value {
    let names: Vec<_> = (0..adapters).map(|index| format!("adapter-{index}")).collect();
    let conditions =
        json!([{"type": "SeedAvailable", "status": AVAILABLE}, {"type": "SeedReady", "status": READY}]);
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": "clusters"},
        "spec": {
            "names": {"kind": "Cluster", "plural": "clusters"},
            "adapters": names,
            "conditions": if ruled { conditions } else { json!([]) },
        },
    })
}

fn rules(adapters: usize, ruled: bool) -> anyhow::Result<TypeRules> {
    let object: ResourceType = serde_json::from_value(type_of(adapters, ruled))?;
    TypeRules::compile(&object.spec).map_err(|problems| anyhow::anyhow!("{problems:?}"))
}

fn resource(number: usize) -> ManagedResource {
    let mut resource =
        ManagedResource::new("Cluster", "default", &format!("cluster-{number:06}"), json!({"size": 3}));
    resource.metadata.uid = format!("0190b0a0-0000-7000-8000-{number:012x}");
    resource.metadata.generation = 1;
    resource
}

/// The report of an adapter.
pub fn report_of(adapter: usize, seen: MicroTimestamp) -> AdapterReport {
    let condition =
        |r#type: &str| json!({"type": r#type, "status": "True", "reason": "Done", "message": "it is there"});
    let report = json!({
        "adapter": format!("adapter-{adapter}"), "observedGeneration": 1, "observedTime": seen,
        "conditions": [condition("Applied"), condition("Available"), condition("Health")],
        "data": {"endpoint": "https://example.org/path"},
    });
    serde_json::from_value(report).unwrap_or_default()
}

fn take_in(rules: &TypeRules, resource: &mut ManagedResource, adapter: usize, now: MicroTimestamp) {
    let verdict = accept_report(rules, resource, &report_of(adapter, now), true, now);
    if let Some(status) = verdict.ok().and_then(muster_resources::Verdict::into_status) {
        resource.status = status;
    }
}

/// Seconds to decide one report.
fn cost_of_report(ruled: bool) -> anyhow::Result<f64> {
    const ROUNDS: i64 = 20_000;
    let decided_by = rules(ADAPTERS, ruled)?;
    let mut resource = resource(0);
    let at = |round: i64| MicroTimestamp::from_microsecond(1_800_000_000_000_000 + round);
    for adapter in 0..ADAPTERS {
        take_in(&decided_by, &mut resource, adapter, at(0));
    }
    let reports: Vec<_> = (0..ROUNDS)
        .map(|round| report_of(usize::try_from(round).unwrap_or(0) % ADAPTERS, at(round + 1)))
        .collect();
    let begun = Instant::now();
    for (round, report) in (1..).zip(&reports) {
        let verdict = accept_report(&decided_by, &resource, report, true, at(round));
        if let Some(status) = verdict.ok().and_then(muster_resources::Verdict::into_status) {
            resource.status = status;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    Ok(begun.elapsed().as_secs_f64() / ROUNDS as f64)
}

/// Seconds to evaluate one condition.
fn cost_of_expression() -> anyhow::Result<f64> {
    const ROUNDS: u32 = 50_000;
    let conditions = json!([
        {"type": "Applied", "status": "True"}, {"type": "Available", "status": "True"}, {"type": "Health", "status": "True"},
    ]);
    let items: Vec<_> = (0..ADAPTERS)
        .map(|index| json!({"adapter": format!("adapter-{index}"), "observed_generation": 1, "conditions": conditions}))
        .collect();
    let document = json!({"items": items});
    let program = Program::compile(AVAILABLE, &[("self", Type::Map)], Type::Bool)?;
    let scope = Scope::default().with_json("self", &document);
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        std::hint::black_box(program.holds(&scope)?);
    }
    Ok(begun.elapsed().as_secs_f64() / f64::from(ROUNDS))
}

fn clusters() -> ResourceName {
    ResourceName::new("clusters.resources.muster.dev")
}

fn draft(object: &impl serde::Serialize) -> anyhow::Result<Draft> {
    Draft::of_object(serde_json::to_vec(object)?).context("no place for the revision")
}

async fn fill(store: &Store, objects: impl Iterator<Item = ManagedResource>) -> anyhow::Result<()> {
    let mut commits = Vec::new();
    for object in objects {
        let key = Key::new(&clusters(), &object.metadata.namespace, &object.metadata.name);
        let write = Write::Put { key, expect: Precondition::Absent, draft: draft(&object)? };
        commits.push(store.commit(Batch::of(write)));
        if commits.len() == 4096 {
            for outcome in join_all(std::mem::take(&mut commits)).await {
                outcome?;
            }
        }
    }
    for outcome in join_all(commits).await {
        outcome?;
    }
    Ok(())
}

/// Reports per second that were read, decided and are durable.
async fn durable_reports(dir: &Path, resources: usize) -> anyhow::Result<f64> {
    let store = Store::open(SqliteLog::open(&dir.join("store.db"))?, History::default(), SystemClock)?;
    let rules = Arc::new(rules(ADAPTERS, false)?);
    fill(&store, (0..resources).map(resource)).await?;
    let next = Arc::new(AtomicUsize::new(0));
    let all = resources * ADAPTERS;
    let begun = Instant::now();
    let workers = (0..WRITERS).map(|_| {
        let (store, rules, next) = (store.clone(), rules.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= all {
                    return anyhow::Ok(());
                }
                // Neighbours report on different resources, as adapters do.
                hand_in(&store, &rules, number % resources, number / resources).await?;
            }
        })
    });
    for worker in join_all(workers).await {
        worker??;
    }
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    Ok(all as f64 / begun.elapsed().as_secs_f64())
}

async fn hand_in(store: &Store, rules: &TypeRules, number: usize, adapter: usize) -> anyhow::Result<()> {
    let key = Key::new(&clusters(), "default", &format!("cluster-{number:06}"));
    loop {
        let stored = store.get(&key).context("a resource is missing")?;
        let mut resource: ManagedResource = serde_json::from_slice(stored.json())?;
        let now = MicroTimestamp::from_microsecond(SystemClock.now().0 * 1000);
        take_in(rules, &mut resource, adapter, now);
        resource.metadata.resource_version.clear();
        let (expect, draft) = (Precondition::At(stored.revision), draft(&resource)?);
        match store.commit(Batch::of(Write::Put { key: key.clone(), expect, draft })).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What passes of the sentinel cost, in milliseconds, and a start, in seconds.
struct Passes {
    idle: f64,
    due: f64,
    start: f64,
}

/// Resources that are Ready; some were reported on a little earlier than the rest.
async fn passes(count: usize) -> anyhow::Result<Passes> {
    const ROUNDS: u32 = 2_000;
    let clock = ManualClock::default();
    clock.advance(1_800_000_000_000);
    let store = Store::open_inline(MemoryLog::default(), History::default(), clock.clone())?;
    let object: ResourceType = serde_json::from_value(type_of(2, false))?;
    let types = ResourceName::new("resourcetypes.muster.dev");
    let write = Write::Put {
        key: Key::new(&types, "", "clusters"),
        expect: Precondition::Absent,
        draft: draft(&object)?,
    };
    store.commit(Batch::of(write)).await?;
    let rules = rules(2, false)?;
    let now = clock.now();
    let ready = |number: usize| {
        let mut resource = resource(number);
        let early = if number < DUE { 60 } else { 0 };
        let time = Millis(now.0 - early * 1000);
        for adapter in 0..2 {
            take_in(&rules, &mut resource, adapter, MicroTimestamp::from_microsecond(time.0 * 1000));
        }
        let time = time.to_timestamp();
        resource.status.pulse =
            Some(Pulse { sequence: 1, generation: 1, reason: PulseReason::Created, time });
        fold_conditions(&rules, &mut resource, time);
        resource
    };
    fill(&store, (0..count).map(ready)).await?;
    let begun = Instant::now();
    let mut resources = Resources::new(store.clone(), Arc::new(clock.clone()), None, Settings::default())?;
    while resources.step().await?.is_some_and(|next| next <= clock.now()) {}
    let start = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        resources.step().await?;
    }
    let idle = begun.elapsed().as_secs_f64() * 1000.0 / f64::from(ROUNDS);
    // Those that were reported on earlier are due now, and the rest is not.
    clock.advance(29 * 60_000 + 1000);
    let before = store.revision();
    let begun = Instant::now();
    resources.step().await?;
    let due = begun.elapsed().as_secs_f64() * 1000.0;
    let pulses = store.revision().0 - before.0;
    anyhow::ensure!(pulses == DUE as u64, "{pulses} pulses of {DUE} that were due");
    Ok(Passes { idle, due, start })
}
