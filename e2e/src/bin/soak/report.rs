//! What a soak has to say: how much happened, how much went wrong, what was compared with which promise, and what was broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use muster_sim::judge::history::{Entry, What};
use muster_sim::judge::{Finding, judge_and_count};
use muster_sim::world::line;

use crate::args::{StoreKind, Wanted};
use crate::soak::Soaked;

/// Entries that are shown before what was found.
const SHOWN: usize = 25;

/// Judges a soak and prints everything; true if no promise was broken and the history can be trusted.
pub fn print(wanted: &Wanted, soaked: &Soaked, took: Duration) -> bool {
    let store = match wanted.store {
        StoreKind::Sqlite => "sqlite",
        StoreKind::Postgres => "postgres",
    };
    let (tasks, attempts) = counts(&soaked.history);
    let (done, failed) = (&soaked.asked.done, &soaked.asked.failed);
    println!(
        "soak of {:.1} minutes on {store}, seed {}: {tasks} tasks, {attempts} programs, {} requests carried out, {} not",
        took.as_secs_f64() / 60.0,
        wanted.seed,
        done.load(Ordering::SeqCst),
        failed.load(Ordering::SeqCst),
    );
    let faults = soaked.faults.all();
    println!("faults: {} in all{}", faults.values().sum::<u32>(), list(faults.iter()));
    let is_kept = print_verdict(&soaked.history);
    for trouble in &soaked.troubles {
        println!("the history cannot be trusted: {trouble}");
    }
    is_kept && soaked.troubles.is_empty()
}

/// Judges a history and prints what was compared and found; true if no promise was broken.
pub fn print_verdict(history: &[Entry]) -> bool {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in history {
        *kinds.entry(kind(&entry.what)).or_default() += 1;
    }
    println!("entries: {} in all{}", history.len(), list(kinds.iter()));
    let verdict = judge_and_count(history);
    println!("facts compared: {} in all{}", verdict.facts.values().sum::<u64>(), list(verdict.facts.iter()));
    for finding in &verdict.findings {
        print_finding(history, finding);
    }
    println!("{} findings", verdict.findings.len());
    verdict.findings.is_empty()
}

fn print_finding(history: &[Entry], finding: &Finding) {
    println!("FINDING: {finding}");
    let upto = (finding.place + 1).min(history.len());
    for (place, entry) in history.iter().enumerate().take(upto).skip(upto.saturating_sub(SHOWN)) {
        println!("{place:8} {}", line(entry));
    }
}

fn counts(history: &[Entry]) -> (usize, usize) {
    let (mut tasks, mut programs) = (BTreeSet::new(), 0);
    for entry in history {
        match &entry.what {
            What::Change(commit) if commit.resource == "tasks.muster.dev" => drop(tasks.insert(&commit.path)),
            What::Started(_) => programs += 1,
            _ => {}
        }
    }
    (tasks.len(), programs)
}

fn kind(what: &What) -> &'static str {
    match what {
        What::Change(_) => "commits",
        What::Refused(_) => "refusals by a quota",
        What::Admitted(_) => "pods let in",
        What::Started(_) => "starts",
        What::Ended(..) => "ends",
        What::Kept(_) => "logs kept",
        What::Removed(_) => "files removed",
        What::Delivered(_) => "messages",
        What::Asked(_) => "deletions asked for",
        What::Server(..) => "servers",
        What::Link(..) => "links",
        What::ClockJumped(_) => "clock jumps",
        What::StoreRefused => "full disk",
        What::Room(_) | What::Quiet | What::Faults(_) => "notes",
    }
}

fn list<'a, N: std::fmt::Display + 'a>(counts: impl Iterator<Item = (&'a &'a str, &'a N)>) -> String {
    let lines: Vec<String> = counts.map(|(name, count)| format!("\n  {count:>8} {name}")).collect();
    lines.concat()
}
