//! `kill -9` at any moment loses nothing that was acknowledged.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use muster_ports::clock::SystemClock;
use muster_ports::store::{Batch, CommitError, History, Precondition, Revision, Store};
use muster_store_sql::SqliteLog;
use support::{Directory, Numbers, create, delete, key, put};

/// Tells the child where the database is and which round it is.
const DATABASE: &str = "MUSTER_CRASH_DATABASE";
const ROUND: &str = "MUSTER_CRASH_ROUND";
const WORKERS: usize = 8;

fn open(database: &Path) -> Store {
    // Short, so that it is also killed while it forgets.
    let history = History { max_changes: 300, ..History::default() };
    Store::open(SqliteLog::open(database).unwrap(), history, SystemClock).unwrap()
}

/// What the child says once a commit was acknowledged: `ack REVISION VERB NAME`.
fn acknowledge(revision: Revision, verb: &str, name: &str) {
    println!("ack {revision} {verb} {name}");
}

/// The child: commits until it is killed.
async fn commit_for_ever(database: &Path, round: &str) {
    let store = open(database);
    let workers: Vec<_> =
        (0..WORKERS).map(|worker| tokio::spawn(work(store.clone(), format!("{round}-{worker}")))).collect();
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
}

async fn work(store: Store, prefix: String) -> Result<(), CommitError> {
    let hot = format!("{prefix}-hot");
    let first = store.commit(create(&hot)).await?;
    acknowledge(first.revision, "put", &hot);
    for number in 0.. {
        let kept = format!("{prefix}-kept-{number}");
        let gone = format!("{prefix}-gone-{number}");
        let both = Batch {
            checks: Vec::new(),
            writes: vec![put(&kept, Precondition::Absent), put(&gone, Precondition::Absent)],
        };
        let committed = store.commit(both).await?;
        acknowledge(committed.objects[0].revision, "put", &kept);
        acknowledge(committed.objects[1].revision, "put", &gone);
        acknowledge(store.commit(Batch::of(put(&hot, Precondition::Exists))).await?.revision, "put", &hot);
        acknowledge(store.commit(Batch::of(delete(&gone))).await?.revision, "delete", &gone);
    }
    Ok(())
}

/// Everything that was acknowledged in all rounds.
#[derive(Default)]
struct Acknowledged {
    /// The newest revision when the child was started.
    floor: u64,
    revisions: BTreeMap<u64, String>,
    /// The last word on each object.
    objects: BTreeMap<String, (u64, bool)>,
}

impl Acknowledged {
    fn note(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let ["ack", revision, verb, name] = words[..] else { return };
        let revision: u64 = revision.parse().unwrap();
        assert!(revision > self.floor, "{line}: revision {} was there before", self.floor);
        let before = self.revisions.insert(revision, line.to_owned());
        assert_eq!(before, None, "{line}: the revision was given out twice");
        let last = self.objects.entry(name.to_owned()).or_default();
        *last = (*last).max((revision, verb == "put"));
    }

    fn check(&self, store: &Store) {
        let newest = self.revisions.keys().next_back().copied().unwrap_or(0);
        assert!(store.revision().0 >= newest);
        for (name, (revision, there)) in &self.objects {
            let found = store.get(&key(name));
            let found = found.as_ref();
            if *there {
                // One that is to go may be gone, and the hot one may be newer: the child died before it could say so.
                let excused = found.is_none() && name.contains("gone");
                assert!(
                    excused || found.is_some_and(|found| found.revision.0 >= *revision),
                    "{name} at {revision}"
                );
            } else {
                assert!(found.is_none(), "{name} was deleted at {revision}");
            }
            if let Some(found) = found {
                let start = format!("{{\"revision\":\"{}\",\"name\":\"{name}\"", found.revision);
                assert!(found.json().starts_with(start.as_bytes()), "{name}");
                assert!(name.contains("hot") || found.revision.0 == *revision, "{name} was written once");
            }
        }
    }
}

/// Killed when it goes out of scope, also by a failing assertion.
struct Killed(Child);

impl Killed {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn start(database: &Path, round: usize) -> Killed {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "acknowledged_commits_survive_a_kill_at_any_moment", "--nocapture"])
        .env(DATABASE, database)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    Killed(child)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_commits_survive_a_kill_at_any_moment() {
    if let Some(database) = std::env::var_os(DATABASE) {
        return commit_for_ever(Path::new(&database), &std::env::var(ROUND).unwrap()).await;
    }
    let directory = Directory::new();
    let mut acknowledged = Acknowledged::default();
    let mut numbers = Numbers(7);
    for round in 0..20 {
        let mut child = start(&directory.database(), round);
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let patience = numbers.below(1_000);
        let heard =
            lines.by_ref().map(Result::unwrap).filter(|line| line.starts_with("ack")).take(patience + 1);
        heard.for_each(|line| acknowledged.note(&line));
        child.kill();
        // What it had said before it died counts. The last line may be cut.
        let mut rest: Vec<_> = lines.map(Result::unwrap).collect();
        rest.pop();
        for line in rest {
            acknowledged.note(&line);
        }
        let store = open(&directory.database());
        acknowledged.check(&store);
        acknowledged.floor = store.revision().0;
    }
    assert!(acknowledged.objects.len() > 1_000);
}
