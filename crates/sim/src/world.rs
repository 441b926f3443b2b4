//! One seed, played: users ask for tasks, groups, jobs, schedules and managed resources and change their minds; programs and
//! robots live and die; what is heard of them is late, doubled or lost; sinks of messages come and go; the clock jumps; the disk is
//! full; servers pause, and are killed between any two commits.
//!
//! Nothing is judged here. The history is written down, and read by [`crate::judge`] when the seed is over.

mod managed;
mod messages;
mod robots;
mod schedules;
mod servers;
mod users;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::relay::{Settings, hold_for_sinks};
use muster_ports::blobs::MemoryBlobs;
use muster_ports::clock::{Clock, ManualClock, Millis};
use muster_ports::runtime::Observation;
use muster_ports::store::{History, MemoryLog, Store};
pub use muster_tasks::settings::Rule;

use crate::dice::Dice;
use crate::failing_log::{FailingLog, Fate};
use crate::fake_cluster::FakeCluster;
use crate::fake_fleet::FakeFleet;
use crate::fake_runtime::{FakeRuntime, MEMORY, SLOTS};
use crate::fake_sinks::FakeSinks;
use crate::judge::history::{Entry, Room, Standing, What};
use crate::judge::judge;
use crate::recorder::Recorder;
use managed::Managed;
use robots::{ROBOTS, Robots};
use schedules::Planned;
use servers::Server;
use users::Users;

/// One seed in so many has some minutes in which nothing more goes wrong; a time without a round in them.
const CALM_ONCE_IN: u64 = 6;
const CALM_ROUNDS: u32 = 8;
const CALM_PAUSE: i64 = 20_000;
/// Rounds in which users ask and things go wrong.
const ROUNDS: u32 = 32;
/// Rounds after which a quiet world must be at rest.
const MOST_QUIET_ROUNDS: u32 = 1_500;
/// Milliseconds after which everything that is owed must have been told: no pause of a sink is longer.
const SETTLING: i64 = 45_000;
/// Most times that the leader looks within one pause. In the longest pause it has reason to look some seventy times.
const MOST_LOOKS: u32 = 200;
/// News is this late at most, in milliseconds, unless it is late again.
const NEWS_DELAY: i64 = 2_000;
/// Entries of a history that are shown when it broke a promise.
const SHOWN: usize = 40;

/// What a seed did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Played {
    /// Tasks that were made, by users and for them.
    pub tasks: u32,
    /// Crashes, pauses, lost and doubled news, clock jumps, refused commits, robots that vanished.
    pub faults: u32,
    /// Programs that were started.
    pub attempts: u32,
    /// Attempts that were preempted.
    pub preempted: u32,
    /// Runs that schedules made.
    pub runs: u32,
    /// Messages that reached a sink.
    pub messages: u32,
    /// Entries of the history.
    pub entries: u32,
}

struct World {
    dice: Dice,
    clock: ManualClock,
    recorder: Recorder,
    fate: Fate,
    log: MemoryLog,
    store: Store,
    blobs: Arc<MemoryBlobs>,
    fleet: FakeFleet,
    cluster: FakeCluster,
    sinks: FakeSinks,
    servers: Vec<Server>,
    without: Option<Rule>,
    /// The disk is full until then, by the steady clock.
    full_until: Option<i64>,
    /// Attempts that may wait for a slot.
    ahead: u32,
    /// By how much the clock is ahead until the next round.
    ahead_for_a_moment: i64,
    /// When pending facts are delivered at the latest, by the steady clock.
    news_at: Option<i64>,
    users: Users,
    managed: Managed,
    planned: Planned,
    robots: Robots,
    is_quiet: bool,
    faults: u32,
}

/// Plays a seed; which promises were broken, if any were. `without` takes a rule away.
pub async fn simulate(seed: u64, without: Option<Rule>) -> Result<Played, String> {
    let history = record(seed, without).await?;
    let findings = judge(&history);
    let Some(first) = findings.first() else { return Ok(summary(&history)) };
    let mut words = String::new();
    for finding in &findings {
        words += &format!("{finding}\n");
    }
    let upto = (first.place + 1).min(history.len());
    words += "the history up to there:\n";
    for (place, entry) in history.iter().enumerate().take(upto).skip(upto.saturating_sub(SHOWN)) {
        words += &format!("{place:6} {}\n", line(entry));
    }
    Err(words)
}

/// Plays a seed; everything that happened.
pub async fn record(seed: u64, without: Option<Rule>) -> Result<Vec<Entry>, String> {
    let mut world = World::new(seed, without)?;
    world.play().await?;
    let faults = world.faults;
    let mut history = world.recorder.take()?;
    // How much went wrong is told by a note of its own, so that a history says it by itself.
    if let Some(last) = history.last().cloned() {
        history.push(Entry { what: What::Faults(faults), ..last });
    }
    Ok(history)
}

impl World {
    fn new(seed: u64, without: Option<Rule>) -> Result<Self, String> {
        let clock = ManualClock::default();
        clock.advance(1_800_000_000_000);
        let (log, fate, mut dice) = (MemoryLog::default(), Fate::default(), Dice::new(seed));
        let recorder = Recorder::new(clock.clone(), fate.clone());
        let store = open_store(&log, &fate, &clock)?;
        recorder.follow(&store)?;
        let fleet = FakeFleet::new(ROBOTS, recorder.clone(), fate.clone());
        let cluster = FakeCluster::new(recorder.clone(), fate.clone(), Dice::new(dice.next()));
        let sinks = FakeSinks::new(recorder.clone(), fate.clone(), Dice::new(dice.next()));
        let count = 1 + dice.below(2);
        let servers = (0..count).map(|number| {
            let name = format!("s{number}");
            let machine = FakeRuntime::new(&name, recorder.clone(), fate.clone(), Dice::new(dice.next()));
            Server::new(name, machine, clock.restarted())
        });
        let servers = servers.collect();
        let ahead = u32::try_from(dice.below(8)).unwrap_or(0);
        Ok(Self {
            clock,
            recorder,
            fate,
            log,
            store,
            blobs: Arc::default(),
            fleet,
            cluster,
            sinks,
            servers,
            without,
            full_until: None,
            ahead,
            ahead_for_a_moment: 0,
            news_at: None,
            users: Users::new(&mut dice),
            managed: Managed::new()?,
            planned: Planned::default(),
            robots: Robots::default(),
            is_quiet: false,
            faults: 0,
            dice,
        })
    }

    async fn play(&mut self) -> Result<(), String> {
        let room = Room { slots: SLOTS as u64, memory: Some(MEMORY) };
        self.recorder.note(What::Room(room));
        self.declare_kinds().await?;
        self.declare_robots().await?;
        self.declare_managed().await?;
        self.declare_sinks().await?;
        for _ in 0..ROUNDS {
            self.ask().await?;
            self.fault()?;
            self.round().await?;
        }
        if self.dice.once_in(CALM_ONCE_IN) && self.planned.has_any() {
            self.pass_calm_minutes().await?;
        }
        self.calm_down().await?;
        let (quiet, mut rested, mut unwanted) = (self.recorder.at(), None, false);
        for number in 0..MOST_QUIET_ROUNDS {
            self.round().await?;
            // To look costs as much as some rounds.
            if number % 6 != 0 {
                continue;
            }
            let at = self.recorder.at();
            unwanted = unwanted || self.calm_managed(at - quiet).await?;
            let is_at_rest = unwanted && self.is_at_rest();
            if is_at_rest && at - *rested.get_or_insert(at) >= SETTLING {
                break;
            }
        }
        Ok(())
    }

    /// For some minutes nobody asks for anything and nothing more goes wrong, so that it shows what schedules make of each time.
    async fn pass_calm_minutes(&mut self) -> Result<(), String> {
        self.end_lead();
        for _ in 0..CALM_ROUNDS {
            self.round().await?;
            self.pass(CALM_PAUSE).await?;
        }
        Ok(())
    }

    /// A clock that is ahead for a moment shows the right time again.
    fn end_lead(&mut self) {
        let by = std::mem::take(&mut self.ahead_for_a_moment);
        if by != 0 {
            self.jump(-by);
        }
    }

    fn jump(&mut self, by: i64) {
        self.faults += 1;
        self.recorder.look();
        self.clock.jump_wall(by);
        self.recorder.note(What::ClockJumped(by));
    }

    /// Everything moves on once, and time passes.
    async fn round(&mut self) -> Result<(), String> {
        if self.leader().is_none() {
            // As a server does that does not lead.
            hold_for_sinks(&self.store, &Settings::default());
        }
        let now = self.clock.wall();
        for server in &self.servers {
            server.machine.move_on(now, self.is_quiet);
        }
        self.deliver();
        self.report_managed().await?;
        self.lead().await?;
        self.step().await?;
        let pause = match self.dice.below(20) {
            // Where nothing goes wrong, less happens in a time.
            0..=9 if self.is_quiet => self.dice.below(12_000),
            0 => self.dice.below(45_000),
            1..=3 => self.dice.below(3_000),
            _ => self.dice.below(60),
        };
        self.pass(i64::try_from(pause).unwrap_or(0)).await
    }

    /// Time passes. Whoever leads looks whenever it said that it would.
    async fn pass(&mut self, millis: i64) -> Result<(), String> {
        let mut left = millis;
        for _ in 0..MOST_LOOKS {
            let news = self.news_in();
            let due = self.due().into_iter().chain(news).min();
            let Some(next) = due.into_iter().chain(self.renewal_in()).min() else { break };
            let wait = next.max(1);
            if wait >= left {
                break;
            }
            self.tick(wait);
            left -= wait;
            if due.is_none_or(|due| due > wait) {
                self.lead().await?;
                continue;
            }
            if news.is_some_and(|news| news <= wait) {
                self.deliver();
            }
            self.lead().await?;
            self.step().await?;
        }
        self.tick(left);
        Ok(())
    }

    /// Milliseconds until the leader is told of pending facts; `None` if there are none.
    fn news_in(&mut self) -> Option<i64> {
        let at = self.recorder.at();
        self.news_at = self.has_news().then(|| self.news_at.unwrap_or(at + NEWS_DELAY));
        self.news_at.map(|news_at| news_at - at)
    }

    /// Something happened that whoever leads has not heard of.
    fn has_news(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        self.servers[leader].expects_news() || self.servers.iter().any(|it| it.machine.has_news())
    }

    fn tick(&mut self, millis: i64) {
        self.recorder.pass(millis);
        self.clock.advance(millis);
        if self.full_until.is_some_and(|until| until <= self.recorder.at()) {
            self.full_until = None;
            self.fate.set_full(false);
        }
    }

    /// News reaches whoever leads: late, and sometimes twice.
    fn deliver(&mut self) {
        let Some(leader) = self.leader() else { return };
        self.news_at = None;
        let Server { machine, loops: Some(loops), .. } = &mut self.servers[leader] else { return };
        let now = self.clock.wall();
        let mut facts = std::mem::take(&mut loops.underway);
        facts.extend(machine.take_facts());
        facts.extend(self.fleet.move_on(&mut self.dice, now));
        facts.extend(self.cluster.move_on(&mut self.dice, now, self.is_quiet));
        for fact in facts {
            if self.dice.once_in(6) {
                loops.underway.push(fact);
                continue;
            }
            // What a quota refused is told by the server itself, and once.
            let may_double = !matches!(fact.what, Observation::Blocked { .. });
            if may_double && self.dice.once_in(10) {
                self.faults += 1;
                loops.underway.push(fact.clone());
            }
            loops.engine.report(fact);
        }
    }

    /// The outside goes wrong.
    fn fault(&mut self) -> Result<(), String> {
        self.faults += self.fleet.break_something(&mut self.dice);
        self.faults += self.cluster.break_something(&mut self.dice);
        self.faults += self.sinks.break_something(&mut self.dice);
        if self.dice.once_in(25) {
            self.faults += 1;
            self.crash_one()?;
        }
        if self.dice.once_in(30) {
            self.faults += 1;
            self.fate.kill_after(i64::try_from(self.dice.below(12)).unwrap_or(0));
        }
        if self.dice.once_in(40) {
            self.faults += 1;
            self.fate.refuse(1 + i64::try_from(self.dice.below(4)).unwrap_or(0));
        }
        if self.dice.once_in(60) {
            self.faults += 1;
            self.fate.set_full(true);
            self.full_until = Some(self.recorder.at() + i64::try_from(self.dice.below(8_000)).unwrap_or(0));
        }
        if self.dice.once_in(50) {
            self.faults += 1;
            let until = self.clock.wall().0 + i64::try_from(self.dice.below(400_000)).unwrap_or(0);
            for server in &self.servers {
                server.machine.cut_off_logs(Millis(until));
            }
        }
        if self.dice.once_in(25) {
            self.faults += 1;
            self.pause_leader();
        }
        self.end_lead();
        if self.dice.once_in(30) {
            let by = i64::try_from(self.dice.below(400_000)).unwrap_or(0) - 100_000;
            self.jump(by);
            // Some clocks are corrected at once.
            self.ahead_for_a_moment = if by > 0 && self.dice.once_in(3) { by } else { 0 };
        }
        Ok(())
    }

    /// Writes down what the disk refused, and ends what was killed in the middle of a commit.
    fn notice_fate(&mut self) -> Result<(), String> {
        self.recorder.look();
        if self.fate.is_dead() { self.power_failure() } else { Ok(()) }
    }

    /// The whole store stops in the middle of something, with all of its servers. What was committed is all there is.
    fn power_failure(&mut self) -> Result<(), String> {
        self.recorder.look();
        for number in 0..self.servers.len() {
            self.stop_server(number, Standing::Crashed);
        }
        // Whatever was under way in it has no effect any more.
        self.recorder.leave();
        self.store.close();
        self.fate.revive();
        self.store = open_store(&self.log, &self.fate, &self.clock.restarted())?;
        self.recorder.follow(&self.store)
    }

    /// Nothing moves any more.
    fn is_at_rest(&self) -> bool {
        self.servers.iter().all(|server| server.machine.is_idle() && !server.expects_news())
            && self.fleet.is_idle()
            && self.cluster.is_idle()
            && self.all_managed_went()
            && self.all_ended()
    }
}

fn open_store(log: &MemoryLog, fate: &Fate, clock: &ManualClock) -> Result<Store, String> {
    let log = FailingLog { kept: log.clone(), fate: fate.clone() };
    // Whoever stands still for longer than that has to begin anew.
    let history = History { max_age: Duration::from_secs(20), ..History::default() };
    let store = Store::open_inline(log, history, clock.clone()).map_err(|error| error.to_string())?;
    hold_for_sinks(&store, &Settings::default());
    Ok(store)
}

fn summary(history: &[Entry]) -> Played {
    let mut played =
        Played { entries: u32::try_from(history.len()).unwrap_or(u32::MAX), ..Played::default() };
    let mut seen = BTreeSet::new();
    for entry in history {
        match &entry.what {
            What::Started(_) => played.attempts += 1,
            What::Faults(faults) => played.faults = *faults,
            What::Delivered(_) => played.messages += 1,
            What::Change(commit) if commit.resource == "tasks.muster.dev" && !commit.deleted => {
                let json = commit.object.get();
                let is_new = seen.insert(&commit.path);
                played.tasks += u32::from(is_new);
                played.runs += u32::from(is_new && json.contains("muster.dev/scheduled-at"));
                played.preempted += u32::from(json.contains("\"stopping\":\"Preempted\""));
            }
            _ => {}
        }
    }
    played
}

/// An entry in one short line.
pub fn line(entry: &Entry) -> String {
    let what = match &entry.what {
        What::Change(commit) => {
            let object: serde_json::Value = serde_json::from_str(commit.object.get()).unwrap_or_default();
            let (spec, status) = (&object["spec"], &object["status"]);
            let gone = if commit.deleted { "gone, was " } else { "" };
            let more = if commit.resource == "tasks.muster.dev" {
                format!(
                    "{} attempt {} stopping {} cancel {} rest {} priority {} kind {} of {} policy {} memory {} uid {}",
                    status["state"],
                    status["attempt"],
                    status["stopping"],
                    spec["cancel"],
                    status["restUntil"],
                    spec["priority"],
                    spec["kind"],
                    spec["subject"]["name"],
                    spec["policy"],
                    spec["resources"]["memory"],
                    object["metadata"]["uid"],
                )
            } else {
                status["state"].to_string()
            };
            format!("r{} {} {} {gone}{more}", commit.revision, commit.resource, commit.path)
        }
        other => format!("{other:?}"),
    };
    format!("{:>9} ms  {what}", entry.at)
}
