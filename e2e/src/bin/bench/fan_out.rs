//! Watch fan-out: many watchers, a steady stream of updates, and how late each frame arrives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::sync::Barrier;

use crate::clients::{Endpoint, Timing};
use crate::muster_peer::TASKS;

/// Opens `watchers` watches, makes `updates` updates at `rate` per second, and returns the lag of every frame.
pub async fn fan_out(
    endpoint: &Endpoint,
    watchers: usize,
    updates: usize,
    rate: u32,
) -> anyhow::Result<Timing> {
    let mut writer = endpoint.connect().await?;
    let object = String::from_utf8(crate::muster_peer::task("fan", 0))?;
    writer.round_trip("POST", TASKS, "application/json", object.as_bytes()).await?;
    let name = "bench-fan-0000000";
    let path = format!("{TASKS}?watch=true&fieldSelector=metadata.name%3D{name}&timeoutSeconds=300");
    let ready = Arc::new(Barrier::new(watchers + 1));
    let mut following = Vec::new();
    for _ in 0..watchers {
        let (endpoint, path, ready) = (endpoint.clone(), path.clone(), ready.clone());
        following.push(tokio::spawn(async move { follow(&endpoint, &path, updates, &ready).await }));
    }
    ready.wait().await;
    let mut writer = endpoint.connect().await?;
    let started = Instant::now();
    let mut sent = Vec::with_capacity(updates);
    let step = Duration::from_secs(1) / rate;
    for number in 0..updates {
        tokio::time::sleep_until((started + step * u32::try_from(number)?).into()).await;
        let change = format!(r#"{{"metadata":{{"annotations":{{"update":"{number}"}}}}}}"#);
        sent.push(Instant::now());
        let target = format!("{TASKS}/{name}");
        let status =
            writer.round_trip("PATCH", &target, "application/merge-patch+json", change.as_bytes()).await?;
        if status != 200 {
            bail!("the update was refused: {}", writer.last_answer());
        }
    }
    let wall = started.elapsed();
    let mut micros = Vec::with_capacity(watchers * updates);
    for watcher in following {
        let arrivals =
            tokio::time::timeout(Duration::from_mins(1), watcher).await.context("a watcher hangs")???;
        for (arrival, sent) in arrivals.iter().zip(&sent) {
            let lag = arrival.saturating_duration_since(*sent);
            micros.push(u32::try_from(lag.as_micros()).unwrap_or(u32::MAX));
        }
    }
    if micros.len() != watchers * updates {
        bail!("{} frames arrived, {} were expected", micros.len(), watchers * updates);
    }
    Ok(Timing::new(micros, wall))
}

/// When each update arrived. Frames are counted by their ends, not parsed.
async fn follow(
    endpoint: &Endpoint,
    path: &str,
    updates: usize,
    ready: &Barrier,
) -> anyhow::Result<Vec<Instant>> {
    let mut connection = endpoint.connect().await?;
    connection.send("GET", path, "application/json", b"").await?;
    let mut buffer = vec![0; 64 * 1024];
    let mut arrivals = Vec::with_capacity(updates + 1);
    let mut before = 0;
    // The first frame is the object as it was.
    while arrivals.len() < updates + 1 {
        let count = connection.read_some(&mut buffer).await?;
        if count == 0 {
            bail!("a watch ended early");
        }
        let now = Instant::now();
        for byte in &buffer[..count] {
            if before == b'}' && *byte == b'\n' {
                arrivals.push(now);
                if arrivals.len() == 1 {
                    ready.wait().await;
                }
            }
            before = *byte;
        }
    }
    arrivals.remove(0);
    Ok(arrivals)
}
