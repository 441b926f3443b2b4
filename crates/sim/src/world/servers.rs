//! Servers of one store: which of them leads, and what it runs.
//!
//! A server alone has no lease. Of several, the holder of the lease leads, behind its fence; another one takes the lease when it
//! saw it unchanged for its whole time and a grace. What a former leader runs as processes is ended by its shepherd when the
//! lease was not renewed for its time.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::engine::{Engine, Outside};
use muster_engine::files::{Files, Keeper};
use muster_engine::fleet::Robots as Phases;
use muster_engine::relay;
use muster_engine::resources::{Resources, Settings as ResourceSettings};
use muster_engine::runtimes::Runtimes;
use muster_engine::schedules::Schedules;
use muster_engine::settings::{Mint, Pods, Prefetch, Robots, Settings};
use muster_engine::workflows::Workflows;
use muster_fleet::liveness;
use muster_ports::clock::{Clock, ManualClock, Millis};
use muster_ports::runtime::{Fact, Runtime};
use muster_ports::store::{Fence, Lease, LeaseView, Store, WatchError};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::settings::Settings as QueueSettings;
use tokio::task::{JoinSet, yield_now};

use muster_workflows::lifetime::Lifetimes;

use super::World;
use super::robots::OFFLINE_AFTER;
use crate::fake_runtime::{FakeRuntime, MEMORY, SLOTS};
use crate::judge::history::{Standing, What};

/// Pods at once, if no quota refuses them.
const PODS: u32 = 8;
/// What is led.
const ROLE: &str = "engine";
/// How long a lease holds, in milliseconds.
const LEASE: i64 = 6_000;
/// How long others wait after that.
const GRACE: i64 = 2_000;
/// Seconds that a task waits before it preempts, and that its victim rests: short, so that it happens.
const PREEMPT_SECONDS: i64 = 4;

/// How long groups and jobs are kept, in seconds: short, so that their time is over.
const LIFETIMES: Lifetimes = Lifetimes { succeeded: 300, failed: 200 };

/// A server and its machine.
pub struct Server {
    /// Its name.
    pub name: String,
    /// Where its processes run.
    pub machine: FakeRuntime,
    /// Its time, which is steady from its start on.
    clock: ManualClock,
    /// What it does, if it leads.
    pub loops: Option<Loops>,
    /// It stands still until then, by the steady clock.
    paused_until: Option<i64>,
    /// The lease as it was last seen, and when.
    seen: Option<(Option<LeaseView>, i64)>,
    /// How often it was started; no two processes have the same name.
    starts: u32,
}

/// What a leader does.
pub struct Loops {
    /// Tasks.
    pub engine: Engine,
    /// News on its way to it.
    pub underway: Vec<Fact>,
    workflows: Workflows,
    schedules: Schedules,
    resources: Resources,
    phases: Phases,
    /// Tells sinks about changes, whenever it is polled; it ends with this.
    relay: JoinSet<()>,
    /// What the relay is made of.
    told: relay::Outside,
    lease: Option<(Lease, Fence)>,
    renewed_at: i64,
    /// When each of the loops wants to look again.
    due: [Option<Millis>; 5],
}

impl Server {
    /// A server that does nothing yet.
    pub fn new(name: String, machine: FakeRuntime, clock: ManualClock) -> Self {
        Self { name, machine, clock, loops: None, paused_until: None, seen: None, starts: 0 }
    }

    /// True if news is on its way to it.
    pub fn expects_news(&self) -> bool {
        self.loops.as_ref().is_some_and(|loops| !loops.underway.is_empty())
    }
}

/// What became of a step.
enum Outcome {
    Went,
    /// The fence fell.
    Fell,
}

impl World {
    /// The server that leads and does not stand still.
    pub(super) fn leader(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.loops.is_some() && server.paused_until.is_none())
    }

    /// In how many milliseconds whoever leads wants to look again.
    pub(super) fn due(&self) -> Option<i64> {
        let server = &self.servers[self.leader()?];
        let due = server.loops.as_ref()?.due.iter().flatten().min()?;
        Some(due.0 - server.clock.now().0)
    }

    /// In how many milliseconds whoever leads renews its lease, if it has one.
    pub(super) fn renewal_in(&self) -> Option<i64> {
        let loops = self.servers[self.leader()?].loops.as_ref()?;
        loops.lease.as_ref()?;
        Some((loops.renewed_at + LEASE / 3 - self.recorder.at()).max(LEASE / 6))
    }

    /// The time of a server that answers users.
    pub(super) fn now(&self) -> Millis {
        self.servers[self.leader().unwrap_or(0)].clock.now()
    }

    /// A server is killed, and what it runs with it; it is started again at once.
    pub(super) fn crash_one(&mut self) -> Result<(), String> {
        let number = usize::try_from(self.dice.below(self.servers.len() as u64)).unwrap_or(0);
        if self.servers.len() == 1 {
            return self.power_failure();
        }
        self.stop_server(number, Standing::Crashed);
        Ok(())
    }

    /// What a server did is gone, with what it ran.
    pub(super) fn stop_server(&mut self, number: usize, how: Standing) {
        let server = &mut self.servers[number];
        let led = server.loops.take().is_some();
        server.machine.kill_all(false);
        server.clock = self.clock.restarted();
        server.paused_until = None;
        server.seen = None;
        if led {
            self.recorder.note(What::Server(server.name.clone(), how));
        }
    }

    /// The leader stands still for a while; its processes and its shepherd do not.
    pub(super) fn pause_leader(&mut self) {
        let until = self.recorder.at() + i64::try_from(self.dice.below(40_000)).unwrap_or(0);
        if let Some(leader) = self.leader() {
            let server = &mut self.servers[leader];
            server.paused_until = Some(until);
            if let Some(loops) = &mut server.loops {
                loops.relay = JoinSet::new();
            }
            self.recorder.note(What::Server(server.name.clone(), Standing::Paused));
        }
    }

    /// Leases are renewed, run out, and are taken.
    pub(super) async fn lead(&mut self) -> Result<(), String> {
        let at = self.recorder.at();
        for number in 0..self.servers.len() {
            let server = &mut self.servers[number];
            if server.paused_until.is_some_and(|until| until <= at) {
                server.paused_until = None;
                if let Some(loops) = &mut server.loops {
                    self.recorder.note(What::Server(server.name.clone(), Standing::Leads));
                    loops.relay.spawn(relay::run(loops.told.clone(), relay::Settings::default()));
                }
            }
            let renewed_at = server.loops.as_ref().map(|loops| loops.renewed_at);
            let has_lease = server.loops.as_ref().is_some_and(|loops| loops.lease.is_some());
            // The shepherd does not stand still with its server.
            if has_lease && renewed_at.is_some_and(|renewed| at - renewed >= LEASE) {
                server.machine.kill_all(true);
            }
            if server.paused_until.is_some() {
                continue;
            }
            if server.loops.is_some() {
                self.renew(number).await?;
            } else {
                self.campaign(number).await?;
            }
        }
        self.notice_fate()
    }

    async fn renew(&mut self, number: usize) -> Result<(), String> {
        let (at, now) = (self.recorder.at(), self.servers[number].clock.now());
        let store = self.store.clone();
        let Some(loops) = &mut self.servers[number].loops else { return Ok(()) };
        let Some((lease, _)) = &mut loops.lease else { return Ok(()) };
        if at - loops.renewed_at < LEASE / 3 {
            return Ok(());
        }
        match lease.renew(&store, Duration::from_millis(LEASE.unsigned_abs()), now).await {
            Ok(renewed) => {
                *lease = renewed;
                loops.renewed_at = at;
            }
            Err(_) if at - loops.renewed_at < LEASE && !self.fate.is_dead() => {}
            Err(_) => self.stop_server(number, Standing::Crashed),
        }
        Ok(())
    }

    /// Takes the lease if it is free or was not renewed in its time; a server alone needs none.
    async fn campaign(&mut self, number: usize) -> Result<(), String> {
        if self.servers.len() == 1 {
            return self.open(number, None);
        }
        let (at, now) = (self.recorder.at(), self.servers[number].clock.now());
        let view = Lease::look(&self.store, ROLE);
        let server = &mut self.servers[number];
        let since = match &server.seen {
            Some((known, since)) if *known == view => *since,
            _ => at,
        };
        server.seen = Some((view.clone(), since));
        let is_free = view.as_ref().is_none_or(|view| view.holder.is_none());
        if !is_free && at - since < LEASE + GRACE {
            return Ok(());
        }
        server.starts += 1;
        let holder = format!("{}-{}", server.name, server.starts);
        let ttl = Duration::from_millis(LEASE.unsigned_abs());
        match Lease::take_over(&self.store, ROLE, &holder, ttl, now, view.as_ref()).await {
            Ok(lease) => self.open(number, Some(lease)),
            Err(_) => Ok(()),
        }
    }

    /// A server begins to lead, and asks for what is there at once.
    fn open(&mut self, number: usize, lease: Option<Lease>) -> Result<(), String> {
        self.recorder.note(What::Server(self.servers[number].name.clone(), Standing::Leads));
        let lease = lease.map(|lease| {
            let fence = lease.fence();
            (lease, fence)
        });
        let store = match &lease {
            Some((_, fence)) => self.store.fenced(fence.clone()),
            None => self.store.clone(),
        };
        self.fleet.forget_bridge();
        self.cluster.forget_asker();
        let words = |error: WatchError| error.to_string();
        let clock: Arc<dyn Clock> = Arc::new(self.servers[number].clock.clone());
        let told = relay::Outside {
            store: store.clone(),
            clock: clock.clone(),
            sinks: Arc::new(self.sinks.clone()),
            telemetry: Telemetry::default(),
            kube_jobs: None,
        };
        let mut relay = JoinSet::new();
        relay.spawn(relay::run(told.clone(), relay::Settings::default()));
        let judged = liveness::Settings { offline_after: OFFLINE_AFTER, approve: true, max_robots: None };
        let loops = Loops {
            engine: self.open_engine(number, store.clone()).map_err(words)?,
            underway: Vec::new(),
            workflows: Workflows::with_lifetimes(store.clone(), clock.clone(), LIFETIMES).map_err(words)?,
            schedules: Schedules::new(store.clone(), clock.clone()).map_err(words)?,
            resources: Resources::new(store.clone(), clock.clone(), None, ResourceSettings::default())
                .map_err(words)?,
            phases: Phases::new(store, clock, judged).map_err(words)?,
            relay,
            told,
            lease,
            renewed_at: self.recorder.at(),
            due: [None; 5],
        };
        self.servers[number].loops = Some(loops);
        Ok(())
    }

    fn open_engine(&self, number: usize, store: Store) -> Result<Engine, WatchError> {
        let settings = Settings {
            queue: QueueSettings {
                without: self.without,
                preempt_delay: PREEMPT_SECONDS,
                preempt_rest: PREEMPT_SECONDS,
                ..QueueSettings::default()
            },
            reap: ReapSettings { succeeded: 600, failed: 300, keep_failed: 60, ..ReapSettings::default() },
            pods: Some(Pods {
                capacity: Capacity { slots: PODS, cpu_millis: None, memory: None },
                url: String::new(),
                namespace: None,
                base_env: Vec::new(),
            }),
            robots: Some(Robots::default()),
            processes: Capacity {
                slots: u32::try_from(SLOTS).unwrap_or(u32::MAX),
                cpu_millis: None,
                memory: Some(MEMORY),
            },
            prefetch: Prefetch::Fixed(self.ahead),
            only_since: None,
            url: "http://127.0.0.1".into(),
            work_root: "/work".into(),
            base_env: Vec::new(),
            kill_timeout: Duration::from_secs(1),
            mint: Mint::worthless(),
        };
        let machine: Arc<dyn Runtime> = Arc::new(self.servers[number].machine.clone());
        let fleet: Arc<dyn Runtime> = Arc::new(self.fleet.clone());
        let pods: Arc<dyn Runtime> = Arc::new(self.cluster.clone());
        let runtime: Arc<dyn Runtime> = Arc::new(Runtimes::new(machine, Some(pods), Some(fleet)));
        let files = Files::Inline(Keeper::new(runtime.clone(), self.blobs.clone()));
        let outside = Outside {
            store,
            runtime,
            blobs: self.blobs.clone(),
            clock: Arc::new(self.servers[number].clock.clone()),
            telemetry: Telemetry::default(),
            tracer: Tracer::default(),
        };
        Engine::new(settings, outside, files)
    }

    /// Whoever leads looks at everything once; not each of its loops every time.
    pub(super) async fn step(&mut self) -> Result<(), String> {
        self.beat_hearts().await?;
        let Some(leader) = self.leader() else { return Ok(()) };
        let turns =
            [true, !self.dice.once_in(3), self.dice.once_in(2), self.dice.once_in(2), self.dice.once_in(2)];
        let Some(mut loops) = self.servers[leader].loops.take() else { return Ok(()) };
        let outcome = loops.step(turns, &self.store).await;
        self.servers[leader].loops = Some(loops);
        // The relay goes on by itself, some steps at a time.
        for _ in 0..self.dice.below(4) {
            yield_now().await;
        }
        match outcome? {
            Outcome::Went => {}
            Outcome::Fell => self.stop_server(leader, Standing::Crashed),
        }
        self.notice_fate()
    }
}

impl Loops {
    async fn step(&mut self, turns: [bool; 5], store: &Store) -> Result<Outcome, String> {
        let fence = self.lease.as_ref().map(|(_, fence)| fence.clone());
        let all = async {
            let [engine, workflows, schedules, resources, phases] = turns;
            // A loop that does not have its turn wants to look still.
            let due = &mut self.due;
            if phases {
                due[4] = self.phases.step().await?;
            }
            if engine {
                due[0] = self.engine.step().await?;
            }
            let seen = store.revision();
            if workflows {
                due[1] = self.workflows.step().await?;
            }
            if schedules {
                due[2] = self.schedules.step().await?;
            }
            if resources {
                due[3] = self.resources.step().await?;
            }
            // What the others wrote wakes the engine.
            if store.revision() > seen {
                due[0] = Some(Millis(0));
            }
            Ok::<_, WatchError>(())
        };
        let Some(fence) = fence else {
            return all.await.map(|()| Outcome::Went).map_err(|error| error.to_string());
        };
        tokio::select! {
            biased;
            done = all => done.map(|()| Outcome::Went).map_err(|error| error.to_string()),
            () = fence.fallen() => Ok(Outcome::Fell),
        }
    }
}
