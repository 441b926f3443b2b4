//! `bench dag`: a fan-out and fan-in of many tasks, and a long chain, beside `HyperQueue` with the same dependencies.
//!
//! The latency of an edge is the time from the end of one program of the chain to the beginning of the next, as the programs
//! themselves note it. The start of the next process is part of it, and so is what the machine itself holds up now and then, so
//! the same programs are also started one after the other by nothing but a loop, before and after the chain; what Muster adds
//! at a percentile is its own less the loop's at the same percentile.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::muster_peer::Muster;
use crate::plot::{Bar, Series, bars, number};
use crate::process::program;
use crate::report::{Report, circumstances};
use crate::tasks::median;

const WIDTH: usize = 2;
const ROUNDS: usize = 3;
/// To reach: added latency per edge, and times the rate of `HyperQueue`.
const GOAL_OF_EDGE: f64 = 5.0;
const GOAL_OF_HYPERQUEUE: f64 = 3.0;

/// A fan-out and fan-in, then a chain, as jobs of tasks with dependencies.
const HYPERQUEUE: &str = r#"
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
wide, long, width = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with LocalCluster(worker_config=WorkerConfig(cores=width)) as cluster:
    client = cluster.client()
    begun = time.monotonic()
    job = Job()
    first = job.program(["true"])
    many = [job.program(["true"], deps=[first]) for _ in range(wide)]
    job.program(["true"], deps=many)
    client.wait_for_jobs([client.submit(job)])
    print("fan", time.monotonic() - begun)
    begun = time.monotonic()
    job = Job()
    last = job.program(["true"])
    for _ in range(long - 1):
        last = job.program(["true"], deps=[last])
    client.wait_for_jobs([client.submit(job)])
    print("chain", time.monotonic() - begun)
"#;

/// How long each took, in seconds.
#[derive(Debug, Clone, Copy)]
struct Took {
    fan: f64,
    chain: f64,
}

/// Milliseconds from the end of one program to the beginning of the next.
struct Edges {
    ours: Vec<f64>,
    bare: Vec<f64>,
}

impl Edges {
    fn added(&self, percent: usize) -> f64 {
        percentile(&self.ours, percent) - percentile(&self.bare, percent)
    }

    fn describe(&self) -> String {
        let both =
            |values: &[f64]| format!("{:.1} and {:.1}", percentile(values, 50), percentile(values, 99));
        format!("p50 and p99 of an edge {} ms, of a bare start {} ms", both(&self.ours), both(&self.bare))
    }
}

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let (wide, long) = if quick { (500, 100) } else { (10_000, 1_000) };
    let mut report = Report::default();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut edges: Vec<Edges> = Vec::new();
    let peer = program("MUSTER_HYPERQUEUE");
    if peer.is_none() {
        eprintln!("MISSING PEER HyperQueue: MUSTER_HYPERQUEUE is not set; `cargo xtask setup` says why");
    }
    for round in 0..ROUNDS {
        let dir = tempfile::tempdir()?;
        let mut bare = bare_gaps(dir.path(), long / 2)?;
        let (took, ours_of_round) = run_muster(dir.path(), wide, long)?;
        bare.extend(bare_gaps(dir.path(), long / 2)?);
        let round_of_edges = Edges { ours: ours_of_round, bare };
        eprintln!("round {}: muster {took:?}, {}", round + 1, round_of_edges.describe());
        ours.push(took);
        edges.push(round_of_edges);
        if let Some(python) = &peer {
            let took = run_hyperqueue(Path::new(python), dir.path(), wide, long)?;
            eprintln!("round {}: HyperQueue {took:?}", round + 1);
            theirs.push(took);
        }
    }
    let plot = compare(&ours, &theirs, wide, long, &mut report);
    for percent in [50, 99] {
        let added: Vec<f64> = edges.iter().map(|edges| edges.added(percent)).collect();
        let rounds: Vec<String> = edges.iter().map(Edges::describe).collect();
        let compared = if percent == 99 {
            format!("one durable commit; goal {GOAL_OF_EDGE} ms; rounds: {}", rounds.join("; "))
        } else {
            String::new()
        };
        report.line(
            format!("muster, added from an end to the next beginning in a chain of {long}, p{percent}"),
            format!("{:.1} ms", median(&added)),
            compared,
        );
    }
    if write && !quick {
        let svg = bars(&format!("{wide} tasks fanned out and in; a chain of {long}"), "tasks per s", &plot);
        report.write("dag", &circumstances("cargo xtask bench dag"), &svg)?;
    }
    Ok(())
}

fn compare(ours: &[Took], theirs: &[Took], wide: usize, long: usize, report: &mut Report) -> Vec<Bar> {
    let mut plot = Vec::new();
    for (shape, count) in [("fan-out and fan-in", wide + 2), ("chain", long)] {
        let seconds = |took: &Took| if shape == "chain" { took.chain } else { took.fan };
        let rate = |all: &[Took]| {
            let rates: Vec<f64> = all.iter().map(|took| per_second(count, seconds(took))).collect();
            median(&rates)
        };
        let (own, other) = (rate(ours), rate(theirs));
        let beside = if theirs.is_empty() {
            "HyperQueue is missing".to_owned()
        } else {
            format!(
                "{:.1} times HyperQueue's {}/s; goal {GOAL_OF_HYPERQUEUE:.0} times",
                own / other,
                number(other)
            )
        };
        report.line(format!("muster, {shape} of {count} tasks"), format!("{}/s", number(own)), beside);
        plot.push(Bar { label: format!("muster, {shape}"), value: own, series: Series::Muster });
        if !theirs.is_empty() {
            plot.push(Bar { label: format!("HyperQueue, {shape}"), value: other, series: Series::Peer });
        }
    }
    plot
}

/// How long both shapes take, and the time each edge takes, in milliseconds.
fn run_muster(dir: &Path, wide: usize, long: usize) -> anyhow::Result<(Took, Vec<f64>)> {
    let data = dir.join("data");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let flags = ["--roles", "api,engine", "--slots", &WIDTH.to_string()];
    let muster = runtime.block_on(Muster::start_with(&data, &flags))?;
    let task = json!({"name": "t", "spec": {"container": {"command": ["true"]}}});
    let fan = json!([
        {"name": "first", "tasks": [task]},
        {"name": "many", "dependsOn": ["first"], "count": wide, "tasks": [task]},
        {"name": "last", "dependsOn": ["many"], "tasks": [task]},
    ]);
    let stamps = dir.join("stamps");
    let stamped = |name: usize| {
        let command = ["sh".to_owned(), "-c".to_owned(), note_times(&stamps)];
        json!({"name": format!("t{name}"), "spec": {"container": {"command": command}}})
    };
    let chain = json!([{"name": "chain", "mode": "pipeline", "tasks": (0..long).map(stamped).collect::<Vec<Value>>()}]);
    let took_chain = timed_job(dir, &data, "chain", &chain)?;
    let took_fan = timed_job(dir, &data, "fan", &fan)?;
    muster.process.terminate()?;
    Ok((Took { fan: took_fan, chain: took_chain }, gaps(&stamps)?))
}

/// A script that notes when it began and ended.
fn note_times(stamps: &Path) -> String {
    format!("date +%s%N >> {0}; date +%s%N >> {0}", stamps.display())
}

/// The gaps when a loop starts the same programs.
fn bare_gaps(dir: &Path, long: usize) -> anyhow::Result<Vec<f64>> {
    let stamps = tempfile::NamedTempFile::new_in(dir)?.into_temp_path();
    let script = note_times(&stamps);
    for _ in 0..long {
        Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).status()?;
    }
    gaps(&stamps)
}

/// Applies a job and waits for its end, in seconds.
fn timed_job(dir: &Path, data: &Path, name: &str, groups: &Value) -> anyhow::Result<f64> {
    let job = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": {"taskGroups": groups},
    });
    let file = dir.join(format!("{name}.json"));
    std::fs::write(&file, job.to_string())?;
    let begun = Instant::now();
    for words in [
        vec!["apply", "-f", file.to_str().context("a path that is no text")?],
        vec!["wait", &format!("job/{name}")],
    ] {
        let bin = program("MUSTER_BIN").context("MUSTER_BIN is not set; use cargo xtask bench")?;
        let output = Command::new(bin).arg("--data").arg(data).args(&words).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("{words:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Milliseconds between the end of each program and the beginning of the next.
#[allow(clippy::cast_precision_loss, reason = "gaps are short")]
fn gaps(stamps: &Path) -> anyhow::Result<Vec<f64>> {
    let text = std::fs::read_to_string(stamps)?;
    let stamps: Vec<i64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let pairs: Vec<&[i64]> = stamps.chunks(2).collect();
    let gap = |two: &[&[i64]]| Some((two[1].first()? - two[0].last()?) as f64 / 1e6);
    Ok(pairs.windows(2).filter_map(gap).collect())
}

fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

fn run_hyperqueue(python: &Path, dir: &Path, wide: usize, long: usize) -> anyhow::Result<Took> {
    let numbers = [wide, long, WIDTH].map(|number| number.to_string());
    let output = Command::new(python)
        .current_dir(dir)
        .args(["-c", HYPERQUEUE])
        .args(numbers)
        .stdin(Stdio::null())
        .output()
        .context("cannot start it")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let seconds =
        |word: &str| said.lines().find_map(|line| line.strip_prefix(word)?.trim().parse::<f64>().ok());
    match (seconds("fan "), seconds("chain ")) {
        (Some(fan), Some(chain)) => Ok(Took { fan, chain }),
        _ => bail!("it ended with {}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn per_second(count: usize, seconds: f64) -> f64 {
    count as f64 / Duration::from_secs_f64(seconds).as_secs_f64()
}
