//! What goes wrong in a soak: servers are killed and paused, shepherds and agents killed, clocks set, the disk filled up. One fault of
//! servers at a time, and beside it one of the outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muster_e2e::http::Http;
use muster_sim::dice::Dice;
use muster_sim::judge::history::What;
use parking_lot::Mutex;

use crate::args::StoreKind;
use crate::census::Census;
use crate::recorder::Recorder;
use crate::robots::Robots;
use crate::servers::Servers;
use crate::small_disk::Ballast;
use crate::users::delete;
use crate::wall_clock::WallClock;

/// How often what was seen of servers is written down.
const LOOK: Duration = Duration::from_millis(50);
/// Between two faults of servers, in milliseconds: at least, and so many more at most.
const REST: (u64, u64) = (4_000, 10_000);
/// Between two faults outside of servers.
const REST_OUTSIDE: (u64, u64) = (6_000, 12_000);
/// Tasks that are deleted right before their server is killed, at most.
const MOST_DELETED: usize = 3;
/// How long a clock is ahead that is corrected at once.
const CORRECTED: Duration = Duration::from_secs(4);
/// The most that a clock jumps, in milliseconds.
const JUMP: u64 = 15 * 60_000;

/// How often each thing went wrong.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Tally {
    fn add(&self, fault: &'static str) {
        *self.0.lock().entry(fault).or_default() += 1;
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<&'static str, u32> {
        self.0.lock().clone()
    }
}

/// Breaks servers until it is told to end; they are all up again then.
pub struct ServerFaults {
    pub servers: Servers,
    /// How they are asked, and what is there.
    pub doors: Vec<Http>,
    pub census: Census,
    pub dice: Dice,
    pub recorder: Recorder,
    pub tally: Tally,
    pub store: StoreKind,
    pub ends: Arc<AtomicBool>,
    /// Something may go wrong; otherwise who leads is only written down.
    pub breaks: bool,
}

impl ServerFaults {
    /// Begins.
    pub fn start(mut self) -> JoinHandle<Self> {
        std::thread::spawn(move || {
            while !self.ends.load(Ordering::SeqCst) {
                let pause = REST.0 + self.dice.below(REST.1);
                self.pass(pause, true);
                if self.breaks && !self.ends.load(Ordering::SeqCst) {
                    self.break_something();
                }
            }
            self
        })
    }

    /// Time passes; who leads is written down. Ends early if it is told to.
    pub fn pass(&mut self, millis: u64, may_end: bool) {
        let until = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < until && !(may_end && self.ends.load(Ordering::SeqCst)) {
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
            self.servers.look();
        }
    }

    fn break_something(&mut self) {
        let number = self.servers.choose(&mut self.dice);
        match self.dice.below(10) {
            0..=2 => {
                if self.dice.once_in(2) {
                    self.delete_some(number);
                    self.tally.add("server killed behind deletions");
                } else {
                    self.tally.add("server killed");
                }
                self.servers.kill(number);
                // A replica may stay away for longer than its lease.
                let most = if self.store == StoreKind::Postgres { 9_000 } else { 1_500 };
                let away = self.dice.below(most);
                self.pass(away, false);
                self.servers.restart(number);
            }
            3..=5 => {
                self.tally.add("server paused");
                self.servers.pause(number);
                let away = 200 + self.dice.below(9_000);
                self.pass(away, false);
                self.servers.resume(number);
            }
            6..=8 => self.kill_shepherd(number),
            _ if self.store == StoreKind::Sqlite => self.fill_disk(number),
            _ => self.kill_shepherd(number),
        }
    }

    /// Tasks that are at work are deleted, as far as one server answers.
    fn delete_some(&self, number: usize) {
        let at_work = |state: &str| state == "Running" || state == "Pending";
        let names = self.census.names("tasks", |it| at_work(&it.state));
        for name in names.iter().take(MOST_DELETED) {
            delete(&self.doors[number], &self.recorder, "tasks", name);
        }
    }

    fn kill_shepherd(&mut self, number: usize) {
        if self.servers.kill_shepherd(number, &mut self.dice) {
            self.tally.add("shepherd killed");
        }
    }

    fn fill_disk(&mut self, number: usize) {
        self.recorder.note(What::StoreRefused);
        let filled = Ballast::fill(&self.servers.data(number));
        let Ok(mut ballast) = filled else {
            self.recorder.trouble("the disk could not be filled up".to_owned());
            return;
        };
        self.tally.add("disk filled up");
        for _ in 0..2 + self.dice.below(5) {
            self.pass(1_000, false);
            ballast.top_up();
            self.recorder.note(What::StoreRefused);
        }
        drop(ballast);
        self.recorder.note(What::StoreRefused);
    }
}

/// Breaks what is outside of servers until it is told to end; all robots are back then.
pub struct OutsideFaults {
    pub robots: Robots,
    /// Without a clock that can be set nothing goes wrong.
    pub clock: Option<WallClock>,
    pub dice: Dice,
    pub recorder: Recorder,
    pub tally: Tally,
    pub ends: Arc<AtomicBool>,
}

impl OutsideFaults {
    /// Begins.
    pub fn start(mut self) -> JoinHandle<Self> {
        std::thread::spawn(move || {
            while !self.ends.load(Ordering::SeqCst) {
                let until =
                    Instant::now() + Duration::from_millis(REST_OUTSIDE.0 + self.dice.below(REST_OUTSIDE.1));
                while Instant::now() < until && !self.ends.load(Ordering::SeqCst) {
                    std::thread::sleep(LOOK);
                }
                if !self.ends.load(Ordering::SeqCst) {
                    self.break_something();
                }
            }
            self
        })
    }

    fn break_something(&mut self) {
        let Some(clock) = &self.clock else { return };
        match self.dice.below(5) {
            0 | 1 => {
                self.tally.add("agent killed");
                self.robots.kill_one(&mut self.dice, false);
            }
            2 => {
                self.tally.add("robot lost power");
                self.robots.kill_one(&mut self.dice, true);
            }
            _ => {
                let by = i64::try_from(self.dice.below(JUMP)).unwrap_or(0);
                if self.dice.once_in(3) {
                    self.tally.add("clock ahead for a moment");
                    clock.jump(&self.recorder, by);
                    std::thread::sleep(CORRECTED);
                    clock.jump(&self.recorder, -by);
                    return;
                }
                let is_back = self.dice.once_in(2);
                self.tally.add(if is_back { "clock set back" } else { "clock set forward" });
                clock.jump(&self.recorder, if is_back { -by } else { by });
            }
        }
    }
}
