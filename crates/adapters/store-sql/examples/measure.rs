//! Measures the store on SQLite: commits per second, and what a start costs in time and memory.
//!
//! `cargo run --release --example measure -- commits DIR COMMITTERS SECONDS`
//! `cargo run --release --example measure -- fill DIR OBJECTS`, then `... -- load DIR`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for a terminal")]

use std::path::Path;
use std::time::{Duration, Instant};

use muster_ports::clock::SystemClock;
use muster_ports::store::{Batch, Draft, History, Key, Precondition, ResourceName, Store, Write};
use muster_store_sql::SqliteLog;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match words[..] {
        ["commits", directory, committers, seconds] => {
            let store = open(directory);
            runtime.block_on(commits(&store, committers.parse().unwrap(), seconds.parse().unwrap(), 1 << 40));
        }
        ["updates", directory, committers, seconds, objects] => {
            let store = open(directory);
            let (committers, seconds) = (committers.parse().unwrap(), seconds.parse().unwrap());
            runtime.block_on(commits(&store, committers, seconds, objects.parse().unwrap()));
        }
        ["fill", directory, objects] => runtime.block_on(fill(&open(directory), objects.parse().unwrap())),
        ["load", directory] => load(directory),
        ["scan", directory] => {
            use muster_ports::store::Log;
            let mut log = SqliteLog::open(&Path::new(directory).join("muster.db")).unwrap();
            let started = Instant::now();
            log.header().unwrap();
            let mut n = 0;
            log.load(&mut |row| n += row.path.len()).unwrap();
            println!("{n} scan {:?}", started.elapsed());
        }
        ["scan2", directory] => {
            use muster_ports::store::Log;
            let mut log = SqliteLog::open(&Path::new(directory).join("muster.db")).unwrap();
            let started = Instant::now();
            log.header().unwrap();
            let mut n: Vec<Box<[u8]>> = vec![];
            log.load(&mut |row| n.push(row.json.unwrap().into())).unwrap();
            println!("scan {:?}", started.elapsed());
            std::mem::forget(n);
        }
        _ => println!(
            "commits DIR COMMITTERS SECONDS | updates DIR COMMITTERS SECONDS OBJECTS | fill DIR OBJECTS | load DIR"
        ),
    }
}

fn open(directory: &str) -> Store {
    let log = SqliteLog::open(&Path::new(directory).join("muster.db")).unwrap();
    Store::open(log, History::default(), SystemClock).unwrap()
}

/// A kilobyte, like a small task.
fn put(number: u64) -> Write {
    let key = Key::new(&ResourceName::new("tasks.muster.dev"), "default", &format!("task-{number:012x}"));
    let before = format!("{{\"metadata\":{{\"name\":\"task-{number:012x}\",\"resourceVersion\":\"");
    let after = format!("\"}},\"spec\":{{\"padding\":\"{}\"}}}}", "x".repeat(930));
    let expect = Precondition::Absent;
    Write::Put { key, expect, draft: Draft::joined(&before, &after) }
}

/// Each committer writes one object after the other for a while; names come round again after `objects`.
async fn commits(store: &Store, committers: u64, seconds: u64, objects: u64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = store.revision().0;
    let started = Instant::now();
    let loops: Vec<_> = (0..committers)
        .map(|committer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut worst = Duration::ZERO;
                let mut number = 0_u64;
                while Instant::now() < end {
                    let name = (first << 20) + (number * committers + committer);
                    let Write::Put { key, draft, .. } = put(name % objects) else { return worst };
                    let expect = store
                        .get(&key)
                        .map_or(Precondition::Absent, |found| Precondition::At(found.revision));
                    let asked = Instant::now();
                    store.commit(Batch::of(Write::Put { key, expect, draft })).await.unwrap();
                    worst = worst.max(asked.elapsed());
                    number += 1;
                }
                worst
            })
        })
        .collect();
    let mut worst = Duration::ZERO;
    for committer in loops {
        worst = worst.max(committer.await.unwrap());
    }
    let commits = store.revision().0 - first;
    println!(
        "{committers} committers: {:.0} commits/s, slowest {worst:?}, {} MB resident, compacted {}",
        commits as f64 / started.elapsed().as_secs_f64(),
        resident() >> 20,
        store.compacted()
    );
}

async fn fill(store: &Store, objects: u64) {
    let started = Instant::now();
    // Names in an order that is not the order of the map.
    let names: Vec<u64> =
        (0..objects).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16).collect();
    for chunk in names.chunks(1000) {
        let writes = chunk.iter().map(|number| put(*number)).collect();
        store.commit(Batch { checks: Vec::new(), writes }).await.unwrap();
    }
    println!("{objects} objects written in {:?}, {} MB resident", started.elapsed(), resident() >> 20);
}

fn load(directory: &str) {
    let before = resident();
    let started = Instant::now();
    let store = open(directory);
    let took = started.elapsed();
    let objects: usize = store.counts().iter().map(|(_, count)| count).sum();
    let bytes = resident() - before;
    println!(
        "{objects} objects at revision {} loaded in {took:?}, {} MB resident, {} bytes per object",
        store.revision(),
        bytes >> 20,
        bytes / objects.max(1) as u64
    );
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
