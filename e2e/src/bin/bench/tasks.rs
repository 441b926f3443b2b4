//! `bench tasks`: many tasks of `true`, end to end through the durable store, beside the machine's limit and two peers.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::muster_peer::Muster;
use crate::plot::{Bar, Series, bars, number};
use crate::process::program;
use crate::report::{Report, circumstances};

/// Programs that run at a time, for everybody.
const WIDTH: usize = 2;
const ROUNDS: usize = 5;
/// Starts of `muster run` in an empty directory.
const SINGLE_RUNS: usize = 21;
/// Shares to reach: of the bare limit, and of `HyperQueue`.
const GOAL_OF_BARE: f64 = 0.6;
const GOAL_OF_HYPERQUEUE: f64 = 3.0;
/// And for one task from nothing.
const GOAL_OF_ONE: Duration = Duration::from_millis(150);

/// Submits to a server and a worker in its own process, the only way the wheel offers.
const HYPERQUEUE: &str = r#"
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
count, width = int(sys.argv[1]), int(sys.argv[2])
with LocalCluster(worker_config=WorkerConfig(cores=width)) as cluster:
    client = cluster.client()
    begun = time.monotonic()
    job = Job(max_fails=None)
    for _ in range(count):
        job.program(["true"])
    client.wait_for_jobs([client.submit(job)])
    print("took", time.monotonic() - begun)
"#;

/// One of those compared: a name, and how long it takes for so many tasks.
struct Contestant {
    name: &'static str,
    series: Series,
    run: fn(&Path, usize) -> anyhow::Result<Duration>,
    rates: Vec<f64>,
}

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let count = if quick { 1_000 } else { 10_000 };
    let mut report = Report::default();
    let mut contestants = contestants();
    // In turns, so that what else the machine does hits all alike.
    for round in 0..ROUNDS {
        for contestant in &mut contestants {
            let dir = tempfile::tempdir()?;
            let took = (contestant.run)(dir.path(), count).with_context(|| contestant.name.to_owned())?;
            let rate = per_second(count, took);
            eprintln!("round {}: {} {}/s", round + 1, contestant.name, number(rate));
            contestant.rates.push(rate);
        }
    }
    let plot = compare(&contestants, count, &mut report);
    measure_one(&mut report)?;
    if write && !quick {
        let svg = bars(&format!("{} tasks of `true`, {WIDTH} at a time", number_of(count)), "per s", &plot);
        report.write("tasks", &circumstances("cargo xtask bench tasks"), &svg)?;
    }
    Ok(())
}

fn contestants() -> Vec<Contestant> {
    let contestant = |name, series, run| Contestant { name, series, run, rates: Vec::new() };
    let mut all = vec![
        contestant("bare limit", Series::Limit, run_bare as fn(&Path, usize) -> anyhow::Result<Duration>),
        contestant("muster", Series::Muster, run_muster),
    ];
    for (name, variable, run) in [
        ("GNU parallel", "MUSTER_PARALLEL", run_parallel as fn(&Path, usize) -> anyhow::Result<Duration>),
        ("HyperQueue", "MUSTER_HYPERQUEUE", run_hyperqueue),
    ] {
        if program(variable).is_some() {
            all.push(contestant(name, Series::Peer, run));
        } else {
            eprintln!("MISSING PEER {name}: {variable} is not set; `cargo xtask setup` says why");
        }
    }
    all
}

/// Adds the medians and what they are of one another.
fn compare(contestants: &[Contestant], count: usize, report: &mut Report) -> Vec<Bar> {
    let rates = |name: &str| -> &[f64] {
        contestants.iter().find(|contestant| contestant.name == name).map_or(&[], |found| &found.rates)
    };
    let ours = median(rates("muster"));
    // Of each round for itself: what else the machine does is not the same in all.
    let of_bare = rates("muster").iter().zip(rates("bare limit")).map(|(ours, bare)| ours / bare);
    let of_bare: Vec<f64> = of_bare.collect();
    for contestant in contestants {
        let value = median(&contestant.rates);
        let beside = match contestant.name {
            "bare limit" => format!("posix_spawn and wait in {WIDTH} loops"),
            "muster" => {
                let shown: Vec<String> =
                    of_bare.iter().map(|share| format!("{:.0} %", share * 100.0)).collect();
                format!(
                    "{:.0} % of the bare limit of the same round ({}); goal {:.0} %",
                    median(&of_bare) * 100.0,
                    shown.join(", "),
                    GOAL_OF_BARE * 100.0
                )
            }
            "HyperQueue" => {
                format!("muster is {:.1} times that; goal {GOAL_OF_HYPERQUEUE:.0} times", ours / value)
            }
            _ => format!("muster is {:.1} times that", ours / value),
        };
        let what = match contestant.name {
            "muster" => "muster submit --array --wait, logs captured, durable".to_owned(),
            "HyperQueue" => "HyperQueue, Job of programs, waited for".to_owned(),
            name => name.to_owned(),
        };
        let spread: Vec<String> = contestant.rates.iter().map(|rate| number(*rate)).collect();
        report.line(
            format!("{what}, {} x `true`", number_of(count)),
            format!("{}/s", number(value)),
            format!("{beside}; rounds {}", spread.join(", ")),
        );
    }
    let bar = |contestant: &Contestant| Bar {
        label: contestant.name.into(),
        value: median(&contestant.rates),
        series: contestant.series,
    };
    contestants.iter().map(bar).collect()
}

fn run_bare(_: &Path, count: usize) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let run = || (0..count / WIDTH).try_for_each(|_| Command::new("true").status().map(|_| ()));
    std::thread::scope(|scope| {
        let loops: Vec<_> = (0..WIDTH).map(|_| scope.spawn(run)).collect();
        loops.into_iter().try_for_each(|each| each.join().unwrap_or(Ok(())))
    })?;
    Ok(begun.elapsed())
}

fn run_muster(dir: &Path, count: usize) -> anyhow::Result<Duration> {
    run_array(&dir.join("data"), count, WIDTH, &[])
}

/// Tasks of `true` per second on a server with further flags, so many at a time, from their submission to the end of the last.
pub fn submit_array(data: &Path, count: usize, width: usize, flags: &[&str]) -> anyhow::Result<f64> {
    Ok(per_second(count, run_array(data, count, width, flags)?))
}

fn run_array(data: &Path, count: usize, width: usize, flags: &[&str]) -> anyhow::Result<Duration> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let width = width.to_string();
    let flags = [&["--roles", "api,engine", "--slots", &width], flags].concat();
    let muster = runtime.block_on(Muster::start_with(data, &flags))?;
    let mut submit = muster_command()?;
    submit.arg("--data").arg(data).args(["submit", "--array", &format!("1-{count}"), "--wait", "--", "true"]);
    let took = timed(&mut submit)?;
    muster.process.terminate()?;
    Ok(took)
}

fn run_parallel(dir: &Path, count: usize) -> anyhow::Result<Duration> {
    let parallel = program("MUSTER_PARALLEL").context("MUSTER_PARALLEL is not set")?;
    let numbers = "one\n".repeat(count);
    let input = dir.join("numbers");
    fs::write(&input, numbers)?;
    let mut command = Command::new(parallel);
    command.env("HOME", dir).args(["--will-cite", "-j", &WIDTH.to_string(), "-N0", "true"]);
    let begun = Instant::now();
    let output = command.stdin(fs::File::open(input)?).output().context("cannot start it")?;
    if !output.status.success() {
        bail!("it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(begun.elapsed())
}

fn run_hyperqueue(dir: &Path, count: usize) -> anyhow::Result<Duration> {
    let python = program("MUSTER_HYPERQUEUE").context("MUSTER_HYPERQUEUE is not set")?;
    let mut command = Command::new(python);
    command.current_dir(dir).args(["-c", HYPERQUEUE, &count.to_string(), &WIDTH.to_string()]);
    let output = command.stdin(Stdio::null()).output().context("cannot start it")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let took = said.lines().find_map(|line| line.strip_prefix("took "));
    let Some(seconds) = took.and_then(|text| text.trim().parse().ok()) else {
        bail!("it ended with {}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    };
    Ok(Duration::from_secs_f64(seconds))
}

/// From nothing to the end of one task: a directory that is empty, no server.
fn measure_one(report: &mut Report) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for _ in 0..SINGLE_RUNS {
        let dir = tempfile::tempdir()?;
        let mut command = muster_command()?;
        command.arg("--data").arg(dir.path().join("data")).args(["run", "--", "true"]);
        all.push(timed(&mut command)?.as_secs_f64() * 1000.0);
    }
    let millis = median(&all);
    report.line(
        "`muster run -- true` in an empty directory, start to end",
        format!("{millis:.1} ms"),
        format!("median of {SINGLE_RUNS}; goal {} ms", GOAL_OF_ONE.as_millis()),
    );
    Ok(())
}

fn muster_command() -> anyhow::Result<Command> {
    let bin = program("MUSTER_BIN").context("MUSTER_BIN is not set; use cargo xtask bench")?;
    Ok(Command::new(bin))
}

/// How long a program takes that must succeed.
fn timed(command: &mut Command) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("cannot start it")?;
    let took = begun.elapsed();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{:?} ended with {}: {}", command, output.status, said.lines().last().unwrap_or_default());
    }
    Ok(took)
}

/// The middle one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn number_of(count: usize) -> String {
    number(count as f64)
}
