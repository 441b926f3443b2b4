//! Watches everything that the judge reads, at every server at once, and goes on where it was whenever one is gone. Whoever sees a
//! change first writes it down.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_e2e::load::connection::Connection;
use muster_sim::judge::history::{Commit, What};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::census::Census;
use crate::recorder::Recorder;

/// Where everything is.
pub const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
/// What is watched.
const WATCHED: [&str; 7] = ["tasks", "taskgroups", "jobs", "schedules", "taskkinds", "robots", "eventsinks"];
/// Before a server that is gone is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// A server and the token of its admin.
#[derive(Debug, Clone)]
pub struct Door {
    pub address: String,
    pub token: String,
}

/// All watches. They end when they are asked to.
pub struct Watches {
    ends: Arc<AtomicBool>,
    seen: Vec<(&'static str, Arc<Mutex<u64>>)>,
    threads: Vec<JoinHandle<()>>,
}

/// One watch.
struct Watcher {
    plural: &'static str,
    door: Door,
    recorder: Recorder,
    census: Census,
    /// Everything up to here was seen. It is held while something is written down.
    seen: Arc<Mutex<u64>>,
    ends: Arc<AtomicBool>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    word: String,
    object: Box<RawValue>,
}

impl Watches {
    /// Begins to watch servers of one store, from the revision that one of them has.
    pub fn start(doors: &[Door], recorder: &Recorder, census: &Census, from: u64) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (mut seen, mut threads) = (Vec::new(), Vec::new());
        for plural in WATCHED {
            let revision = Arc::new(Mutex::new(from));
            seen.push((plural, revision.clone()));
            for door in doors {
                let watcher = Watcher {
                    plural,
                    door: door.clone(),
                    recorder: recorder.clone(),
                    census: census.clone(),
                    seen: revision.clone(),
                    ends: ends.clone(),
                };
                threads.push(std::thread::spawn(move || watcher.run()));
            }
        }
        Self { ends, seen, threads }
    }

    /// Those that have not seen everything up to a revision.
    pub fn behind(&self, revision: u64) -> Vec<&'static str> {
        let behind = self.seen.iter().filter(|(_, seen)| *seen.lock() < revision);
        behind.map(|(plural, _)| *plural).collect()
    }

    /// Ends them.
    pub fn end(self) {
        self.ends.store(true, Ordering::SeqCst);
        for thread in self.threads {
            // One that panicked said so.
            drop(thread.join());
        }
    }
}

impl Watcher {
    fn run(self) {
        while !self.ends.load(Ordering::SeqCst) {
            if self.watch().is_err() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Follows one watch to its end.
    fn watch(&self) -> io::Result<()> {
        let (from, door) = (*self.seen.lock(), &self.door);
        let path = format!("{API}/{}?watch=1&allowWatchBookmarks=true&resourceVersion={from}", self.plural);
        let mut stream = match Connection::open(&door.address, &door.token)?.watch(&path)? {
            Ok(stream) => stream,
            Err(refused) if refused.code == 410 => {
                self.miss(&refused.text());
                return Err(io::ErrorKind::NotFound.into());
            }
            Err(refused) => return Err(io::Error::other(refused.text())),
        };
        while let Some(line) = stream.next_line()? {
            if self.ends.load(Ordering::SeqCst) {
                break;
            }
            self.take(&line)?;
        }
        Ok(())
    }

    fn miss(&self, why: &str) {
        let from = *self.seen.lock();
        self.recorder.trouble(format!("changes of {} after {from} were missed: {why}", self.plural));
        self.ends.store(true, Ordering::SeqCst);
    }

    fn take(&self, line: &str) -> io::Result<()> {
        let line: Line = serde_json::from_str(line)?;
        let object: Value = serde_json::from_str(line.object.get())?;
        let metadata = &object["metadata"];
        if line.word == "ERROR" {
            if object["code"] == 410 {
                self.miss(line.object.get());
            }
            return Err(io::Error::other(line.object.get().to_owned()));
        }
        let revision = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let revision: u64 = revision.ok_or_else(|| io::Error::other("an object has no revision"))?;
        let mut seen = self.seen.lock();
        if line.word != "BOOKMARK" && revision > *seen {
            let deleted = line.word == "DELETED";
            let part = |name: &str| metadata[name].as_str().unwrap_or_default();
            let path = format!("{}/{}", part("namespace"), part("name"));
            let resource = format!("{}.muster.dev", self.plural);
            self.recorder.note(What::Change(Commit {
                revision,
                resource,
                path,
                deleted,
                object: line.object,
            }));
            self.census.take(self.plural, &object, deleted);
        }
        *seen = revision.max(*seen);
        Ok(())
    }
}
