//! The servers of a soak: one on SQLite, or two of one PostgreSQL, of which one leads. What becomes of them is written down.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use muster_e2e::brokers::{Mosquitto, free_port};
use muster_e2e::databases::Postgres;
use muster_e2e::server::Server;
use muster_sim::dice::Dice;
use muster_sim::judge::history::{Room, Standing, What};
use rustix::process::{Pid, Signal, kill_process};

use crate::args::StoreKind;
use crate::recorder::Recorder;
use crate::small_disk;
use crate::specs::MEMORY;
use crate::wall_clock::WallClock;
use crate::watches::Door;

/// A server that stood still knows after this whether it leads.
const SETTLES: Duration = Duration::from_secs(2);
/// Programs at once on the machine of a server.
const SLOTS: u64 = 5;
/// Short times, so that it happens within a soak that tasks are preempted, let go, and robots lost.
const FLAGS: &[&str] = &[
    "--roles",
    "api,engine,bridge,relay",
    // The event sink is a program of the soak.
    "--egress-allow",
    "127.0.0.0/8",
    "--kill-timeout",
    "3s",
    "--preempt-delay",
    "2s",
    "--preempt-rest",
    "2s",
    "--reap-succeeded",
    "45s",
    "--reap-failed",
    "30s",
    "--reap-jobs-succeeded",
    "60s",
    "--reap-jobs-failed",
    "60s",
    "--keep-failed",
    "10s",
    "--robot-offline-after",
    "12s",
    "--bookmark-interval",
    "1s",
];

/// All servers, and what they need.
pub struct Servers {
    // They go before what they use.
    pub all: Vec<Replica>,
    /// Where robots connect to.
    pub broker_port: u16,
    store: StoreKind,
    recorder: Recorder,
    _broker: Option<Mosquitto>,
    _postgres: Option<Postgres>,
}

/// One of them.
pub struct Replica {
    pub name: String,
    server: Server,
    log: Tail,
    /// It leads, as far as was written down.
    leads: bool,
    /// It leads, as far as it said.
    says_so: bool,
    is_up: bool,
    /// It went on a moment ago and may not know yet that it leads no longer, or it lost its shepherd.
    settles_until: Option<Instant>,
}

impl Servers {
    /// Starts them; with a clock that can be set and a small disk if things are to go wrong.
    pub fn start(
        store: StoreKind,
        dir: &Path,
        clock: Option<&WallClock>,
        recorder: &Recorder,
    ) -> anyhow::Result<Self> {
        let environment = clock.map(WallClock::environment).unwrap_or_default();
        let room = Room { slots: SLOTS, memory: Some(MEMORY << 20) };
        recorder.note(What::Room(room));
        let (slots, memory) = (SLOTS.to_string(), format!("{MEMORY}Mi"));
        let flags = [FLAGS, &["--slots", &slots, "--memory", &memory]].concat();
        let mut servers = match store {
            StoreKind::Sqlite => {
                let port = free_port();
                let broker = format!("127.0.0.1:{port}");
                let flags = [&flags[..], &["--mqtt-listen", &broker]].concat();
                let program = match clock {
                    Some(_) => small_disk::server_program(dir)?,
                    None => {
                        PathBuf::from(std::env::var_os("MUSTER_BIN").context("MUSTER_BIN names no program")?)
                    }
                };
                let all = vec![Replica::start("a", &program, &flags, &environment, recorder)];
                Self {
                    all,
                    broker_port: port,
                    store,
                    recorder: recorder.clone(),
                    _broker: None,
                    _postgres: None,
                }
            }
            StoreKind::Postgres => {
                let (postgres, broker) = (Postgres::start(), Mosquitto::start());
                let (url, port) = (postgres.url(), broker.port());
                let broker_url = format!("mqtt://127.0.0.1:{port}");
                let files = dir.join("files").display().to_string();
                fs::create_dir_all(&files)?;
                let own = ["--store", &url, "--lease", "3s", "--files", &files, "--mqtt-url", &broker_url];
                let flags = [&flags[..], &own].concat();
                let program =
                    PathBuf::from(std::env::var_os("MUSTER_BIN").context("MUSTER_BIN names no program")?);
                let start = |name| Replica::start(name, &program, &flags, &environment, recorder);
                let all = vec![start("a"), start("b")];
                Self {
                    all,
                    broker_port: port,
                    store,
                    recorder: recorder.clone(),
                    _broker: Some(broker),
                    _postgres: Some(postgres),
                }
            }
        };
        servers.look();
        Ok(servers)
    }

    /// How they are reached.
    pub fn doors(&self) -> Vec<Door> {
        let door =
            |it: &Replica| Door { address: it.server.address().to_owned(), token: it.server.admin_token() };
        self.all.iter().map(door).collect()
    }

    /// The first one, to ask it.
    pub fn first(&self) -> &Server {
        &self.all[0].server
    }

    /// Writes down who leads now. A server alone always does while it is up.
    pub fn look(&mut self) {
        for replica in &mut self.all {
            replica.look(self.store);
            if !replica.is_up || replica.settles_until.is_some_and(|until| Instant::now() < until) {
                continue;
            }
            if replica.says_so && !replica.leads {
                self.recorder.note(What::Server(replica.name.clone(), Standing::Leads));
            } else if !replica.says_so && replica.leads {
                self.recorder.note(What::Server(replica.name.clone(), Standing::Crashed));
            }
            replica.leads = replica.says_so;
        }
    }

    /// One of them, most often the one that leads.
    pub fn choose(&mut self, dice: &mut Dice) -> usize {
        self.look();
        let leader = self.all.iter().position(|replica| replica.leads);
        let any = usize::try_from(dice.below(self.all.len() as u64)).unwrap_or(0);
        leader.filter(|_| !dice.once_in(4)).unwrap_or(any)
    }

    /// Kills one, as a power cut would.
    pub fn kill(&mut self, number: usize) {
        self.stand(number, Standing::Crashed);
        let replica = &mut self.all[number];
        replica.server.kill();
        replica.is_up = false;
        replica.says_so = false;
    }

    /// Starts one again that was killed.
    pub fn restart(&mut self, number: usize) {
        let replica = &mut self.all[number];
        replica.server.restart();
        replica.is_up = true;
        self.look();
    }

    /// One stands still.
    pub fn pause(&mut self, number: usize) {
        self.stand(number, Standing::Paused);
        let replica = &mut self.all[number];
        replica.is_up = false;
        replica.server.signal(Signal::STOP);
    }

    /// It goes on. Whether it still leads shows soon.
    pub fn resume(&mut self, number: usize) {
        let replica = &mut self.all[number];
        replica.server.signal(Signal::CONT);
        replica.is_up = true;
        replica.settles_until = (self.store == StoreKind::Postgres).then(|| Instant::now() + SETTLES);
    }

    /// Kills the process that runs the programs of one, or the one above that. False if there is none.
    pub fn kill_shepherd(&mut self, number: usize, dice: &mut Dice) -> bool {
        let shepherds = shepherds_of(self.all[number].server.id());
        let chosen = dice.pick(&shepherds).and_then(|id| Pid::from_raw(*id));
        if chosen.is_some() {
            // What was handed over waits until the next one has been started: the order of starts is no promise of that moment.
            self.stand(number, Standing::WithoutShepherd);
            self.all[number].settles_until = Some(Instant::now() + SETTLES);
        }
        // One that ended meanwhile is gone as well.
        chosen.is_some_and(|id| kill_process(id, Signal::KILL).is_ok())
    }

    /// Where one keeps its data.
    pub fn data(&self, number: usize) -> PathBuf {
        self.all[number].server.data()
    }

    fn stand(&mut self, number: usize, standing: Standing) {
        let replica = &mut self.all[number];
        if replica.leads {
            self.recorder.note(What::Server(replica.name.clone(), standing));
            replica.leads = false;
        }
    }
}

impl Replica {
    fn start(
        name: &str,
        program: &Path,
        flags: &[&str],
        environment: &[(&'static str, String)],
        recorder: &Recorder,
    ) -> Self {
        let server = Server::start_program_with(program, flags, environment);
        recorder.name_place(&server.data(), &format!("server/{name}"));
        let log = Tail { path: server.log(), read: 0, rest: String::new() };
        Self {
            name: name.to_owned(),
            server,
            log,
            leads: false,
            says_so: false,
            is_up: true,
            settles_until: None,
        }
    }

    fn look(&mut self, store: StoreKind) {
        if !self.is_up {
            return;
        }
        if store == StoreKind::Sqlite {
            self.says_so = true;
            return;
        }
        for line in self.log.lines() {
            if line.contains("this server leads") {
                self.says_so = !line.contains("this server leads no longer");
            }
        }
    }
}

/// A log that grows.
struct Tail {
    path: PathBuf,
    read: u64,
    rest: String,
}

impl Tail {
    /// Whole lines that were added.
    fn lines(&mut self) -> Vec<String> {
        let mut added = Vec::new();
        if let Ok(mut file) = File::open(&self.path)
            && file.seek(SeekFrom::Start(self.read)).is_ok()
        {
            self.read += file.read_to_end(&mut added).unwrap_or(0) as u64;
        }
        self.rest += &String::from_utf8_lossy(&added);
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let lines = self.rest[..whole].lines().map(str::to_owned).collect();
        self.rest.drain(..whole);
        lines
    }
}

/// Processes below a server that are called its shepherd.
fn shepherds_of(server: u32) -> Vec<i32> {
    let Ok(server) = i32::try_from(server) else { return Vec::new() };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent = |id: i32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    let is_below = |id: i32| {
        let mut above = parent(id);
        while let Some(it) = above.filter(|it| *it > 1) {
            if it == server {
                return true;
            }
            above = parent(it);
        }
        false
    };
    let is_shepherd = |id: i32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"shepherd")
    };
    numbers.filter(|id| is_shepherd(*id) && is_below(*id)).collect()
}
