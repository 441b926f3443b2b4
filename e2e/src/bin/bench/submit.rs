//! `bench submit`: durable creates, lists, watch fan-out, memory and start-up of the API server.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::clients::{Endpoint, Timing, load};
use crate::fan_out::fan_out;
use crate::kube_peer;
use crate::limits;
use crate::muster_peer::{Muster, TASKS, task};
use crate::plot::{Bar, Series, bars, number};
use crate::report::{Report, circumstances};
use crate::tasks::median;

const SIZE: usize = 1024;
/// A stored object with the metadata the server adds.
const ROW: usize = 1300;
const CLIENTS: [usize; 3] = [1, 16, 64];
const ROUNDS: usize = 5;

/// Sizes of a run.
struct Sizes {
    creates: [usize; 3],
    kube_creates: [usize; 3],
    objects: usize,
    watchers: usize,
    updates: usize,
}

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let sizes = if quick {
        Sizes {
            creates: [1_000, 5_000, 10_000],
            kube_creates: [200, 1_000, 1_000],
            objects: 20_000,
            watchers: 200,
            updates: 200,
        }
    } else {
        Sizes {
            creates: [5_000, 20_000, 40_000],
            kube_creates: [1_000, 4_000, 6_000],
            objects: 100_000,
            watchers: 1_000,
            updates: 1_000,
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let dir = tempfile::tempdir()?;
    runtime.block_on(measure(dir.path(), &sizes, write && !quick))
}

/// Only creates, on a server of their own.
pub fn run_creates(clients: usize, count: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let dir = tempfile::tempdir()?;
    runtime.block_on(async {
        let muster = Muster::start(&dir.path().join("creates")).await?;
        println!("server is process {}", muster.process.id());
        let timing = load(&muster.plain, clients, count, TASKS, |number| task("only", number)).await?;
        let cpu = muster.process.cpu_time()? / u32::try_from(count)?;
        println!(
            "{} creates/s, {}, {cpu:?} of processor time each",
            number(timing.per_second()),
            latency(&timing)
        );
        muster.process.terminate()
    })
}

async fn measure(dir: &Path, sizes: &Sizes, write: bool) -> anyhow::Result<()> {
    let mut report = Report::default();
    let mut plot = Vec::new();
    let ours = measure_creates(dir, sizes, &mut report, &mut plot).await?;
    measure_kube(dir, sizes, &ours, &mut report, &mut plot).await?;
    measure_many(dir, sizes, &mut report).await?;
    if write {
        let svg = bars("Durable creates of 1 KiB objects, and the machine's limits", "per s", &plot);
        report.write("submit", &circumstances("cargo xtask bench submit"), &svg)?;
    }
    Ok(())
}

/// What was measured with a number of clients, one figure per round.
#[derive(Default)]
struct Measured {
    /// With a row of each client in a transaction.
    rows: Vec<f64>,
    /// Changes that the server made durable together.
    batches: Vec<f64>,
    /// With so many rows in a transaction.
    batch_rows: Vec<f64>,
    echoes: Vec<f64>,
    creates: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Measured {
    /// What creates are of the limits of the machine, with such rows.
    fn share(&self, rows: &[f64]) -> String {
        let bound = |rows: f64, echoes: f64| 1.0 / (1.0 / echoes + 1.0 / rows);
        let each = rows.iter().zip(&self.echoes).zip(&self.creates);
        let shares: Vec<f64> =
            each.map(|((rows, echoes), creates)| creates / bound(*rows, *echoes) * 100.0).collect();
        let told: Vec<String> = shares.iter().map(|share| format!("{share:.0}")).collect();
        let limit = number(bound(median(rows), median(&self.echoes)));
        format!("{:.0} % of 1/(1/echo + 1/rows) = {limit}/s (rounds {} %)", median(&shares), told.join(", "))
    }
}

/// Creates, and the limits of the machine, in turns: what else the machine does hits all alike.
async fn measure_plain(
    dir: &Path,
    muster: &Muster,
    sizes: &Sizes,
    report: &mut Report,
    plot: &mut Vec<Bar>,
) -> anyhow::Result<()> {
    let fsyncs = limits::fsyncs(dir, ROW)?;
    report.line("fdatasync of one appended row", format!("{}/s", number(fsyncs)), "limit of the machine");
    let mut measured: [Measured; 3] = Default::default();
    for round in 0..ROUNDS {
        for (index, clients) in CLIENTS.into_iter().enumerate() {
            let found = &mut measured[index];
            found.rows.push(limits::sqlite_rows(dir, ROW, clients)?);
            found.echoes.push(limits::echoes(dir, clients, SIZE).await?);
            let run = format!("p{clients}-{round}");
            let count = sizes.creates[index];
            let before = muster.commits().await?;
            let timing = load(&muster.plain, clients, count, TASKS, move |number| task(&run, number)).await?;
            let batch = muster.commits().await?.batch_since(before).round();
            found.creates.push(timing.per_second());
            found.batches.push(batch);
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most all clients"
            )]
            found.batch_rows.push(limits::sqlite_rows(dir, ROW, batch.max(1.0) as usize)?);
            found.p50.push(timing.quantile(0.5).as_secs_f64() * 1000.0);
            found.p99.push(timing.quantile(0.99).as_secs_f64() * 1000.0);
        }
    }
    for (found, clients) in measured.iter().zip(CLIENTS) {
        let of_machine = "limit of the machine";
        let (rows, echoes, creates) = (median(&found.rows), median(&found.echoes), median(&found.creates));
        let label = format!("SQLite rows, {clients} in a durable transaction");
        report.line(label, format!("{}/s", number(rows)), of_machine);
        let label = format!("HTTP echo of 1 KiB, {clients} clients");
        report.line(label, format!("{}/s", number(echoes)), of_machine);
        let (batch, batch_rows) = (median(&found.batches), median(&found.batch_rows));
        let label = format!(
            "SQLite rows, {batch:.0} in a durable transaction, as the server had with {clients} clients"
        );
        report.line(label, format!("{}/s", number(batch_rows)), of_machine);
        report.line(
            format!("durable creates, {clients} clients"),
            format!("{}/s", number(creates)),
            format!(
                "{} with rows in the server's batches of {batch:.0}; {} with rows in batches of {clients}; p50 {:.2} ms, p99 {:.2} ms",
                found.share(&found.batch_rows),
                found.share(&found.rows),
                median(&found.p50),
                median(&found.p99)
            ),
        );
        for (label, value, series) in [
            (format!("SQLite rows, batches of {clients}"), rows, Series::Limit),
            (format!("HTTP echo, {clients} clients"), echoes, Series::Limit),
            (format!("muster, {clients} clients"), creates, Series::Muster),
        ] {
            plot.push(Bar { label, value, series });
        }
    }
    Ok(())
}

/// Creates per second at each number of clients over TLS, as the peer is measured.
struct Ours {
    tls: Vec<f64>,
}

async fn measure_creates(
    dir: &Path,
    sizes: &Sizes,
    report: &mut Report,
    plot: &mut Vec<Bar>,
) -> anyhow::Result<Ours> {
    let muster = Muster::start(&dir.join("creates")).await?;
    // The first requests of a process are not those of a running one.
    load(&muster.plain, 4, 500, TASKS, |number| task("warm", number)).await?;
    measure_plain(dir, &muster, sizes, report, plot).await?;
    let mut tls = Vec::new();
    for (index, clients) in CLIENTS.into_iter().enumerate() {
        let run = format!("t{clients}");
        let count = sizes.creates[index] / 2;
        let timing = load(&muster.tls, clients, count, TASKS, move |number| task(&run, number)).await?;
        report.line(
            format!("durable creates over TLS, {clients} clients"),
            format!("{}/s", number(timing.per_second())),
            latency(&timing),
        );
        tls.push(timing.per_second());
    }
    muster.process.terminate()?;
    Ok(Ours { tls })
}

async fn measure_kube(
    dir: &Path,
    sizes: &Sizes,
    ours: &Ours,
    report: &mut Report,
    plot: &mut Vec<Bar>,
) -> anyhow::Result<()> {
    let Some(kube) = kube_peer::start(&dir.join("kube")).await? else {
        report.line(
            "kube-apiserver with etcd",
            "NOT RUN",
            "no binaries in KUBEBUILDER_ASSETS, PATH or the cache",
        );
        return Ok(());
    };
    load(&kube.endpoint, 4, 200, TASKS, |number| task("warm", number)).await?;
    for (index, clients) in CLIENTS.into_iter().enumerate() {
        let run = format!("k{clients}");
        let timing =
            load(&kube.endpoint, clients, sizes.kube_creates[index], TASKS, move |number| task(&run, number))
                .await?;
        let ratio = ours.tls[index] / timing.per_second();
        report.line(
            format!("kube-apiserver with etcd: creates over TLS, {clients} clients"),
            format!("{}/s", number(timing.per_second())),
            format!("muster over TLS is {ratio:.1} times that; {}", latency(&timing)),
        );
        plot.push(Bar {
            label: format!("kube-apiserver + etcd, {clients} clients"),
            value: timing.per_second(),
            series: Series::Peer,
        });
    }
    report.line("kube-apiserver: resident memory after that", mebibytes(kube.rss()?), "");
    Ok(())
}

/// Everything that depends on how many objects there are.
async fn measure_many(dir: &Path, sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let data = dir.join("many");
    let muster = Muster::start(&data).await?;
    let idle = muster.process.rss()?;
    report.line("resident memory of an idle server", mebibytes(idle), "");
    load(&muster.plain, 64, sizes.objects, TASKS, |number| task("many", number)).await?;
    report_memory(&muster, idle, sizes.objects, "after creating them", report)?;
    measure_list(&muster.plain, sizes.objects, report).await?;
    let lag = fan_out(&muster.plain, sizes.watchers, sizes.updates, 100).await?;
    report.line(
        format!("watch fan-out, {} watchers, 100 updates/s", sizes.watchers),
        format!("p99 lag {}", millis(lag.quantile(0.99))),
        format!(
            "p50 {}, largest {}, {} frames",
            millis(lag.quantile(0.5)),
            millis(lag.quantile(1.0)),
            lag.count
        ),
    );
    muster.process.terminate()?;
    let again = Muster::start(&data).await?;
    report.line(
        format!("start-up with {} objects", number_of(sizes.objects)),
        millis(again.start_up),
        "from exec to /readyz",
    );
    report_memory(&again, idle, sizes.objects, "after a restart", report)?;
    again.process.terminate()
}

#[allow(clippy::cast_precision_loss, reason = "bytes fit")]
fn report_memory(
    muster: &Muster,
    idle: u64,
    objects: usize,
    when: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let rss = muster.process.rss()?;
    let each = rss.saturating_sub(idle) as f64 / objects as f64;
    report.line(
        format!("resident memory per 1 KiB object, {} objects, {when}", number_of(objects)),
        format!("{} B", number(each)),
        format!("{} in all", mebibytes(rss)),
    );
    Ok(())
}

async fn measure_list(endpoint: &Endpoint, objects: usize, report: &mut Report) -> anyhow::Result<()> {
    let mut best: Option<(Duration, usize)> = None;
    for _ in 0..3 {
        let mut connection = endpoint.connect().await?;
        let started = Instant::now();
        connection.send("GET", TASKS, "application/json", b"").await?;
        let mut buffer = vec![0; 256 * 1024];
        let (mut bytes, mut tail) = (0, Vec::new());
        loop {
            let count = connection.read_some(&mut buffer).await?;
            if count == 0 {
                bail!("the list was cut off");
            }
            bytes += count;
            tail.extend_from_slice(&buffer[count.saturating_sub(8)..count]);
            if tail.ends_with(b"\r\n0\r\n\r\n") {
                break;
            }
            tail.drain(..tail.len().saturating_sub(8));
        }
        let took = started.elapsed();
        if best.is_none_or(|(fastest, _)| took < fastest) {
            best = Some((took, bytes));
        }
    }
    let (took, bytes) = best.context("no list")?;
    #[allow(clippy::cast_precision_loss, reason = "bytes fit")]
    let rate = bytes as f64 / took.as_secs_f64() / 1e6;
    report.line(
        format!("list of {} objects", number_of(objects)),
        millis(took),
        format!("{} MB/s, best of three", number(rate)),
    );
    Ok(())
}

fn latency(timing: &Timing) -> String {
    format!("p50 {}, p99 {}", millis(timing.quantile(0.5)), millis(timing.quantile(0.99)))
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}

#[allow(clippy::cast_precision_loss, reason = "bytes fit")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn number_of(count: usize) -> String {
    number(count as f64)
}
