//! `bench hostile`: one client creates and reads tasks, alone and then beside all that others may do to the server at once: watches that
//! see nothing, clients that stop in the middle, files that come in byte by byte, expressions that cost too much, and wrong tokens.

#![allow(clippy::cast_precision_loss, reason = "counts are small")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::clients::{Endpoint, Timing};
use crate::muster_peer::{Muster, TASKS, task};
use crate::plot::{Bar, Series, bars};
use crate::process::rss_of;
use crate::report::{Report, circumstances};

const JSON: &str = "application/json";
const OWN: &str = "/apis/muster.dev/v1alpha1";
const MANAGED: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default";
/// Nothing happens here.
const QUIET: &str = "/apis/muster.dev/v1alpha1/namespaces/quiet/tasks?watch=1";
/// Tokens that the watches are spread over.
const TOKENS: usize = 20;
/// Between two requests of the client that is measured.
const PACE: Duration = Duration::from_millis(5);
/// Between two bytes of whoever is slow.
const DRIP: Duration = Duration::from_secs(2);
/// Connections that ask with wrong tokens, without a pause.
const GUESSERS: usize = 4;
/// Between two objects whose expressions cost too much.
const BOMBS: Duration = Duration::from_millis(500);
/// To reach: the slowest in a hundred, against what it is alone, and memory.
const GOAL_TIMES: f64 = 10.0;
const GOAL_MB: f64 = 600.0;

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
struct Size {
    watches: usize,
    slow: usize,
    uploads: usize,
    seconds: u64,
}

/// What others did.
#[derive(Debug, Default)]
struct Seen {
    watches: AtomicUsize,
    uploads: AtomicUsize,
    refused_uploads: AtomicUsize,
    guesses: AtomicUsize,
    bombs: AtomicUsize,
    done: AtomicBool,
}

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let size = if quick {
        Size { watches: 1_000, slow: 200, uploads: 50, seconds: 5 }
    } else {
        Size { watches: 10_000, slow: 2_000, uploads: 500, seconds: 30 }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let dir = tempfile::tempdir()?;
    let mut report = Report::default();
    let (alone, beside, memory) = runtime.block_on(measure(&dir.path().join("data"), size, &mut report))?;
    if write && !quick {
        let bar = |label: &str, value, series| Bar { label: label.into(), value, series };
        let plot = [bar("alone", alone, Series::Peer), bar("beside all of them", beside, Series::Muster)];
        let svg = bars("one client's slowest in a hundred requests", "ms", &plot);
        report.write("hostile", &circumstances("cargo xtask bench hostile"), &svg)?;
    }
    if beside > GOAL_TIMES * alone || memory > GOAL_MB {
        bail!("the goal is not reached");
    }
    Ok(())
}

async fn measure(data: &Path, size: Size, report: &mut Report) -> anyhow::Result<(f64, f64, f64)> {
    let muster = Muster::start_with_limits(data, &["--roles", "api,engine,web", "--slots", "1"]).await?;
    let admin = &muster.plain;
    declare_bombs(admin).await?;
    let mut connection = admin.connect().await?;
    expect(&mut connection, TASKS, &task("files", 0), 201).await?;
    let alone = work(admin, "alone", size.seconds).await?;
    let (viewers, editors) = (tokens(admin, "viewer").await?, tokens(admin, "editor").await?);

    let seen = Arc::new(Seen::default());
    let mut others = JoinSet::new();
    for number in 0..size.watches {
        let endpoint = with_token(admin, &viewers[number % TOKENS]);
        others.spawn(watch(endpoint, seen.clone()));
        // Whoever opens thousands of connections at once measures the queue of the kernel.
        if number % 200 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for number in 0..size.slow {
        others.spawn(ask_slowly(with_token(admin, &viewers[number % TOKENS]), number, seen.clone()));
    }
    for number in 0..size.uploads {
        others.spawn(send_slowly(with_token(admin, &editors[number % TOKENS]), number, seen.clone()));
    }
    for number in 0..GUESSERS {
        others.spawn(guess(with_token(admin, &format!("wrong-{number}")), seen.clone()));
    }
    others.spawn(bomb(admin.clone(), seen.clone()));
    // Until all of them are there.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let beside = work(admin, "beside", size.seconds).await?;
    seen.done.store(true, Ordering::Relaxed);
    let peak = peak_megabytes(muster.process.id())?;
    let now = rss_of(muster.process.id())? as f64 / 1e6;
    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    let (watches, uploads, guesses) = (count(&seen.watches), count(&seen.uploads), count(&seen.guesses));
    let (refused, bombs) = (count(&seen.refused_uploads), count(&seen.bombs));
    others.shutdown().await;
    if watches < size.watches * 9 / 10 || guesses == 0 || bombs == 0 || uploads + refused < size.uploads {
        bail!(
            "there were {watches} watches, {uploads}+{refused} uploads, {guesses} wrong tokens and {bombs} expressions: not what is measured"
        );
    }
    let millis = |timing: &Timing, quantile: f64| timing.quantile(quantile).as_secs_f64() * 1000.0;
    let (before, after) = (millis(&alone, 0.99), millis(&beside, 0.99));
    report.line(
        "one client creates and reads a task, alone, p99",
        format!("{before:.2} ms"),
        format!("p50 {:.2} ms, {} requests", millis(&alone, 0.5), alone.count),
    );
    report.line(
        "the same beside all of them, p99",
        format!("{after:.2} ms"),
        format!(
            "{:.1} times; goal below {GOAL_TIMES:.0} times; p50 {:.2} ms, {} requests",
            after / before,
            millis(&beside, 0.5),
            beside.count
        ),
    );
    report.line(
        format!("{watches} watches of {TOKENS} tokens, {} slow clients, {uploads} slow uploads", size.slow),
        format!("{guesses} wrong tokens"),
        format!("{refused} uploads refused (429), {bombs} objects with expressions that cost too much"),
    );
    report.line(
        "memory of the server, at its peak",
        format!("{peak:.0} MB"),
        format!("goal below {GOAL_MB:.0} MB; {now:.0} MB at the end"),
    );
    Ok((before, after, peak))
}

/// Creates tasks and reads them for a while; how long each request took.
async fn work(endpoint: &Endpoint, run: &str, seconds: u64) -> anyhow::Result<Timing> {
    let mut connection = endpoint.connect().await?;
    let (mut micros, begun) = (Vec::new(), Instant::now());
    for number in 0.. {
        if begun.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        let read = format!("{TASKS}/bench-{run}-{number:07}");
        for (method, path, body) in [("POST", TASKS, task(run, number)), ("GET", read.as_str(), Vec::new())] {
            let sent = Instant::now();
            let status = connection.round_trip(method, path, JSON, &body).await?;
            if !(200..300).contains(&status) {
                bail!("{method} {path} answered {status}: {}", connection.last_answer());
            }
            micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
            tokio::time::sleep(PACE).await;
        }
    }
    Ok(Timing::new(micros, begun.elapsed()))
}

/// Watches what never changes.
async fn watch(endpoint: Endpoint, seen: Arc<Seen>) -> anyhow::Result<()> {
    let mut connection = endpoint.connect().await?;
    connection.send("GET", QUIET, JSON, b"").await?;
    let mut buffer = [0; 512];
    let read = connection.read_some(&mut buffer).await?;
    if !buffer[..read].starts_with(b"HTTP/1.1 200") {
        bail!("a watch was answered {}", String::from_utf8_lossy(&buffer[..read]));
    }
    seen.watches.fetch_add(1, Ordering::Relaxed);
    while connection.read_some(&mut buffer).await? > 0 {
        if seen.done.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

/// Asks for a list and never reads it, or never gets to the end of its request; comes back when it is shown the door.
async fn ask_slowly(endpoint: Endpoint, number: usize, seen: Arc<Seen>) -> anyhow::Result<()> {
    while !seen.done.load(Ordering::Relaxed) {
        let mut stream = TcpStream::connect(&endpoint.address).await?;
        let reads = number.is_multiple_of(2);
        let end = if reads { "\r\n" } else { "X-Slow: " };
        let head =
            format!("GET {TASKS} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n{end}", endpoint.authorization);
        stream.write_all(head.as_bytes()).await?;
        while !seen.done.load(Ordering::Relaxed) {
            tokio::time::sleep(DRIP).await;
            let goes_on = if reads {
                stream.read(&mut [0]).await.is_ok_and(|read| read > 0)
            } else {
                stream.write_all(b"x").await.is_ok()
            };
            if !goes_on {
                break;
            }
        }
    }
    Ok(())
}

/// Sends a file byte by byte.
async fn send_slowly(endpoint: Endpoint, number: usize, seen: Arc<Seen>) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(&endpoint.address).await?;
    let head = format!(
        "PUT {TASKS}/bench-files-0000000/bucket/slow-{number} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nContent-Length: 1000000\r\n\r\nx",
        endpoint.authorization
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = [0; 12];
    let refused = tokio::time::timeout(DRIP, stream.read_exact(&mut answer)).await.is_ok();
    let count = if refused { &seen.refused_uploads } else { &seen.uploads };
    count.fetch_add(1, Ordering::Relaxed);
    while !seen.done.load(Ordering::Relaxed) && stream.write_all(b"x").await.is_ok() {
        tokio::time::sleep(DRIP).await;
    }
    Ok(())
}

/// Asks with a wrong token, again and again.
async fn guess(endpoint: Endpoint, seen: Arc<Seen>) -> anyhow::Result<()> {
    let mut connection = endpoint.connect().await?;
    while !seen.done.load(Ordering::Relaxed) {
        let status = connection.round_trip("GET", TASKS, JSON, b"").await;
        match status {
            Ok(401 | 429) => drop(seen.guesses.fetch_add(1, Ordering::Relaxed)),
            Ok(status) => bail!("a wrong token was answered {status}"),
            Err(_) => connection = endpoint.connect().await?,
        }
    }
    Ok(())
}

/// Makes objects whose expressions would take all memory or all time.
async fn bomb(admin: Endpoint, seen: Arc<Seen>) -> anyhow::Result<()> {
    let mut connection = admin.connect().await?;
    let long = json!({"l": vec![1; 20_000], "text": "x".repeat(500_000)});
    for number in 0.. {
        if seen.done.load(Ordering::Relaxed) {
            break;
        }
        let (plural, kind, spec) = match number % 3 {
            0 => ("nested", "Nested", &json!({})),
            1 => ("copies", "Copies", &long),
            _ => ("looks", "Looks", &long),
        };
        let name = format!("x{}", number % 30);
        let object = json!({
            "apiVersion": "resources.muster.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        let path = format!("{MANAGED}/{plural}");
        connection.round_trip("DELETE", &format!("{path}/{name}"), JSON, b"").await?;
        let status = connection.round_trip("POST", &path, JSON, object.to_string().as_bytes()).await?;
        if status == 201 {
            seen.bombs.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(BOMBS).await;
    }
    Ok(())
}

/// Types of resources whose adapters have such expressions.
async fn declare_bombs(admin: &Endpoint) -> anyhow::Result<()> {
    let task = json!({"spec": {"container": {"command": ["true"]}}});
    let nested: Vec<Value> = (0..6)
        .map(|depth: usize| {
            let value = match depth.checked_sub(1) {
                None => format!("{:?}", (0..100).collect::<Vec<_>>()),
                Some(before) => format!("params.p0.map(x, params.p{before})"),
            };
            json!({"name": format!("p{depth}"), "value": value})
        })
        .collect();
    let copies = json!([{"name": "a", "value": "resource.spec.l.map(x, resource.spec)"}]);
    let looks = json!([{"type": "Large", "status": "resource.spec.l.all(x, size(resource.spec.text) > 0)"}]);
    let all = [
        ("nested", "Nested", json!({}), json!({"params": nested, "task": task})),
        ("copies", "Copies", json!({}), json!({"params": copies, "task": task})),
        ("looks", "Looks", json!({"conditions": looks}), json!({"task": task})),
    ];
    let mut connection = admin.connect().await?;
    for (plural, kind, more, mut adapter) in all {
        let mut spec = json!({"names": {"kind": kind, "plural": plural}, "adapters": [plural]});
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        adapter["resourceType"] = json!(plural);
        let object = |kind: &str, spec: &Value| {
            json!({"apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": plural}, "spec": spec})
                .to_string()
        };
        let r#type = object("ResourceType", &spec);
        expect(&mut connection, &format!("{OWN}/resourcetypes"), r#type.as_bytes(), 201).await?;
        let adapter = object("Adapter", &adapter);
        expect(&mut connection, &format!("{OWN}/namespaces/default/adapters"), adapter.as_bytes(), 201)
            .await?;
    }
    Ok(())
}

async fn expect(
    connection: &mut crate::clients::Connection,
    path: &str,
    body: &[u8],
    wanted: u16,
) -> anyhow::Result<()> {
    let status = connection.round_trip("POST", path, JSON, body).await?;
    if status != wanted {
        bail!("POST {path} answered {status}: {}", connection.last_answer());
    }
    Ok(())
}

/// New tokens of a role.
async fn tokens(admin: &Endpoint, role: &str) -> anyhow::Result<Vec<String>> {
    let (mut connection, mut made) = (admin.connect().await?, Vec::new());
    for number in 0..TOKENS {
        let wanted = json!({"name": format!("{role}-{number}"), "role": role}).to_string();
        expect(&mut connection, "/tokens", wanted.as_bytes(), 201).await?;
        let answer = connection.whole_answer();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let answer: Value = serde_json::from_str(body).context("no token in the answer")?;
        made.push(answer["token"].as_str().context("no token in the answer")?.to_owned());
    }
    Ok(made)
}

fn with_token(admin: &Endpoint, secret: &str) -> Endpoint {
    Endpoint { authorization: format!("Bearer {secret}"), ..admin.clone() }
}

/// The most memory a process ever had.
fn peak_megabytes(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in /proc")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok((kib * 1024) as f64 / 1e6)
}
