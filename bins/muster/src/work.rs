//! What one server of a store does alone: it runs tasks, makes what schedules and jobs ask for, tells sinks, collects garbage.
//!
//! A server that has its store for itself does it all the time. Of several, the one that holds the lease of a role does, behind its
//! fence; only a server that can do the work of a role asks for its lease.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use muster_apiserver::attempt_tokens::AttemptTokens;
use muster_apiserver::registry::Registry;
use muster_apiserver::serve::Listening;
use muster_apiserver::shutdown::Shutdown;
use muster_apiserver::tls::Tls;
use muster_apiserver::{expired_tokens, garbage};
use muster_egress::EgressPolicy;
use muster_engine::engine::{Engine, Outside};
use muster_engine::files::Keeper;
use muster_engine::questions::{Explainer, Question};
use muster_engine::relay;
use muster_engine::resources::{Resources, Settings as ResourceSettings, run as run_resources};
use muster_engine::run::run as run_engine;
use muster_engine::runtimes::Runtimes;
use muster_engine::saved_jobs;
use muster_engine::schedules::run as run_schedules;
use muster_engine::settings::{Mint, Prefetch};
use muster_engine::workflows::run as run_workflows;
use muster_outbound::LiveOutbound;
use muster_ports::blobs::Blobs;
use muster_ports::clock::Clock;
use muster_ports::kube_jobs::KubeJobs;
use muster_ports::logs::{AllLogs, KeptLogs, Logs};
use muster_ports::runtime::{Fact, Handle, Runtime};
use muster_ports::store::Store;
use muster_ports::telemetry::Telemetry;
use muster_relay_sinks::SinkMaker;
use muster_runtime_process::ProcessRuntime;
use muster_tasks::capacity::Capacity;
use muster_tasks::render::Token;
use muster_types::addon::Grant;
use muster_types::{Quantity, Task};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::adapter_env::adapter_env;
use crate::cli::{EgressArgs, LimitArgs, ResourceArgs, Sending, UpArgs, untold};
use crate::data_dir::{DataDir, rewrite_private, server_url};
use crate::hands::Hands;
use crate::machine::Machine;
use crate::pods::PodPart;
use crate::robots::{Ears, RobotPart};
use crate::server::{EngineOptions, RelayOptions};

/// How long a server that stops may wait for the store to take what is known, before its processes are ended and after.
const LEAVING: Duration = Duration::from_secs(5);

/// A role of which one server of a store does the work at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Singleton {
    /// Runs tasks, and makes what jobs, schedules and managed resources ask for.
    Engine,
    /// Tells event sinks about changes.
    Relay,
    /// Collects garbage. Every server can.
    Collector,
}

/// Everything that is needed to do it.
pub struct Work {
    pub data: DataDir,
    /// How the server proves itself, and so its broker.
    pub up: Option<UpArgs>,
    pub tls: Option<Arc<Tls>>,
    pub engine: Option<EngineOptions>,
    pub relay: Option<RelayOptions>,
    pub limits: LimitArgs,
    pub reach: Reach,
    pub clock: Arc<dyn Clock>,
    pub blobs: Arc<dyn Blobs>,
    pub tokens: AttemptTokens,
    pub telemetry: Telemetry,
    pub registry: Registry,
    pub shutdown: Shutdown,
    pub kube_jobs: Option<Arc<dyn KubeJobs>>,
    pub hands: Arc<Hands>,
    /// Tells the pods of this installation from those of others.
    pub pods_of: String,
}

/// What is being done. It ends with this.
pub struct Working {
    /// Where robots connect to.
    pub robots: Option<String>,
    loops: JoinSet<()>,
    /// Of the server that runs tasks.
    running: Option<RunningTasks>,
}

/// What has to be ended with care when tasks are run no longer.
struct RunningTasks {
    sending: Sending,
    processes: Arc<ProcessRuntime>,
    hands: Arc<Hands>,
    engine: Explainer,
    /// The longest time that processes have to end.
    stop_timeout: Duration,
}

impl RunningTasks {
    /// Nothing is started any more, processes are asked to end and killed after their grace, and all that is known of them is
    /// committed. That they are gone is waited for without a limit: the next leader may start the same tasks after it.
    async fn leave(&self) {
        let mut is_known = timeout(LEAVING, self.engine.leave(false)).await.is_ok();
        self.processes.stop_with_server(self.stop_timeout).await;
        is_known &= timeout(LEAVING, self.engine.leave(true)).await.is_ok();
        if !is_known {
            tracing::warn!("not all that has ended could be written down; it is tried again");
        }
    }
}

impl Working {
    /// Returns when something ended by itself, which nothing should.
    pub async fn ended(&mut self) {
        if self.loops.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Stops the loops and ends this server's processes; the next leader tries their tasks again. If this server may still write
    /// (`in_time`), processes have time to end, and how they ended is committed first.
    pub async fn stop(mut self, in_time: bool) {
        if let Some(running) = &self.running {
            running.hands.let_go();
            if in_time {
                running.leave().await;
            }
        }
        self.loops.shutdown().await;
        if let Some(RunningTasks { sending, processes, .. }) = self.running {
            processes.end().await;
            sending.finish().await;
        }
    }
}

impl Work {
    /// The roles that this server can do the work of.
    pub fn singletons(&self) -> Vec<Singleton> {
        let engine = self.engine.is_some().then_some(Singleton::Engine);
        let relay = self.relay.is_some().then_some(Singleton::Relay);
        engine.into_iter().chain(relay).chain([Singleton::Collector]).collect()
    }

    /// Begins the work of some roles, with everything that is committed going through a store. Processes run at most up to the
    /// moment that `lasts` says.
    pub async fn start(
        &self,
        roles: &[Singleton],
        store: &Store,
        lasts: Option<watch::Receiver<Duration>>,
    ) -> anyhow::Result<Working> {
        let wanted = self.engine.as_ref().filter(|_| roles.contains(&Singleton::Engine));
        let engine = match wanted {
            Some(wanted) => Some(self.prepare_engine(wanted, store, lasts).await?),
            None => None,
        };
        let mut loops = JoinSet::new();
        let clock = || self.clock.clone();
        if roles.contains(&Singleton::Collector) {
            let (registry, shutdown) = (self.registry.clone(), self.shutdown.clone());
            loops.spawn(garbage::collect(store.clone(), registry, clock(), shutdown));
            loops.spawn(expired_tokens::remove(store.clone(), clock()));
            loops.spawn(saved_jobs::run(store.clone(), self.blobs.clone()));
        }
        // A server that starts only its own tasks makes none either.
        if let Some(wanted) = wanted.filter(|wanted| wanted.only_since.is_none()) {
            loops.spawn(run_workflows(store.clone(), clock(), wanted.queue.lifetimes()));
            loops.spawn(run_schedules(store.clone(), clock()));
            self.start_resources(&wanted.resources, store, &mut loops);
        }
        let robots = engine.as_ref().and_then(|engine| Some(engine.robots.as_ref()?.url.clone()));
        let running = engine.map(|engine| engine.spawn(self.hands.clone(), &mut loops));
        if self.relay.is_some() && roles.contains(&Singleton::Relay) {
            let outside = relay::Outside {
                kube_jobs: self.kube_jobs.clone(),
                store: store.clone(),
                clock: clock(),
                sinks: Arc::new(self.sink_maker()?),
                telemetry: self.telemetry.clone(),
            };
            loops.spawn(relay::run(outside, relay_settings(&self.limits)));
        }
        Ok(Working { robots, loops, running })
    }

    /// Where objects may make the server connect to.
    fn egress(&self) -> EgressPolicy {
        self.up.as_ref().map_or_else(untold::<EgressArgs>, |up| up.egress.clone()).policy()
    }

    /// What connects to event sinks.
    fn sink_maker(&self) -> anyhow::Result<SinkMaker> {
        let relay = self.relay.as_ref();
        let named = relay.map(|relay| relay.env.endpoints().collect::<Vec<_>>()).unwrap_or_default();
        let policy = self.egress();
        let policy = named.iter().fold(policy, |policy, (host, port)| policy.with_endpoint(host, *port));
        Ok(SinkMaker::new(self.data.folder("sinks")?, self.variables(), policy))
    }

    /// The variables that sinks may name.
    fn variables(&self) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
        let env = self.relay.as_ref().map(|relay| relay.env.clone()).unwrap_or_default();
        move |name| env.variable(name).or_else(|| std::env::var(name).ok())
    }

    /// Starts what sees to managed resources.
    fn start_resources(&self, wanted: &ResourceArgs, store: &Store, loops: &mut JoinSet<()>) {
        let policy = Arc::new(self.egress());
        let (outbound, answers) = LiveOutbound::new(wanted.adapter_kubeconfig.clone(), policy);
        // An error says that somebody did it before.
        drop(rustls::crypto::ring::default_provider().install_default());
        let settings = ResourceSettings {
            env: adapter_env(),
            selector: wanted.resource_selector.clone().unwrap_or_default(),
        };
        let outbound = Some(Arc::new(outbound) as Arc<_>);
        let resources = Resources::new(store.clone(), self.clock.clone(), outbound, settings);
        loops.spawn(run_resources(resources, answers));
    }

    /// Makes what runs tasks, and tells the API how to ask it.
    async fn prepare_engine(
        &self,
        wanted: &EngineOptions,
        store: &Store,
        lasts: Option<watch::Receiver<Duration>>,
    ) -> anyhow::Result<ReadyEngine> {
        let Self { data, reach, blobs, tokens, .. } = self;
        let attempts = data.folder("attempts")?;
        data.folder("attempts/cache")?;
        let asked = &wanted.queue;
        let machine = Machine::of_this_process();
        let slots = asked.slots.unwrap_or_else(|| u32::try_from(machine.cores).unwrap_or(1));
        let cpu = asked
            .cpu
            .as_ref()
            .map_or(machine.cores.saturating_mul(1000), |cpu| u64::try_from(cpu.milli()).unwrap_or(u64::MAX));
        let memory = asked.memory.as_ref().map(Quantity::value).or(machine.memory);
        let mut settings = muster_runtime_process::Settings::this_program(&attempts, &["shepherd"]);
        settings.executor.max_running = Some(slots as usize);
        settings.executor.log_max_bytes = asked.log_max.value();
        let (runtime, facts) = ProcessRuntime::new(settings).context("cannot run processes")?;
        if let Some(lasts) = &lasts {
            // Before anything can be started.
            runtime.run_until(*lasts.borrow());
        }
        let tokens = tokens.clone();
        let mint = move |task: &Task, attempt: u32, grants: &[Grant]| {
            let handle = Handle { task: task.metadata.uid.clone(), attempt };
            Token::new(tokens.mint(&task.metadata.namespace, &task.metadata.name, &handle, grants))
        };
        let pods = match &wanted.pods {
            Some(args) => {
                let ca = reach.ca.as_deref();
                Some(PodPart::prepare(data, &self.pods_of, args, asked, &reach.url, ca, blobs.clone()).await?)
            }
            None => None,
        };
        let mut robots = match &wanted.robots {
            Some(args) => {
                let (store, clock) = (store.clone(), self.clock.clone());
                let ears = Ears { data, args, store, clock, telemetry: self.telemetry.clone() };
                RobotPart::prepare(ears, self.up.as_ref(), self.tls.as_deref(), asked).await?
            }
            None => None,
        };
        let mut queue = asked.queue_settings(&self.limits.log_suffix);
        if let Some(args) = &wanted.pods {
            queue.default_runtime = args.runtime.into();
            queue.unschedulable_hold = args.unschedulable_hold();
        }
        let settings = muster_engine::settings::Settings {
            queue,
            reap: asked.reap_settings(),
            processes: Capacity { slots, cpu_millis: Some(cpu), memory },
            pods: pods.as_ref().map(|pods| pods.settings.clone()),
            robots: robots.as_ref().map(|robots| robots.settings.clone()),
            prefetch: Prefetch::Measured,
            only_since: wanted.only_since,
            base_env: reach.env(&wanted.base_env),
            url: reach.url.clone(),
            work_root: attempts.display().to_string(),
            kill_timeout: asked.kill_timeout.as_std(),
            mint: Mint::new(mint),
        };
        let mut live: Vec<Arc<dyn Logs>> = vec![Arc::new(runtime.logs())];
        live.extend(pods.as_ref().map(PodPart::logs));
        live.extend(robots.as_ref().map(RobotPart::logs));
        let logs = AllLogs::new(live, KeptLogs::new(blobs.clone()));
        let processes = Arc::new(runtime);
        let (pods, of_pods) = pods.map(PodPart::runtime).unzip();
        let (of_robots, robot_facts) = robots.as_mut().map(RobotPart::runtime).unzip();
        let facts = join_facts([Some(facts), of_pods, robot_facts.flatten()]);
        let runtime: Arc<dyn Runtime> = Arc::new(Runtimes::new(processes.clone(), pods, of_robots));
        let telemetry = self.telemetry.clone();
        let (tracer, sending) = wanted.traces.start(&telemetry);
        let (store, blobs, clock) = (store.clone(), blobs.clone(), self.clock.clone());
        let outside = Outside { store, runtime, blobs, clock, telemetry, tracer };
        let keeper = Keeper::new(outside.runtime.clone(), outside.blobs.clone());
        let engine = Engine::new(settings, outside.clone(), keeper.spawn()?)?;
        let (explainer, questions) = Explainer::new();
        self.hands.take(Arc::new(logs), Arc::new(explainer.clone()));
        let stop_timeout = asked.stop_timeout.as_std();
        Ok(ReadyEngine {
            engine,
            outside,
            facts,
            questions,
            explainer,
            robots,
            sending,
            processes,
            stop_timeout,
            lasts,
        })
    }
}

/// How attempts reach the server.
pub struct Reach {
    url: String,
    /// A file with the authority of its certificate, if that matters.
    pub authority: Option<PathBuf>,
    /// The authority itself, if it speaks TLS at all.
    ca: Option<String>,
}

impl Reach {
    /// Plain, where that is spoken: attempts run on this machine. Else they are told whom to trust.
    pub fn of(
        data: &DataDir,
        listening: &Listening,
        address: SocketAddr,
        ca: Option<&str>,
    ) -> anyhow::Result<Self> {
        let text = ca.map(str::to_owned);
        if listening.plain {
            return Ok(Self { url: server_url("http", address), authority: None, ca: text });
        }
        let authority = ca.map(|ca| {
            let path = data.path().join("attempts-ca.pem");
            rewrite_private(&path, ca).map(|()| path)
        });
        Ok(Self { url: server_url("https", address), authority: authority.transpose()?, ca: text })
    }

    /// The environment of attempts, with what they need to trust the server.
    fn env(&self, base: &[(String, String)]) -> Vec<(String, String)> {
        let path = self.authority.as_deref().and_then(Path::to_str);
        let trusted = path.map(|path| ("MUSTER_CA_FILE".to_owned(), path.to_owned()));
        base.iter().cloned().chain(trusted).collect()
    }
}

/// What runs tasks, ready to go.
struct ReadyEngine {
    engine: Engine,
    outside: Outside,
    facts: UnboundedReceiver<Fact>,
    questions: Receiver<Question>,
    explainer: Explainer,
    robots: Option<RobotPart>,
    sending: Sending,
    processes: Arc<ProcessRuntime>,
    stop_timeout: Duration,
    lasts: Option<watch::Receiver<Duration>>,
}

impl ReadyEngine {
    fn spawn(self, hands: Arc<Hands>, loops: &mut JoinSet<()>) -> RunningTasks {
        let Self {
            engine,
            outside,
            facts,
            questions,
            explainer,
            robots,
            sending,
            processes,
            stop_timeout,
            lasts,
        } = self;
        if let Some(lasts) = lasts {
            loops.spawn(prolong(processes.clone(), lasts));
        }
        loops.spawn(async move {
            // These end with this loop.
            let mut loops = JoinSet::new();
            if let Some(robots) = robots {
                robots.start(&mut loops, outside.telemetry.clone());
            }
            run_engine(engine, outside, facts, questions).await;
        });
        RunningTasks { sending, processes, hands, engine: explainer, stop_timeout }
    }
}

/// Passes on how long processes may run, each time the lease was renewed.
async fn prolong(processes: Arc<ProcessRuntime>, mut lasts: watch::Receiver<Duration>) {
    loop {
        let moment = *lasts.borrow_and_update();
        processes.run_until(moment);
        if lasts.changed().await.is_err() {
            // The term is over, and this loop is about to be stopped.
            return std::future::pending().await;
        }
    }
}

/// The facts of all runtimes on one channel.
fn join_facts(sources: [Option<UnboundedReceiver<Fact>>; 3]) -> UnboundedReceiver<Fact> {
    let (sender, joined) = unbounded_channel();
    for mut source in sources.into_iter().flatten() {
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Some(fact) = source.recv().await {
                if sender.send(fact).is_err() {
                    return;
                }
            }
        });
    }
    joined
}

/// How the relay works. It runs where nobody else does, so all holders of its leases are the same one.
pub fn relay_settings(limits: &LimitArgs) -> relay::Settings {
    relay::Settings { max_held_changes: limits.relay_backlog, ..relay::Settings::default() }
}
