//! One soak from its begin to its end: everything is started, users ask and things go wrong for a while, then all comes to rest and
//! the history is taken.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use muster_e2e::http::Http;
use muster_sim::dice::Dice;
use muster_sim::judge::history::{Entry, What};
use serde_json::{Value, json};

use crate::args::{StoreKind, Wanted};
use crate::census::Census;
use crate::faults::{OutsideFaults, ServerFaults, Tally};
use crate::merge::merge;
use crate::recorder::Recorder;
use crate::robots::Robots;
use crate::servers::Servers;
use crate::sink;
use crate::small_disk;
use crate::specs::Specs;
use crate::store_probe::{self, StoreProbe};
use crate::users::{Counted, Users};
use crate::wall_clock::WallClock;
use crate::watches::{API, Watches};

/// Between two lines of progress.
const SELDOM: Duration = Duration::from_secs(15);
/// After the last fault, schedules have this long to make what is due before they are suspended.
const CATCHES_UP: u64 = 25_000;
/// How long all that was asked for may take to end when nothing goes wrong any more.
const COMES_TO_REST: Duration = Duration::from_mins(2);
/// How long messages may take after that.
const TOLD: Duration = Duration::from_mins(1);

/// Tasks that are open at once: a queue from which there is a choice, and one that ends soon.
const MANY_OPEN: usize = 60;
const FEW_OPEN: usize = 20;

/// What became of a soak.
pub struct Soaked {
    /// Everything that happened, in order.
    pub history: Vec<Entry>,
    /// Why the history cannot be trusted.
    pub troubles: Vec<String>,
    /// How often each thing went wrong.
    pub faults: Tally,
    /// What users asked for.
    pub asked: Counted,
}

/// Runs a soak.
pub fn run(wanted: &Wanted) -> anyhow::Result<Soaked> {
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let mut soak = Soak::start(wanted, dir.path())?;
    soak.wait(wanted.time);
    soak.calm_down(!wanted.is_calm)?;
    soak.come_to_rest()?;
    Ok(soak.take())
}

/// Everything that runs.
struct Soak {
    recorder: Recorder,
    census: Census,
    tally: Tally,
    asked: Counted,
    watches: Watches,
    doors: Vec<Http>,
    stage: Stage,
    /// The faults end, and the users.
    ends: Arc<AtomicBool>,
    users_end: Arc<AtomicBool>,
    listening: JoinHandle<()>,
    disk: Option<PathBuf>,
}

/// Whether things go wrong still.
enum Stage {
    Asking { servers: JoinHandle<ServerFaults>, outside: JoinHandle<OutsideFaults>, users: JoinHandle<Users> },
    Resting { servers: Box<ServerFaults>, _outside: OutsideFaults },
    Over,
}

impl Soak {
    fn start(wanted: &Wanted, dir: &Path) -> anyhow::Result<Self> {
        let socket = dir.join("recorder");
        let (recorder, listening) = Recorder::start(&socket)?;
        let clock = if wanted.is_calm { None } else { Some(WallClock::new(dir)?) };
        let mut dice = Dice::new(wanted.seed);
        let servers = Servers::start(wanted.store, dir, clock.as_ref(), &recorder)?;
        let doors = servers.doors();
        let census = Census::default();
        let https: Vec<Http> = doors.iter().map(|door| Http::new(&door.address, Some(&door.token))).collect();
        let watches = Watches::start(&doors, &recorder, &census, revision(&https)?);
        let asked = Counted::default();
        let mut users = Users {
            specs: Specs { dice: Dice::new(dice.next()), program: std::env::current_exe()?, socket },
            doors: https.clone(),
            recorder: recorder.clone(),
            census: census.clone(),
            count: asked.clone(),
            most_open: if wanted.is_calm { FEW_OPEN } else { MANY_OPEN },
        };
        users.prepare()?;
        users.demand("applications", "Application", store_probe::NAME, &json!({}))?;
        recorder.measure_by(StoreProbe::start(&https));
        let url = format!("http://127.0.0.1:{}/", sink::start(&recorder)?);
        users.demand(
            "eventsinks",
            "EventSink",
            "soak",
            &json!({"webhook": {"url": url}, "profile": "cds"}),
        )?;
        let token = servers.first().new_join_token("join");
        let robots = Robots::start(dir, servers.broker_port, &token, &https, &recorder);

        let (ends, users_end, tally) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)), Tally::default());
        let breaks = clock.is_some();
        let disk = (wanted.store == StoreKind::Sqlite && breaks).then(|| servers.data(0));
        let server_faults = ServerFaults {
            servers,
            doors: https.clone(),
            census: census.clone(),
            dice: Dice::new(dice.next()),
            recorder: recorder.clone(),
            tally: tally.clone(),
            store: wanted.store,
            ends: ends.clone(),
            breaks,
        };
        let outside_faults = OutsideFaults {
            robots,
            clock,
            dice: Dice::new(dice.next()),
            recorder: recorder.clone(),
            tally: tally.clone(),
            ends: ends.clone(),
        };
        let stage = Stage::Asking {
            servers: server_faults.start(),
            outside: outside_faults.start(),
            users: users.start(users_end.clone()),
        };
        Ok(Self {
            recorder,
            census,
            tally,
            asked,
            watches,
            doors: https,
            stage,
            ends,
            users_end,
            listening,
            disk,
        })
    }

    /// Lets users ask and things go wrong.
    fn wait(&self, time: Duration) {
        let began = Instant::now();
        let mut shown = began;
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(100).min(time.saturating_sub(began.elapsed())));
            if shown.elapsed() >= SELDOM {
                shown = Instant::now();
                self.show(began.elapsed());
            }
        }
    }

    fn show(&self, passed: Duration) {
        let faults: u32 = self.tally.all().values().sum();
        eprintln!(
            "{:>5} s: {} requests, {} tasks open, {} programs, {} entries, {faults} faults",
            passed.as_secs(),
            self.asked.done.load(Ordering::SeqCst),
            self.census.open("tasks"),
            self.recorder.running(),
            self.recorder.entries(),
        );
    }

    /// The last faults are healed; users ask for no more, and what waits for them goes on.
    fn calm_down(&mut self, catch_up: bool) -> anyhow::Result<()> {
        let Stage::Asking { servers, outside, users } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            return Ok(());
        };
        self.ends.store(true, Ordering::SeqCst);
        let outside = outside.join().map_err(|_| anyhow::anyhow!("a robot could not be started again"))?;
        let mut servers =
            servers.join().map_err(|_| anyhow::anyhow!("a server could not be started again"))?;
        if catch_up {
            servers.pass(CATCHES_UP, false);
        }
        self.users_end.store(true, Ordering::SeqCst);
        let mut users = users.join().map_err(|_| anyhow::anyhow!("the users ended badly"))?;
        let end = Instant::now() + TOLD;
        while !users.calm_down() {
            anyhow::ensure!(Instant::now() < end, "users cannot suspend their schedules");
            servers.pass(1_000, false);
        }
        self.recorder.note(What::Quiet);
        self.stage = Stage::Resting { servers: Box::new(servers), _outside: outside };
        Ok(())
    }

    /// Waits until all that was asked for has ended, was told, and was seen.
    fn come_to_rest(&mut self) -> anyhow::Result<()> {
        let Stage::Resting { servers, .. } = &mut self.stage else { return Ok(()) };
        let (census, recorder) = (&self.census, &self.recorder);
        let is_at_rest = || {
            ["tasks", "taskgroups", "jobs"].iter().all(|plural| census.open(plural) == 0)
                && recorder.running() == 0
        };
        wait_until(servers, COMES_TO_REST, is_at_rest);
        let is_told = || {
            let sink = get(&self.doors, "eventsinks/soak").unwrap_or_default();
            sink["status"]["backlog"].as_u64().unwrap_or(0) == 0
        };
        // What ended last is told a moment later.
        servers.pass(3_000, false);
        wait_until(servers, TOLD, is_told);
        servers.pass(2_000, false);
        let upto = revision(&self.doors)?;
        if !wait_until(servers, TOLD, || self.watches.behind(upto).is_empty()) {
            recorder.trouble(format!("changes up to {upto} were not seen: {:?}", self.watches.behind(upto)));
        }
        Ok(())
    }

    /// The history.
    fn take(self) -> Soaked {
        self.watches.end();
        let (seen, troubles) = self.recorder.take();
        drop(self.stage);
        if let Some(disk) = &self.disk {
            small_disk::unmount(disk);
        }
        drop(self.listening.join());
        let mut history = merge(seen);
        let faults = self.tally.all().values().sum();
        if let Some(last) = history.last().cloned() {
            history.push(Entry { what: What::Faults(faults), ..last });
        }
        Soaked { history, troubles, faults: self.tally, asked: self.asked }
    }
}

/// True as soon as something is so; false after a while.
fn wait_until(servers: &mut ServerFaults, deadline: Duration, is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + deadline;
    while !is_so() {
        if Instant::now() >= end {
            return false;
        }
        servers.pass(200, false);
    }
    true
}

/// An object, from any server that answers.
fn get(doors: &[Http], path: &str) -> Option<Value> {
    let answer = |door: &Http| door.request("GET", &format!("{API}/{path}")).try_send().ok();
    let answer = doors.iter().filter_map(answer).find(|answer| answer.code == 200)?;
    serde_json::from_slice(answer.bytes()).ok()
}

/// The latest revision.
fn revision(doors: &[Http]) -> anyhow::Result<u64> {
    let list = get(doors, "tasks?limit=1").context("no server answers")?;
    let revision = list["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
    revision.context("a list has no revision")
}
