//! `bench schedules`: many schedules, of which a part is due in the same second: the loop of schedules on a durable store,
//! in this process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::future::join_all;
use muster_engine::schedules::{Schedules, run as run_schedules};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, WatchScope, Write};
use muster_store_sql::SqliteLog;
use muster_types::schedule::ScheduleSpec;
use muster_types::{Schedule, Timestamp};
use serde_json::json;

use crate::plot::{Bar, Series, bars, number};
use crate::report::{Report, circumstances};

/// To reach: lateness of the last of a hundred, share of a core while nothing is due, and time to start.
const GOAL_OF_LATENESS: f64 = 2.0;
const GOAL_OF_IDLE: f64 = 1.0;
const GOAL_OF_START: f64 = 2.0;
/// Seconds until the second in which many are due.
const LEAD: i64 = 45;
/// How long nothing is due while the cost of that is measured.
const IDLE: Duration = Duration::from_secs(10);

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let (all, due) = if quick { (5_000, 1_000) } else { (100_000, 20_000) };
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let found = runtime.block_on(measure(dir.path(), all, due))?;
    let mut report = Report::default();
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    let rows = (due * 2) as f64;
    let allowed = GOAL_OF_LATENESS.max(2.0 * rows / found.rows_per_second);
    report.line(
        format!("p99 lateness, {due} of {all} schedules due in one second"),
        format!("{:.2} s", found.lateness),
        format!("goal {allowed:.2} s; {} rows/s measured", number(found.rows_per_second)),
    );
    report.line(
        format!("processor time of {all} schedules while none is due"),
        format!("{:.2} % of a core", found.idle),
        format!("goal {GOAL_OF_IDLE} %"),
    );
    report.line(
        format!("start with {all} schedules"),
        format!("{:.2} s", found.start),
        format!("goal {GOAL_OF_START} s; until all are indexed and the first slice is decided"),
    );
    if write {
        let bar = |label: &str, value: f64, series| Bar { label: label.into(), value, series };
        let plot = [
            bar("p99 lateness", found.lateness, Series::Muster),
            bar("goal", allowed, Series::Limit),
            bar("start", found.start, Series::Muster),
            bar("goal", GOAL_OF_START, Series::Limit),
        ];
        let svg = bars("Schedules due at once", "s", &plot);
        report.write("schedules", &circumstances("cargo xtask bench schedules"), &svg)?;
    }
    Ok(())
}

/// What was measured.
struct Found {
    lateness: f64,
    rows_per_second: f64,
    idle: f64,
    start: f64,
}

async fn measure(dir: &Path, all: usize, due: usize) -> anyhow::Result<Found> {
    let store = Store::open(SqliteLog::open(&dir.join("store.db"))?, History::default(), SystemClock)?;
    let second = SystemClock.now().to_timestamp().as_second() + LEAD;
    fill(&store, all, due, Timestamp::from_second(second)).await?;

    // Everything is decided once, so that the next start finds it as a server does that was stopped.
    let mut schedules = Schedules::new(store.clone(), Arc::new(SystemClock))?;
    while schedules.step().await?.is_some_and(|next| next <= SystemClock.now()) {}
    drop(schedules);
    let begun = Instant::now();
    let mut schedules = Schedules::new(store.clone(), Arc::new(SystemClock))?;
    schedules.step().await?;
    let start = begun.elapsed().as_secs_f64();
    while schedules.step().await?.is_some_and(|next| next <= SystemClock.now()) {}
    drop(schedules);

    let running = tokio::spawn(run_schedules(store.clone(), Arc::new(SystemClock)));
    let left = second - SystemClock.now().to_timestamp().as_second();
    if left < i64::try_from(IDLE.as_secs())? + 2 {
        bail!("this machine is too slow for {all} schedules: the second came before they were all there");
    }
    // The loop reads everything first; that is no idling.
    let reading = Duration::from_secs(u64::try_from(left)?).saturating_sub(IDLE + Duration::from_secs(1));
    tokio::time::sleep(reading).await;
    let (before, from) = (cpu_seconds()?, Instant::now());
    tokio::time::sleep(IDLE).await;
    let idle = (cpu_seconds()? - before) / from.elapsed().as_secs_f64() * 100.0;

    let tasks = ResourceName::new("tasks.muster.dev");
    let mut watch = store.watch(WatchScope::Resource(tasks), store.revision())?;
    let mut late = Vec::with_capacity(due);
    while late.len() < due {
        for change in watch.next(4096).await? {
            late.push(change.at.0 - second * 1000);
        }
    }
    running.abort();
    late.sort_unstable();
    let at = |share: usize| late[(late.len() * share / 100).min(late.len() - 1)];
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of a short run")]
    let (p99, last, rows) = (at(99) as f64 / 1000.0, at(100).max(1) as f64 / 1000.0, (due * 2) as f64);
    Ok(Found { lateness: p99, rows_per_second: rows / last, idle, start })
}

/// Stores schedules, a part of which is due at one time and the rest in ten years.
async fn fill(store: &Store, all: usize, due: usize, second: Timestamp) -> anyhow::Result<()> {
    let resource = ResourceName::new("schedules.muster.dev");
    let now = SystemClock.now().to_timestamp();
    for chunk in (0..all).collect::<Vec<_>>().chunks(4096) {
        let writes = chunk.iter().map(|number| {
            let time = if *number < due { second.to_string() } else { "2036-01-01T00:00:00Z".to_owned() };
            let mut schedule = schedule(*number, &format!("R/{time}/P1D"))?;
            schedule.metadata.creation_timestamp = Some(now);
            let key = Key::new(&resource, "default", &schedule.metadata.name);
            let draft =
                Draft::of_object(serde_json::to_vec(&schedule)?).context("no place for the revision")?;
            Ok(Write::Put { key, expect: Precondition::Absent, draft })
        });
        let writes = writes.collect::<anyhow::Result<Vec<_>>>()?;
        let commits = writes.into_iter().map(|write| store.commit(Batch::of(write)));
        for outcome in join_all(commits).await {
            outcome?;
        }
    }
    Ok(())
}

fn schedule(number: usize, time_spec: &str) -> anyhow::Result<Schedule> {
    let spec: ScheduleSpec = serde_json::from_value(json!({
        "schedulePolicy": {"timeSpec": time_spec},
        "template": {"spec": {"container": {"command": ["true"]}}},
    }))?;
    let mut schedule = Schedule::new("default", &format!("schedule-{number:06}"), spec);
    schedule.metadata.uid = format!("0190b0a0-0000-7000-8000-{number:012x}");
    schedule.metadata.generation = 1;
    Ok(schedule)
}

/// Processor time of this process so far.
fn cpu_seconds() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    // User and system time, in hundredths of a second.
    Ok((ticks(11) + ticks(12)) / 100.0)
}
