//! `bench ui`: 200 open consoles on a system that does 500 tasks a second, beside the same system with nobody looking; and how
//! long pages take with 100 000 tasks stored.
//!
//! The lag is the time from sending a task until its name arrives at a console that shows it, its commit included.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::clients::{Endpoint, Timing, load};
use crate::muster_peer::{Muster, TASKS, task};
use crate::plot::{Bar, Series, bars, number};
use crate::report::{Report, circumstances};

/// Tasks per second.
const RATE: usize = 500;
/// Connections that submit them.
const SUBMITTERS: usize = 5;
/// To reach.
const GOAL_OF_LAG_MILLIS: f64 = 1000.0;
const GOAL_OF_PAGE_MILLIS: f64 = 200.0;
/// Pages that consoles look at, and how many of ten look at each.
const LOOKED_AT: [(&str, usize); 5] =
    [("", 3), ("tasks", 2), ("tasks?text=marker", 2), ("tasks?state=Failed", 1), ("jobs", 2)];

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let (stored, consoles, seconds) = if quick { (2_000, 20, 5) } else { (100_000, 200, 20) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let dir = tempfile::tempdir()?;
    let mut report = Report::default();
    let plot = runtime.block_on(measure(&dir.path().join("data"), stored, consoles, seconds, &mut report))?;
    if write && !quick {
        let svg = bars("processor time of the server at 500 tasks per second", "% of a core", &plot);
        report.write("ui", &circumstances("cargo xtask bench ui"), &svg)?;
    }
    Ok(())
}

async fn measure(
    data: &std::path::Path,
    stored: usize,
    consoles: usize,
    seconds: u64,
    report: &mut Report,
) -> anyhow::Result<Vec<Bar>> {
    let muster = Muster::start_with(data, &["--roles", "api,engine,web", "--slots", "2"]).await?;
    let filled = load(&muster.plain, 64, stored, TASKS, |number| task("stored", number)).await?;
    eprintln!("{stored} tasks stored in {:.1} s", filled.wall.as_secs_f64());
    let secret = muster.plain.authorization.trim_start_matches("Bearer ").to_owned();
    let browser = Endpoint {
        // A console knows its user by a cookie.
        authorization: format!("none\r\nCookie: muster_token={secret}"),
        ..muster.plain.clone()
    };
    pages(&browser, stored, report).await?;

    let alone = work(&muster, seconds, None).await?;
    let looking = Looking::open(&browser, consoles).await?;
    let watched = work(&muster, seconds, Some(&looking)).await?;
    looking.done.store(true, Ordering::Relaxed);
    let lag = Timing::new(std::mem::take(&mut *looking.lags.lock()), Duration::from_secs(1));
    report.line(
        "processor time of the server, nobody looks",
        format!("{:.0} % of a core", alone.cpu),
        format!("{} tasks/s; {:.0} MB resident", number(alone.rate), alone.rss),
    );
    report.line(
        format!("processor time of the server, {consoles} consoles"),
        format!("{:.0} % of a core", watched.cpu),
        format!("{} tasks/s; {:.0} MB resident", number(watched.rate), watched.rss),
    );
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    let frames = looking.frames.load(Ordering::Relaxed) as f64 / (consoles as f64 * watched.seconds);
    report.line("frames per second and console", format!("{frames:.2}"), "at most 2");
    let millis = |quantile: f64| lag.quantile(quantile).as_secs_f64() * 1000.0;
    report.line(
        "from submitting a task to a console that shows it, p99",
        format!("{:.0} ms", millis(0.99)),
        format!("p50 {:.0} ms, {} samples; goal {GOAL_OF_LAG_MILLIS:.0} ms", millis(0.5), lag.count),
    );
    if lag.count == 0 {
        bail!("no console showed any of the tasks it looked for");
    }
    Ok(vec![
        Bar { label: "nobody looks".to_owned(), value: alone.cpu, series: Series::Peer },
        Bar { label: format!("{consoles} consoles"), value: watched.cpu, series: Series::Muster },
    ])
}

/// How long each page takes.
async fn pages(browser: &Endpoint, stored: usize, report: &mut Report) -> anyhow::Result<()> {
    let one = "tasks/default/bench-stored-0000007";
    let paths = [
        "",
        "tasks",
        "tasks?state=Created&sort=priority",
        "tasks?text=0000042",
        one,
        "jobs",
        "schedules",
        "robots",
        "resources",
        "sinks",
        "submit",
    ];
    let mut worst: Option<(f64, &str)> = None;
    let mut connection = browser.connect().await?;
    let opened = Instant::now();
    connection.round_trip("GET", "/ui/", "text/plain", b"").await?;
    let answered = opened.elapsed().as_secs_f64() * 1000.0;
    first_frame(browser).await?;
    report.line(
        format!("the console opened for the first time since the start, {stored} tasks stored"),
        format!("{answered:.0} ms"),
        format!(
            "the page says that tasks are being read, and shows them after {:.0} ms; goal {GOAL_OF_PAGE_MILLIS:.0} ms",
            opened.elapsed().as_secs_f64() * 1000.0
        ),
    );
    for path in paths {
        let mut micros = Vec::new();
        for _ in 0..21 {
            let begun = Instant::now();
            let status = connection.round_trip("GET", &format!("/ui/{path}"), "text/plain", b"").await?;
            if status != 200 {
                bail!("/ui/{path} answered {status}");
            }
            micros.push(u32::try_from(begun.elapsed().as_micros())?);
        }
        let timing = Timing::new(micros, Duration::from_secs(1));
        let millis = timing.quantile(0.99).as_secs_f64() * 1000.0;
        eprintln!(
            "/ui/{path}: p50 {:.1} ms, slowest {millis:.1} ms",
            timing.quantile(0.5).as_secs_f64() * 1000.0
        );
        if worst.is_none_or(|(known, _)| millis > known) {
            worst = Some((millis, path));
        }
    }
    let (millis, path) = worst.context("no page")?;
    report.line(
        format!("slowest load of a page with {stored} tasks stored, 21 loads of {} pages", paths.len()),
        format!("{millis:.0} ms"),
        format!("/ui/{path}; goal {GOAL_OF_PAGE_MILLIS:.0} ms"),
    );
    Ok(())
}

/// What a while of work took.
struct Worked {
    /// Percent of a core.
    cpu: f64,
    /// Tasks per second.
    rate: f64,
    /// Megabytes.
    rss: f64,
    seconds: f64,
}

/// Submits tasks at a rate for a while; markers among them are noted for those who look.
async fn work(muster: &Muster, seconds: u64, looking: Option<&Looking>) -> anyhow::Result<Worked> {
    let ended = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("muster_task_ends_total{"));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
    };
    let mut asking = muster.plain.connect().await?;
    let mut read = async || -> anyhow::Result<f64> {
        asking.round_trip("GET", "/metrics", "text/plain", b"").await?;
        Ok(ended(&asking.whole_answer()))
    };
    let run = if looking.is_some() { "watched" } else { "alone" };
    let (before, cpu, begun) = (read().await?, muster.process.cpu_time()?, Instant::now());
    if let Some(looking) = looking {
        looking.frames.store(0, Ordering::Relaxed);
    }
    let mut submitters = JoinSet::new();
    for submitter in 0..SUBMITTERS {
        let endpoint = muster.plain.clone();
        let markers = looking.filter(|_| submitter == 0).map(|looking| looking.markers.clone());
        submitters.spawn(async move {
            let mut connection = endpoint.connect().await?;
            let pace = Duration::from_secs(1) / u32::try_from(RATE / SUBMITTERS)?;
            let mut ticks = tokio::time::interval(pace);
            for number in 0.. {
                ticks.tick().await;
                if begun.elapsed() >= Duration::from_secs(seconds) {
                    break;
                }
                // Five markers a second.
                let marker = markers.as_ref().filter(|_| number % 20 == 0);
                let name = match marker {
                    Some(markers) => {
                        let mut markers = markers.lock();
                        markers.push(Instant::now());
                        format!("marker-{:06}", markers.len() - 1)
                    }
                    None => format!("{run}-{submitter}-{number}"),
                };
                let body = json!({
                    "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name},
                    "spec": {"container": {"command": ["true"]}},
                });
                let status = connection
                    .round_trip("POST", TASKS, "application/json", body.to_string().as_bytes())
                    .await?;
                if status != 201 {
                    bail!("a task was answered with {status}");
                }
            }
            Ok(())
        });
    }
    while let Some(outcome) = submitters.join_next().await {
        outcome??;
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let used = muster.process.cpu_time()?.saturating_sub(cpu).as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "bytes of a process")]
    let rss = muster.process.rss()? as f64 / 1e6;
    Ok(Worked {
        cpu: 100.0 * used / elapsed,
        rate: (read().await? - before) / elapsed,
        rss,
        seconds: elapsed,
    })
}

/// Consoles that are open.
struct Looking {
    done: Arc<AtomicBool>,
    frames: Arc<AtomicUsize>,
    /// When each marker was created.
    markers: Arc<Mutex<Vec<Instant>>>,
    /// How late each was shown, in microseconds.
    lags: Arc<Mutex<Vec<u32>>>,
    /// End with this.
    open: JoinSet<anyhow::Result<()>>,
}

impl Looking {
    async fn open(browser: &Endpoint, count: usize) -> anyhow::Result<Self> {
        let mut looking = Self {
            done: Arc::default(),
            frames: Arc::default(),
            markers: Arc::default(),
            lags: Arc::default(),
            open: JoinSet::new(),
        };
        let paths = LOOKED_AT.iter().flat_map(|(path, share)| std::iter::repeat_n(*path, *share));
        for path in paths.cycle().take(count) {
            let stream = follow(browser, path).await?;
            let console = Console {
                done: looking.done.clone(),
                frames: looking.frames.clone(),
                looks_for: path.contains("marker").then(|| (looking.markers.clone(), looking.lags.clone())),
            };
            looking.open.spawn(console.look(stream));
        }
        Ok(looking)
    }
}

/// Asks for a page as it changes.
async fn follow(browser: &Endpoint, path: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(&browser.address).await?;
    let request = format!(
        "GET /ui/live/{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nAccept: text/event-stream\r\n\r\n",
        browser.address, browser.authorization
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Returns when the overview has come whole.
async fn first_frame(browser: &Endpoint) -> anyhow::Result<()> {
    let mut stream = follow(browser, "").await?;
    let (mut came, mut chunk) = (Vec::new(), vec![0; 64 * 1024]);
    while !String::from_utf8_lossy(&came).contains("event: page") {
        match stream.read(&mut chunk).await? {
            0 => bail!("the server closed a console"),
            count => came.extend_from_slice(&chunk[..count]),
        }
    }
    Ok(())
}

type Markers = Arc<Mutex<Vec<Instant>>>;
type Lags = Arc<Mutex<Vec<u32>>>;

struct Console {
    done: Arc<AtomicBool>,
    frames: Arc<AtomicUsize>,
    looks_for: Option<(Markers, Lags)>,
}

impl Console {
    async fn look(self, mut stream: TcpStream) -> anyhow::Result<()> {
        let (mut frame, mut chunk, mut next) = (Vec::new(), vec![0; 64 * 1024], 0);
        while !self.done.load(Ordering::Relaxed) {
            let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut chunk)).await;
            let Ok(read) = read else { continue };
            match read? {
                0 => bail!("the server closed a console"),
                count => frame.extend_from_slice(&chunk[..count]),
            }
            if !frame.windows(2).rev().take(64).any(|end| end == b"\n\n") {
                continue;
            }
            let text = String::from_utf8_lossy(&frame);
            self.frames.fetch_add(text.matches("event: page").count(), Ordering::Relaxed);
            if let Some((markers, lags)) = &self.looks_for {
                while text.contains(&format!("marker-{next:06}")) {
                    let Some(made) = markers.lock().get(next).copied() else { break };
                    lags.lock().push(u32::try_from(made.elapsed().as_micros()).unwrap_or(u32::MAX));
                    next += 1;
                }
            }
            frame.clear();
        }
        Ok(())
    }
}
