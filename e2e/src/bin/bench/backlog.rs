//! `bench backlog`: what a long queue costs: to submit, in memory, in a pass, and after a restart.
//!
//! Tasks sleep, so that what is started stays and the rest stays queued. A pass is made to happen by ending the processes of
//! everything that runs: the engine hears of it, writes it down and starts as many others. Its cost is the processor time
//! of the server, all threads, until they run; the programs themselves are not children of the server and do not count.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::clients::load;
use crate::muster_peer::{Muster, TASKS};
use crate::plot::{Bar, Series, bars, number};
use crate::process::Process;
use crate::report::{Report, circumstances};
use crate::tasks::median;

const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];
const QUICK_SIZES: [usize; 2] = [1_000, 20_000];
const SUBJECTS: usize = 1_000;
const APPLICATIONS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/applications";
const CLIENTS: usize = 64;
/// Tasks that run at a time, and start in a pass.
const SLOTS: usize = 100;
const PASSES: usize = 5;
/// What is to be reached.
const GOAL_OF_PASS: f64 = 2.0;
const GOAL_OF_MEMORY: f64 = 1_500.0;
const GOAL_OF_RESTART: Duration = Duration::from_secs(5);
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_millis(2);

/// What one size of backlog costs.
pub struct Costs {
    size: usize,
    /// Creates per second.
    pub submits: f64,
    memory: f64,
    /// Milliseconds of processor time,
    pub pass: f64,
    /// and of time.
    pub pass_wall: f64,
    /// From the start of a server to the first task that runs.
    pub restart: Duration,
}

impl Costs {
    /// How many were queued.
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    pub fn tasks(&self) -> f64 {
        self.size as f64
    }
}

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let sizes: &[usize] = if quick { &QUICK_SIZES } else { &SIZES };
    let mut all = Vec::new();
    for size in sizes {
        let dir = tempfile::tempdir()?;
        all.push(runtime.block_on(measure(dir.path(), *size, &[])).with_context(|| format!("{size} tasks"))?);
    }
    let mut report = Report::default();
    let plot = compare(&all, &mut report);
    if write && !quick {
        let svg = bars("A pass that starts 100 tasks, by tasks queued", "ms of processor time", &plot);
        report.write("backlog", &circumstances("cargo xtask bench backlog"), &svg)?;
    }
    Ok(())
}

/// Measures a backlog of one size, on servers with further flags.
pub async fn measure(dir: &Path, size: usize, flags: &[&str]) -> anyhow::Result<Costs> {
    let slots = SLOTS.to_string();
    let with_engine = [&["--roles", "api,engine", "--slots", &slots], flags].concat();
    let empty = Muster::start_with(&dir.join("empty"), &with_engine).await?;
    let idle = empty.process.rss()?;
    empty.process.terminate()?;

    let data = dir.join("data");
    let muster = Muster::start_with(&data, &[&["--roles", "api"], flags].concat()).await?;
    load(&muster.plain, CLIENTS, SUBJECTS, APPLICATIONS, application).await?;
    let timing = load(&muster.plain, CLIENTS, size, TASKS, task).await?;
    muster.process.terminate()?;
    eprintln!("{size}: submitted");

    let launched = Muster::launch(&data, &with_engine)?;
    let restart = wait_for(|| !sleepers(launched.process.id()).is_empty(), launched.started)?;
    let muster = launched.ready().await?;
    wait_for(|| sleepers(muster.process.id()).len() == SLOTS.min(size), Instant::now())?;
    let rss = muster.process.rss()?;
    let (mut costs, mut walls) = (Vec::new(), Vec::new());
    for _ in 0..PASSES {
        let (cost, wall) = measure_pass(&muster.process)?;
        costs.push(cost);
        walls.push(wall);
    }
    muster.process.terminate()?;
    Ok(Costs {
        size,
        submits: timing.per_second(),
        memory: ratio(rss.saturating_sub(idle), size),
        pass: median(&costs),
        pass_wall: median(&walls),
        restart,
    })
}

/// Ends all that runs and waits for as many others; milliseconds of processor time, and of time.
fn measure_pass(server: &Process) -> anyhow::Result<(f64, f64)> {
    settle(server)?;
    let before = sleepers(server.id());
    let cpu = server.cpu_nanos()?;
    let begun = Instant::now();
    for pid in &before {
        let pid = i32::try_from(*pid).ok().and_then(rustix::process::Pid::from_raw).context("no pid")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    }
    wait_for(
        || {
            let now = sleepers(server.id());
            now.len() == SLOTS && now.iter().all(|pid| !before.contains(pid))
        },
        begun,
    )?;
    let wall = begun.elapsed();
    settle(server)?;
    let spent = Duration::from_nanos(server.cpu_nanos()?.saturating_sub(cpu));
    Ok((spent.as_secs_f64() * 1000.0, wall.as_secs_f64() * 1000.0))
}

/// Waits until the server has nothing to do: it used next to no time for a while.
fn settle(server: &Process) -> anyhow::Result<()> {
    let mut last = server.cpu_nanos()?;
    let begun = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = server.cpu_nanos()?;
        if now - last < 2_000_000 {
            return Ok(());
        }
        last = now;
        if begun.elapsed() > PATIENCE {
            bail!("the server never rests");
        }
    }
}

fn compare(all: &[Costs], report: &mut Report) -> Vec<Bar> {
    let smallest = all.first().map_or(f64::INFINITY, |costs| costs.pass);
    let mut plot = Vec::new();
    for costs in all {
        let queued = format!("{} tasks in {SUBJECTS} subjects", number_of(costs.size));
        report.line(
            format!("submit, {queued}"),
            format!("{}/s", number(costs.submits)),
            format!("{CLIENTS} clients, durable"),
        );
        report.line(
            format!("resident memory per queued task, {queued}"),
            format!("{} B", number(costs.memory)),
            format!("goal {} B; fixed costs weigh on small queues", number(GOAL_OF_MEMORY)),
        );
        report.line(
            format!("a pass that ends and starts {SLOTS}, {queued}"),
            format!("{:.1} ms", costs.pass),
            format!(
                "processor time, median of {PASSES}; {:.2} times that of the smallest, goal {GOAL_OF_PASS:.0}; \
                 all run again after {:.0} ms",
                costs.pass / smallest,
                costs.pass_wall
            ),
        );
        report.line(
            format!("restart to first start, {queued}"),
            format!("{:.2} s", costs.restart.as_secs_f64()),
            format!("goal {} s", GOAL_OF_RESTART.as_secs()),
        );
        plot.push(Bar {
            label: format!("{} tasks queued", number_of(costs.size)),
            value: costs.pass,
            series: Series::Muster,
        });
    }
    plot
}

/// What tasks are about.
fn application(number: usize) -> Vec<u8> {
    let name = format!("app-{number}");
    let object = serde_json::json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Application", "metadata": {"name": name}, "spec": {},
    });
    object.to_string().into_bytes()
}

/// A task that stays when it is started. Subjects are taken in turn.
fn task(number: usize) -> Vec<u8> {
    format!(
        concat!(
            r#"{{"apiVersion":"muster.dev/v1alpha1","kind":"Task","metadata":{{"name":"queued-{number:07}"}},"#,
            r#""spec":{{"subject":{{"kind":"Application","name":"app-{subject}"}},"#,
            r#""container":{{"command":["sleep","100000"]}},"killTimeout":"1s"}}}}"#
        ),
        number = number,
        subject = number % SUBJECTS
    )
    .into_bytes()
}

/// The programs that a server runs, through its shepherd.
fn sleepers(server: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let (Some((_, rest)), Some((_, name))) = (stat.rsplit_once(')'), stat.split_once('(')) else {
            continue;
        };
        let mut fields = rest.split_whitespace();
        let alive = fields.next().is_some_and(|state| state != "Z");
        let Some(parent) = fields.next().and_then(|parent| parent.parse::<u32>().ok()) else { continue };
        parents.push((pid, parent, alive && name.starts_with("sleep)")));
    }
    let children = |of: u32| parents.iter().filter(move |(_, parent, _)| *parent == of);
    let shepherds = children(server).flat_map(|(warden, ..)| children(*warden));
    let programs = shepherds.flat_map(|(shepherd, ..)| children(*shepherd));
    programs.filter(|(.., sleeps)| *sleeps).map(|(pid, ..)| *pid).collect()
}

/// How long after `since` something came true.
fn wait_for(condition: impl Fn() -> bool, since: Instant) -> anyhow::Result<Duration> {
    while !condition() {
        if since.elapsed() > PATIENCE {
            bail!("waited in vain for the tasks to start");
        }
        std::thread::sleep(LOOK);
    }
    Ok(since.elapsed())
}

#[allow(clippy::cast_precision_loss, reason = "bytes and counts fit")]
fn ratio(bytes: u64, count: usize) -> f64 {
    bytes as f64 / count as f64
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn number_of(count: usize) -> String {
    number(count as f64)
}
