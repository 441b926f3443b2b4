//! Measures how long a commit takes, all the time: what a server decided is seen so much later. Without it, a disk that stalls would
//! look like a server that does not see what was committed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_e2e::http::Http;
use parking_lot::Mutex;
use serde_json::json;

use crate::watches::API;

/// What is changed to measure. Nothing else is done with it.
pub const NAME: &str = "probe";
/// A commit that takes longer, in milliseconds, is no slow disk: a pause or a full disk has an entry of its own.
const MOST: i64 = 1_000;
/// Commits that a pass makes one after the other, before what it decided is seen.
const COMMITS: u32 = 3;
/// Between two commits.
const PAUSE: Duration = Duration::from_millis(60);
/// How long it counts that one took long.
const REMEMBERED: Duration = Duration::from_secs(1);

/// How long commits take at each server.
#[derive(Clone)]
pub struct StoreProbe(Arc<Vec<Mutex<Measured>>>);

/// Of one server.
#[derive(Default)]
struct Measured {
    /// A commit began then and has not ended.
    since: Option<Instant>,
    /// When a commit took long, and how long.
    slowest: Option<(Instant, Duration)>,
}

impl StoreProbe {
    /// Begins to measure, until this program ends.
    pub fn start(doors: &[Http]) -> Self {
        let probe = Self(Arc::new(doors.iter().map(|_| Mutex::default()).collect()));
        for (number, door) in doors.iter().cloned().enumerate() {
            let probe = probe.clone();
            std::thread::spawn(move || {
                for turn in 0_u64.. {
                    std::thread::sleep(PAUSE);
                    probe.0[number].lock().since = Some(Instant::now());
                    let is_done = commit(&door, turn);
                    probe.0[number].lock().end(is_done);
                }
            });
        }
        probe
    }

    /// How long it takes now until what was decided is seen, in milliseconds, at the server where it takes the shortest; 0 if none answers.
    pub fn lag(&self) -> i64 {
        let lag = self.0.iter().filter_map(|measured| measured.lock().lag()).min();
        let lag = lag.unwrap_or_default() * COMMITS;
        i64::try_from(lag.as_millis()).unwrap_or(i64::MAX).min(MOST)
    }
}

impl Measured {
    fn end(&mut self, is_done: bool) {
        let Some(took) = self.since.take().map(|since| since.elapsed()) else { return };
        if !is_done {
            self.slowest = None;
        } else if self.slowest.is_none_or(|(at, slowest)| took >= slowest || at.elapsed() > REMEMBERED) {
            self.slowest = Some((Instant::now(), took));
        }
    }

    /// None if the server does not answer.
    fn lag(&self) -> Option<Duration> {
        let under_way = self.since.map(|since| since.elapsed()).unwrap_or_default();
        self.slowest.map(|(_, slowest)| slowest.max(under_way))
    }
}

fn commit(door: &Http, turn: u64) -> bool {
    let body = json!({"metadata": {"annotations": {"turn": turn.to_string()}}}).to_string();
    let request = door.request("PATCH", &format!("{API}/applications/{NAME}"));
    let answer = request.header("Content-Type", "application/merge-patch+json").body(body).try_send();
    answer.is_ok_and(|answer| answer.code == 200)
}
