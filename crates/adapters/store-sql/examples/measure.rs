//! Measures the store on SQLite: commits per second, and what a start costs in time and memory.
//!
//! ```text
//! cargo run --release --example measure -- create DIR COMMITTERS SECONDS
//! cargo run --release --example measure -- update DIR COMMITTERS SECONDS OBJECTS
//! cargo run --release --example measure -- fill DIR OBJECTS
//! cargo run --release --example measure -- load DIR
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for a terminal")]

use std::path::Path;
use std::time::{Duration, Instant};

use muster_ports::clock::SystemClock;
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, Write};
use muster_store_sql::SqliteLog;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["create", directory, committers, seconds] => {
            commits(&open(directory), number(committers), number(seconds), u64::MAX).await;
        }
        ["update", directory, committers, seconds, objects] => {
            commits(&open(directory), number(committers), number(seconds), number(objects)).await;
        }
        ["fill", directory, objects] => fill(&open(directory), number(objects)).await,
        ["load", directory] => load(directory),
        _ => println!("create | update | fill | load, see the source"),
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

fn open(directory: &str) -> Store {
    let log = SqliteLog::open(&Path::new(directory).join("muster.db")).unwrap();
    Store::open(log, History::default(), SystemClock).unwrap()
}

/// A kilobyte, like a small task.
fn object(number: u64) -> (Key, Draft) {
    let name = format!("task-{number:016x}");
    let key = Key::new(&ResourceName::new("tasks.muster.dev"), "default", &name);
    let before = format!("{{\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"");
    let after = format!("\"}},\"spec\":{{\"padding\":\"{}\"}}}}", "x".repeat(930));
    (key, Draft::joined(&before, &after))
}

/// Each committer writes one object after the other for a while; names come round again after `objects`.
async fn commits(store: &Store, committers: u64, seconds: u64, objects: u64) {
    let first = store.revision().0;
    let started = Instant::now();
    let end = started + Duration::from_secs(seconds);
    let mut loops = JoinSet::new();
    for committer in 0..committers {
        loops.spawn(commit_until(end, store.clone(), committer, committers, objects));
    }
    let mut latencies = loops.join_all().await.concat();
    latencies.sort_unstable();
    let slowest = |share: usize| latencies[(latencies.len() - 1) * share / 1000];
    println!(
        "{committers} committers: {} commits/s; median {:?}, 99 % {:?}, slowest {:?}; {} MB resident",
        u128::from(store.revision().0 - first) * 1000 / started.elapsed().as_millis(),
        slowest(500),
        slowest(990),
        slowest(1000),
        resident() >> 20
    );
}

async fn commit_until(
    end: Instant,
    store: Store,
    committer: u64,
    committers: u64,
    objects: u64,
) -> Vec<Duration> {
    let start = store.revision().0 << 20;
    let mut latencies = Vec::new();
    for number in 0.. {
        let (key, draft) = object((start + number * committers + committer) % objects);
        let expect = store.get(&key).map_or(Precondition::Absent, |found| Precondition::At(found.revision));
        let asked = Instant::now();
        store.commit(Batch::of(Write::Put { key, expect, draft })).await.unwrap();
        latencies.push(asked.elapsed());
        if Instant::now() >= end {
            break;
        }
    }
    latencies
}

/// Names come in an order that is not the order of the map.
async fn fill(store: &Store, objects: u64) {
    let started = Instant::now();
    let names: Vec<u64> = (0..objects).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for chunk in names.chunks(1000) {
        let put = |number: &u64| {
            let (key, draft) = object(*number);
            Write::Put { key, expect: Precondition::Absent, draft }
        };
        store.commit(Batch { checks: Vec::new(), writes: chunk.iter().map(put).collect() }).await.unwrap();
    }
    println!("{objects} objects written in {:?}; {} MB resident", started.elapsed(), resident() >> 20);
}

fn load(directory: &str) {
    let before = resident();
    let started = Instant::now();
    let store = open(directory);
    let took = started.elapsed();
    let objects: usize = store.counts().iter().map(|(_, count)| count).sum();
    let bytes = resident() - before;
    println!(
        "{objects} objects at revision {} loaded in {took:?}; {} MB resident, {} bytes per object",
        store.revision(),
        bytes >> 20,
        bytes / u64::try_from(objects).unwrap().max(1)
    );
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
