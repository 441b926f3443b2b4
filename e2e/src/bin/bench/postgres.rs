//! `bench postgres`: what is kept in PostgreSQL beside what is kept in SQLite, beside a bare client of the same database, and
//! beside two queues that keep their jobs in PostgreSQL; and for how long nothing starts after the leader was killed.
//!
//! Everything but SQLite uses one PostgreSQL of its own, started with its defaults (it waits for its disk), each in a database
//! of its own. The peers are libraries: their clients speak to the database directly, ours speak HTTP to a server.

mod bare;
mod fail_over;
mod peers;

use std::path::Path;

use anyhow::bail;
use muster_e2e::databases::Postgres;

use self::peers::Peer;
use crate::backlog;
use crate::clients::load;
use crate::limits;
use crate::muster_peer::{Muster, TASKS, task};
use crate::plot::{Bar, Series, bars, number};
use crate::process::program;
use crate::report::{Report, circumstances};
use crate::tasks::{median, submit_array};

const SIZE: usize = 1024;
/// A stored object with the metadata the server adds.
const ROW: usize = 1300;
const CLIENTS: usize = 64;
/// Programs that run at a time, for everybody.
const WIDTH: usize = 2;
const ROUNDS: usize = 3;
/// To reach one of: so many creates per second, or so much of what a bare client reaches with the same batches.
const GOAL_OF_CREATES: f64 = 5_000.0;
const GOAL_OF_BARE: f64 = 0.7;

/// Sizes of a run.
struct Sizes {
    creates: usize,
    peer_creates: usize,
    tasks: usize,
    backlog: usize,
    fail_overs: usize,
}

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    if program("MUSTER_POSTGRES").is_none() {
        bail!(
            "there is no PostgreSQL to measure with: MUSTER_POSTGRES is not set; `cargo xtask setup` says why"
        );
    }
    let sizes = if quick {
        Sizes { creates: 4_000, peer_creates: 1_000, tasks: 500, backlog: 5_000, fail_overs: 3 }
    } else {
        Sizes { creates: 40_000, peer_creates: 10_000, tasks: 5_000, backlog: 100_000, fail_overs: 20 }
    };
    let postgres = Postgres::start();
    let peers = peers::present();
    let mut report = Report::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let plot = runtime.block_on(measure_creates(&postgres, &peers, &sizes, &mut report))?;
    measure_tasks(&postgres, &peers, sizes.tasks, &mut report)?;
    runtime.block_on(measure_backlog(&postgres, sizes.backlog, &mut report))?;
    runtime.block_on(fail_over::measure(&postgres, sizes.fail_overs, &mut report))?;
    if write && !quick {
        let title = format!("Durable creates of 1 KiB with {CLIENTS} clients");
        let svg = bars(&title, "per s", &plot);
        report.write("postgres", &circumstances("cargo xtask bench postgres"), &svg)?;
    }
    Ok(())
}

/// What was measured of creates, one figure per round.
#[derive(Default)]
struct Creates {
    sqlite: Vec<f64>,
    postgres: Vec<f64>,
    batches: Vec<f64>,
    p99: Vec<f64>,
    bare: Vec<f64>,
    echoes: Vec<f64>,
    peers: Vec<Vec<f64>>,
}

/// Creates of everybody in turns: what else the machine does hits all alike.
async fn measure_creates(
    postgres: &Postgres,
    peers: &[Peer],
    sizes: &Sizes,
    report: &mut Report,
) -> anyhow::Result<Vec<Bar>> {
    let mut found = Creates { peers: vec![Vec::new(); peers.len()], ..Creates::default() };
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir()?;
        let sqlite = Muster::start(&dir.path().join("sqlite")).await?;
        found.sqlite.push(create(&sqlite, sizes.creates).await?.per_second);
        sqlite.process.terminate()?;

        let store = postgres.fresh_database();
        let flags = ["--roles", "api", "--store", &store];
        let shared = Muster::start_with(&dir.path().join("postgres"), &flags).await?;
        let created = create(&shared, sizes.creates).await?;
        shared.process.terminate()?;
        found.postgres.push(created.per_second);
        found.batches.push(created.batch);
        found.p99.push(created.p99_millis);

        found.bare.push(bare::rows(&postgres.fresh_database(), ROW, created.batch).await?);
        found.echoes.push(limits::echoes(dir.path(), CLIENTS, SIZE).await?);
        for (peer, rates) in peers.iter().zip(&mut found.peers) {
            rates.push(peer.creates(&postgres.fresh_database(), CLIENTS, sizes.peer_creates, SIZE)?);
        }
    }
    Ok(compare_creates(&found, peers, report))
}

fn compare_creates(found: &Creates, peers: &[Peer], report: &mut Report) -> Vec<Bar> {
    let (ours, bare, echoes) = (median(&found.postgres), median(&found.bare), median(&found.echoes));
    let shares: Vec<f64> = found.postgres.iter().zip(&found.bare).map(|(ours, bare)| ours / bare).collect();
    let both = 1.0 / (1.0 / bare + 1.0 / echoes);
    report.line(
        format!("bare client of PostgreSQL, rows in batches of {:.0}", median(&found.batches)),
        format!("{}/s", number(bare)),
        format!("one statement per batch, on one connection; rounds {}", rounds(&found.bare)),
    );
    report.line(
        format!("HTTP echo of 1 KiB, {CLIENTS} clients"),
        format!("{}/s", number(echoes)),
        "limit of the machine",
    );
    let sqlite = median(&found.sqlite);
    report.line(
        format!("durable creates on SQLite, {CLIENTS} clients"),
        format!("{}/s", number(sqlite)),
        format!("rounds {}", rounds(&found.sqlite)),
    );
    report.line(
        format!("durable creates on PostgreSQL, {CLIENTS} clients"),
        format!("{}/s", number(ours)),
        format!(
            "goal {}/s, or {:.0} % of the bare client: {:.0} %; {:.0} % of 1/(1/echo + 1/bare) = {}/s; {:.0} % of \
             SQLite; p99 {:.1} ms; rounds {}",
            number(GOAL_OF_CREATES),
            GOAL_OF_BARE * 100.0,
            median(&shares) * 100.0,
            ours / both * 100.0,
            number(both),
            ours / sqlite * 100.0,
            median(&found.p99),
            rounds(&found.postgres)
        ),
    );
    let mut plot = vec![
        Bar { label: "bare client, same batches".into(), value: bare, series: Series::Limit },
        Bar { label: "muster on SQLite".into(), value: sqlite, series: Series::Muster },
        Bar { label: "muster on PostgreSQL".into(), value: ours, series: Series::Muster },
    ];
    for (peer, rates) in peers.iter().zip(&found.peers) {
        let theirs = median(rates);
        report.line(
            format!("{}: jobs added one by one, {CLIENTS} connections", peer.name()),
            format!("{}/s", number(theirs)),
            format!("muster on PostgreSQL is {:.1} times that; rounds {}", ours / theirs, rounds(rates)),
        );
        plot.push(Bar { label: peer.name().into(), value: theirs, series: Series::Peer });
    }
    plot
}

/// What creating told.
struct Created {
    per_second: f64,
    p99_millis: f64,
    /// Changes in a commit, in the middle.
    batch: f64,
}

async fn create(muster: &Muster, count: usize) -> anyhow::Result<Created> {
    // The first requests of a process are not those of a running one.
    load(&muster.plain, 4, 500, TASKS, |number| task("warm", number)).await?;
    let before = muster.commits().await?;
    let timing = load(&muster.plain, CLIENTS, count, TASKS, |number| task("p", number)).await?;
    let batch = muster.commits().await?.batch_since(before);
    let p99_millis = timing.quantile(0.99).as_secs_f64() * 1000.0;
    Ok(Created { per_second: timing.per_second(), p99_millis, batch })
}

/// Tasks of `true` from their submission to their end.
fn measure_tasks(
    postgres: &Postgres,
    peers: &[Peer],
    count: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (mut on_sqlite, mut on_postgres, mut theirs) =
        (Vec::new(), Vec::new(), vec![Vec::new(); peers.len()]);
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir()?;
        let data = |name: &str| dir.path().join(name);
        on_sqlite.push(submit_array(&data("sqlite"), count, WIDTH, &[])?);
        let store = postgres.fresh_database();
        on_postgres.push(submit_array(&data("postgres"), count, WIDTH, &["--store", &store])?);
        for (peer, rates) in peers.iter().zip(&mut theirs) {
            rates.push(peer.tasks(&postgres.fresh_database(), WIDTH, count)?);
        }
    }
    let (sqlite, ours) = (median(&on_sqlite), median(&on_postgres));
    for (place, rate, all) in [("SQLite", sqlite, &on_sqlite), ("PostgreSQL", ours, &on_postgres)] {
        report.line(
            format!("tasks of `true` on {place}, {WIDTH} at a time, submitted and waited for"),
            format!("{}/s", number(rate)),
            format!("{:.0} % of SQLite; rounds {}", rate / sqlite * 100.0, rounds(all)),
        );
    }
    for (peer, rates) in peers.iter().zip(&theirs) {
        let rate = median(rates);
        report.line(
            format!("{}: jobs that run `true`, {WIDTH} at a time, added in bulk", peer.name()),
            format!("{}/s", number(rate)),
            format!("muster on PostgreSQL is {:.1} times that; rounds {}", ours / rate, rounds(rates)),
        );
    }
    Ok(())
}

/// What a long queue costs, on both.
async fn measure_backlog(postgres: &Postgres, size: usize, report: &mut Report) -> anyhow::Result<()> {
    let store = postgres.fresh_database();
    for (place, flags) in [("SQLite", &[][..]), ("PostgreSQL", &["--store", store.as_str()][..])] {
        let dir = tempfile::tempdir()?;
        let costs = backlog::measure(dir.path(), size, flags).await?;
        let queued = format!("{} tasks queued on {place}", number(costs.tasks()));
        report.line(
            format!("a pass that starts 100 of {queued}"),
            format!("{:.1} ms", costs.pass),
            format!("of processor time; {:.1} ms until they run", costs.pass_wall),
        );
        report.line(
            format!("from start to the first of {queued}"),
            format!("{:.2} s", costs.restart.as_secs_f64()),
            format!("submitted with {}/s", number(costs.submits)),
        );
    }
    Ok(())
}

fn rounds(rates: &[f64]) -> String {
    rates.iter().map(|rate| number(*rate)).collect::<Vec<_>>().join(", ")
}

/// Where the programs of peers are written to.
fn script(dir: &Path, name: &str, text: &str) -> anyhow::Result<std::path::PathBuf> {
    let path = dir.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}
