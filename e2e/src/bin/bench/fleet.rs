//! `bench fleet`: thousands of robots as real MQTT connections, through the embedded broker and through a Mosquitto.
//!
//! Robots are simulated ([`simulated`]); server and brokers are real. They join, stay connected with a heartbeat every 30
//! seconds, some of them lose their connection again and again, and tasks are asked for at a steady rate all the while.

mod raw;
mod simulated;
mod wire;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use muster_e2e::agent::Agent;
use muster_e2e::brokers::{Mosquitto, free_port};
use muster_e2e::http::Http;
use muster_fleet_mqtt::Topics;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinSet;

use self::raw::rate;
pub use self::raw::{RAW_BROKER, raw_broker};
use self::simulated::{Fleet, NUMBER, ROBOTS_PER_TOKEN, connect_all, join_all, name};
use crate::clients::Timing;
use crate::muster_peer::{Muster, TASKS, wait_for_line};
use crate::plot::{Bar, Series, bars, number};
use crate::process::{Process, rss_of};
use crate::report::{Report, circumstances};

const GOAL_EMBEDDED_KB: f64 = 50.0;
const GOAL_OUTSIDE_KB: f64 = 3.0;
const GOAL_START: f64 = 100.0;
const GOAL_RAW: f64 = 0.7;
const GOAL_AGENT_MB: f64 = 8.0;
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Robots whose connection is cut to see how long that goes unnoticed.
const CUTS: usize = 20;
/// Seconds for which memory is looked at.
const SETTLING: u32 = 10;
/// Until all that a robot says when it has connected is written down, and what came before it can be forgotten.
const WRITTEN_DOWN: Duration = Duration::from_mins(1);
/// Most time for all robots to be Online, and for the last tasks to be started.
const PATIENCE: Duration = Duration::from_mins(5);

/// How much of everything.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Robots.
    pub robots: usize,
    /// Tasks asked for in a second.
    pub rate: usize,
    /// Seconds for which they are.
    pub seconds: usize,
    /// Messages through the bare brokers.
    pub raw: usize,
}

impl Size {
    /// The usual one.
    pub fn new(quick: bool) -> Self {
        if quick {
            Self { robots: 500, rate: 50, seconds: 10, raw: 20_000 }
        } else {
            Self { robots: 10_000, rate: 200, seconds: 60, raw: 400_000 }
        }
    }
}

/// Runs the benchmark.
pub fn run(size: Size, write: bool) -> anyhow::Result<()> {
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    let (own, mosquitto) = runtime.block_on(raw_rates(size.raw))?;
    report.line(
        "embedded broker alone, messages per second with QoS 1",
        format!("{}/s", number(own)),
        format!(
            "Mosquitto {}/s: {:.0} %; goal {:.0} %",
            number(mosquitto),
            own / mosquitto * 100.0,
            GOAL_RAW * 100.0
        ),
    );
    let embedded = runtime.block_on(measure(size, None, &mut report))?;
    let outside = runtime.block_on(measure(size, Some(Mosquitto::start()), &mut report))?;
    if write {
        let bar = |label: &str, value: f64, series| Bar { label: label.into(), value, series };
        let plot = [
            bar("embedded broker", own, Series::Muster),
            bar("Mosquitto", mosquitto, Series::Limit),
            bar("connections, embedded", embedded, Series::Muster),
            bar("connections, Mosquitto", outside, Series::Limit),
        ];
        let svg = bars("Robots over MQTT", "per second", &plot);
        report.write("fleet", &circumstances("cargo xtask bench fleet"), &svg)?;
    }
    Ok(())
}

/// The embedded broker and Mosquitto, each alone.
async fn raw_rates(count: usize) -> anyhow::Result<(f64, f64)> {
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("broker.log");
    let own = std::env::current_exe()?;
    let process = Process::start(std::process::Command::new(own).arg(RAW_BROKER), &log)?;
    let said = wait_for_line(&log, raw::READY).await?;
    let words: Vec<&str> = said.split(' ').collect();
    let [address, user, password] = words[..] else { bail!("the broker said {said}") };
    let embedded = rate(address.parse()?, user, password, count).await?;
    drop(process);
    let mosquitto = Mosquitto::start();
    let address = SocketAddr::from(([127, 0, 0, 1], mosquitto.port()));
    Ok((embedded, rate(address, "anybody", "", count).await?))
}

/// Everything about a fleet on one broker. Answers with the rate of connections.
async fn measure(size: Size, mosquitto: Option<Mosquitto>, report: &mut Report) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir()?;
    let port = mosquitto.as_ref().map_or_else(free_port, Mosquitto::port);
    let broker = if mosquitto.is_some() { "Mosquitto" } else { "embedded broker" };
    let place = match mosquitto {
        None => ["--mqtt-listen".to_owned(), format!("127.0.0.1:{port}")],
        Some(_) => ["--mqtt-url".to_owned(), format!("mqtt://127.0.0.1:{port}")],
    };
    let flags = ["--roles", "api,engine,bridge", &place[0], &place[1]];
    let muster = Muster::start_with(&dir.path().join("data"), &flags).await?;
    let token = muster.plain.authorization.trim_start_matches("Bearer ").to_owned();
    let http = Arc::new(Http::new(&muster.plain.address, Some(&token)));
    let tokens = size.robots.div_ceil(ROBOTS_PER_TOKEN);
    let join_tokens = (0..tokens).map(|number| join_token(&http, &format!("join-{number}")));
    let join_tokens = join_tokens.collect::<anyhow::Result<Vec<_>>>()?;
    let fleet = Arc::new(Fleet {
        broker: SocketAddr::from(([127, 0, 0, 1], port)),
        topics: Topics::new(muster_fleet_mqtt::DEFAULT_PREFIX),
        heartbeat: HEARTBEAT,
        flapping: size.robots / 20,
        flap: watch::channel(false).0,
        cuts: (size.robots - CUTS..size.robots).map(|number| (number, Arc::new(Notify::new()))).collect(),
        connections: AtomicUsize::new(0),
        reconnects: AtomicUsize::new(0),
        asked: Mutex::new(HashMap::new()),
        started: Mutex::new(Vec::new()),
    });
    let count = number(to_f64(size.robots));

    if mosquitto.is_none() {
        let agent = Agent::start(
            "agent",
            &format!("mqtt://127.0.0.1:{port}"),
            &join_token(&http, "agent")?,
            &dir.path().join("agent"),
            &[],
        );
        wait_for_online(&http, 1).await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let used = megabytes(rss_of(agent.id())?);
        report.line(
            "agent that has nothing to do, resident",
            format!("{used:.1} MB"),
            format!("goal {GOAL_AGENT_MB} MB"),
        );
    }
    // The first robots touch what is there once, however many follow: they are not counted.
    let first = size.robots / 20;
    let mut robots = JoinSet::new();
    let mut secrets = join_all(&fleet, 0..first, &join_tokens).await?;
    connect_all(&fleet, 0, &secrets, &mut robots).await?;
    wait_for_online(&http, first).await?;
    let before = settled_rss(muster.process.id()).await?;
    let broker_before = match &mosquitto {
        Some(broker) => Some(settled_rss(broker.id()).await?),
        None => None,
    };
    let begun = Instant::now();
    secrets.extend(join_all(&fleet, first..size.robots, &join_tokens).await?);
    let joined = per_second(size.robots - first, begun);
    let begun = Instant::now();
    connect_all(&fleet, first, &secrets[first..], &mut robots).await?;
    let connected = per_second(size.robots - first, begun);
    wait_for_online(&http, size.robots).await?;
    let online = begun.elapsed().as_secs_f64();
    report.line(
        format!("{count} robots join, {broker}"),
        format!("{}/s", number(joined)),
        "each with a credential, durable",
    );
    report.line(
        format!("{count} robots connect, {broker}"),
        format!("{}/s", number(connected)),
        format!("all Online after {online:.1} s"),
    );
    let grown = |now: u64, then: u64| to_f64(usize::try_from(now.saturating_sub(then)).unwrap_or(0));
    let further = to_f64(size.robots - first);
    tokio::time::sleep(WRITTEN_DOWN).await;
    let each = grown(settled_rss(muster.process.id()).await?, before) / further / 1024.0;
    let goal = if mosquitto.is_some() { GOAL_OUTSIDE_KB } else { GOAL_EMBEDDED_KB };
    let beside = match (mosquitto.as_ref(), broker_before) {
        (Some(broker), Some(before)) => {
            let its = grown(settled_rss(broker.id()).await?, before) / further / 1024.0;
            format!("goal {goal} KB; Mosquitto itself {its:.1} KB")
        }
        _ => format!("goal {goal} KB"),
    };
    report.line(
        format!("resident memory of the server per robot, {broker}"),
        format!("{each:.1} KB"),
        beside,
    );

    fleet.flap.send_replace(true);
    let (cpu, begun) = (muster.process.cpu_time()?, Instant::now());
    let asked = ask(&muster, &fleet, size).await?;
    let used = muster.process.cpu_time()?.saturating_sub(cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
    let deadline = Instant::now() + PATIENCE;
    while fleet.started.lock().await.len() < asked && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fleet.flap.send_replace(false);
    let samples = std::mem::take(&mut *fleet.started.lock().await);
    let missing = asked - samples.len();
    let timing = Timing::new(samples, begun.elapsed());
    let millis = |quantile| timing.quantile(quantile).as_secs_f64() * 1000.0;
    report.line(
        format!("p99 from asked for to started on a robot, {} tasks/s, {broker}", size.rate),
        format!("{:.1} ms", millis(0.99)),
        format!(
            "goal {GOAL_START} ms; p50 {:.1} ms, p90 {:.1} ms; {missing} of {asked} not started; {} reconnects",
            millis(0.5),
            millis(0.9),
            fleet.reconnects.load(Ordering::Relaxed)
        ),
    );
    report.line(
        format!("processor of the server meanwhile, {broker}"),
        format!("{:.0} %", used * 100.0),
        "of one core, submitting included",
    );
    let noticed = notice_cuts(&http, &fleet, size).await?;
    report.line(
        format!("a cut connection is noticed after, {broker}"),
        format!("{:.0} ms", noticed.quantile(0.5).as_secs_f64() * 1000.0),
        format!("median of {CUTS}; longest {:.0} ms", noticed.quantile(1.0).as_secs_f64() * 1000.0),
    );
    drop(robots);
    Ok(connected)
}

fn join_token(http: &Http, name: &str) -> anyhow::Result<String> {
    let wanted = json!({"name": name, "role": "robot", "uses": ROBOTS_PER_TOKEN});
    let answer = http.post("/tokens", &wanted.to_string());
    answer.json()["token"].as_str().map(str::to_owned).context("no join token")
}

/// Asks for a number and not for all robots, whose text would take memory that is then measured.
async fn wait_for_online(http: &Arc<Http>, count: usize) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let http = http.clone();
        let text = tokio::task::spawn_blocking(move || http.get("/metrics").text()).await?;
        let online = text.lines().find_map(|line| line.strip_prefix("muster_robots{phase=\"Online\"} "));
        let online: usize = online.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
        if online >= count {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{online} of {count} robots are Online");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Resident memory once it has settled: what a burst needed is given back within seconds.
async fn settled_rss(process: u32) -> anyhow::Result<u64> {
    let mut least = rss_of(process)?;
    for _ in 0..SETTLING {
        tokio::time::sleep(Duration::from_secs(1)).await;
        least = least.min(rss_of(process)?);
    }
    Ok(least)
}

/// Asks for tasks at the rate. How many that were.
async fn ask(muster: &Muster, fleet: &Arc<Fleet>, size: Size) -> anyhow::Result<usize> {
    let total = size.rate * size.seconds;
    let pause = Duration::from_secs_f64(1.0 / to_f64(size.rate));
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..4 {
        let (mut connection, next, fleet) = (muster.plain.connect().await?, next.clone(), fleet.clone());
        clients.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    return anyhow::Ok(());
                }
                let due = begun + pause.mul_f64(to_f64(number));
                tokio::time::sleep_until(due.into()).await;
                fleet.asked.lock().await.insert(number, Instant::now());
                let body = task(number).to_string();
                let status =
                    connection.round_trip("POST", TASKS, "application/json", body.as_bytes()).await?;
                if status != 201 {
                    bail!("answer {status}: {}", connection.last_answer());
                }
            }
        }));
    }
    for client in clients {
        client.await??;
    }
    Ok(total)
}

fn task(number: usize) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": format!("bench-{number}")},
        "spec": {
            "runtime": "robot",
            "container": {"command": ["true"], "env": [{"name": NUMBER, "value": number.to_string()}]},
        },
    })
}

/// Cuts connections, one after the other, and waits until the server says so.
async fn notice_cuts(http: &Arc<Http>, fleet: &Arc<Fleet>, size: Size) -> anyhow::Result<Timing> {
    let (mut micros, all) = (Vec::new(), Instant::now());
    for robot in size.robots - CUTS..size.robots {
        let begun = Instant::now();
        fleet.cuts.get(&robot).context("no such robot")?.notify_one();
        loop {
            let (http, path) =
                (http.clone(), format!("{}/{}", TASKS.replace("tasks", "robots"), name(robot)));
            let seen = tokio::task::spawn_blocking(move || http.get(&path).json()).await?;
            let conditions = seen["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if conditions.iter().any(|it| it["type"] == "Connected" && it["status"] == "False") {
                break;
            }
            if begun.elapsed() > PATIENCE {
                bail!("nobody noticed that {} was cut", name(robot));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        micros.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    Ok(Timing::new(micros, all.elapsed()))
}

fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        eprintln!("the limit of open files cannot be raised ({error}): fewer robots fit");
    }
}

fn per_second(count: usize, begun: Instant) -> f64 {
    to_f64(count) / begun.elapsed().as_secs_f64()
}

fn megabytes(bytes: u64) -> f64 {
    to_f64(usize::try_from(bytes).unwrap_or(0)) / 1024.0 / 1024.0
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn to_f64(count: usize) -> f64 {
    count as f64
}
