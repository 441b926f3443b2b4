//! The server, put together: store, API, engine. `up` and `run` use it, each in its own way.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use muster_apiserver::access::Role;
use muster_apiserver::api::{Api, Settings};
use muster_apiserver::attempt_tokens::AttemptTokens;
use muster_apiserver::parts::Parts;
use muster_apiserver::serve::{Listening, serve};
use muster_apiserver::shutdown::Shutdown;
use muster_apiserver::tls::Tls;
use muster_apiserver::{certs, garbage, kinds};
use muster_blobs::LocalBlobs;
use muster_engine::engine::{Engine, Outside};
use muster_engine::files::Keeper;
use muster_engine::questions::{Explainer, Question};
use muster_engine::relay;
use muster_engine::resources::{Resources, Settings as ResourceSettings, run as run_resources};
use muster_engine::run::run as run_engine;
use muster_engine::runtimes::Runtimes;
use muster_engine::saved_jobs;
use muster_engine::schedules::run as run_schedules;
use muster_engine::settings::{Ahead, Mint};
use muster_engine::workflows::run as run_workflows;
use muster_kube_jobs::ClusterJobs;
use muster_outbound::LiveOutbound;
use muster_ports::blobs::Blobs;
use muster_ports::clock::{Clock, SystemClock};
use muster_ports::kube_jobs::KubeJobs;
use muster_ports::logs::{AllLogs, KeptLogs, Logs};
use muster_ports::pages::Pages;
use muster_ports::runtime::{Fact, Handle, Runtime};
use muster_ports::store::{History, LogError, MeasuredLog, Revision, Store};
use muster_ports::telemetry::Telemetry;
use muster_relay_sinks::SinkMaker;
use muster_runtime_kube::ConnectError;
use muster_runtime_process::ProcessRuntime;
use muster_store_sql::SqliteLog;
use muster_tasks::capacity::Capacity;
use muster_tasks::render::Token;
use muster_types::{Millis, Quantity, Task};
use muster_web::console::Console;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet};

use crate::adapter_env::adapter_env;
use crate::behind::Behind;
use crate::cli::{LimitArgs, PodArgs, QueueArgs, ResourceArgs, RobotArgs, Sending, TraceArgs, UpArgs};
use crate::data_dir::{DataDir, kubeconfig_text, rewrite_private, server_url};
use crate::machine::Machine;
use crate::pods::PodPart;
use crate::relay_env::RelayEnv;
use crate::robots::RobotPart;

/// Name of the token that the first start makes.
const ADMIN: &str = "admin";
/// What attempts are given of the server's environment, unless it is told otherwise.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// What a server is to be.
pub struct Options<'a> {
    /// Where it listens.
    pub listen: &'a str,
    /// How it proves itself; nothing is plain HTTP, for loopback alone.
    pub tls: Option<&'a UpArgs>,
    /// Limits of the API.
    pub limits: &'a LimitArgs,
    /// Whether it runs tasks.
    pub engine: Option<EngineOptions>,
    /// Whether it tells event sinks about changes, and of which cluster.
    pub relay: Option<RelayOptions>,
    /// Whether people can look at it in a browser.
    pub web: bool,
}

/// What the relay may look at besides the store.
#[derive(Debug, Clone, Default)]
pub struct RelayOptions {
    /// Kubeconfig of the cluster whose jobs sinks may ask for; else the one this server runs in, if it does.
    pub cluster_kubeconfig: Option<PathBuf>,
    /// What the environment says of a broker, and of the namespace that counts as the server's own.
    pub env: RelayEnv,
}

impl RelayOptions {
    /// The jobs of the cluster, if there is one.
    async fn kube_jobs(&self) -> anyhow::Result<Option<Arc<dyn KubeJobs>>> {
        let client = match muster_runtime_kube::connect(self.cluster_kubeconfig.as_deref()).await {
            Ok(client) => client,
            Err(ConnectError::NoCluster(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Arc::new(ClusterJobs::new(client, self.env.namespace.clone()))))
    }
}

/// How tasks are run.
pub struct EngineOptions {
    queue: QueueArgs,
    base_env: Vec<(String, String)>,
    only_since: Option<Millis>,
    pods: Option<PodArgs>,
    robots: Option<RobotArgs>,
    resources: ResourceArgs,
    traces: TraceArgs,
}

impl EngineOptions {
    /// The little that attempts need of the server's environment.
    pub fn clean_env() -> Vec<(String, String)> {
        let passed = PASSED_ON.into_iter();
        passed.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect()
    }

    /// How attempts are run with an environment. They find this program in it, for `muster report`.
    pub fn new(queue: QueueArgs, mut base_env: Vec<(String, String)>) -> Self {
        let program = std::env::current_exe().ok();
        let place = program.as_deref().and_then(Path::parent).and_then(Path::to_str);
        match (base_env.iter_mut().find(|(name, _)| name == "PATH"), place) {
            (Some((_, path)), Some(place)) if !path.split(':').any(|known| known == place) => {
                *path = format!("{path}:{place}");
            }
            _ => {}
        }
        let (resources, traces) = (ResourceArgs::default(), TraceArgs::default());
        Self { queue, base_env, only_since: None, pods: None, robots: None, resources, traces }
    }

    /// Runs pods too, if that is asked for.
    #[must_use]
    pub fn with_pods(self, pods: &PodArgs) -> Self {
        Self { pods: pods.wanted().then(|| pods.clone()), ..self }
    }

    /// Robots too, if that is asked for.
    #[must_use]
    pub fn with_robots(self, robots: &RobotArgs) -> Self {
        Self { robots: robots.wanted().then(|| robots.clone()), ..self }
    }

    /// How managed resources are seen to.
    #[must_use]
    pub fn resources(self, resources: ResourceArgs) -> Self {
        Self { resources, ..self }
    }

    /// Where traces are sent.
    #[must_use]
    pub fn traces(self, traces: TraceArgs) -> Self {
        Self { traces, ..self }
    }

    /// Starts no tasks that were made before: somebody else will.
    #[must_use]
    pub fn only_since(self, time: Millis) -> Self {
        Self { only_since: Some(time), ..self }
    }
}

/// A server that runs.
pub struct Server {
    /// Where it is reached.
    pub url: String,
    /// Where people look at it, if they can.
    pub console: Option<String>,
    /// The secret of its admin.
    pub admin: String,
    /// What it keeps.
    pub store: Store,
    /// Where robots connect to.
    pub robots: Option<String>,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
    garbage: JoinHandle<()>,
    engine: Option<JoinHandle<()>>,
    sending: Option<Sending>,
    workflows: Option<JoinHandle<()>>,
    schedules: Option<JoinHandle<()>>,
    resources: Option<JoinHandle<()>>,
    relay: Option<JoinHandle<()>>,
    saved_jobs: JoinHandle<()>,
}

impl Server {
    /// Starts it. When this returns, it can be asked.
    pub async fn start(data: &DataDir, options: &Options<'_>) -> anyhow::Result<Self> {
        let (listener, address) = listen(options.listen).await?;
        let behind = Behind::prepare(options.tls).await?;
        let (listening, ca) = choose_listening(data, options.tls, address, behind.as_ref())?;
        let telemetry = Telemetry::default();
        let store = open_store(data, options.limits, &telemetry)?;
        let shutdown = Shutdown::default();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let registry = kinds::registry().with_types_of(&store);
        let scheme = if listening.tls.is_some() { "https" } else { "http" };
        let url = server_url(scheme, address);
        // A certificate that nobody knows makes browsers warn; on this machine they need none.
        let seen = if listening.plain { server_url("http", address) } else { url.clone() };
        let console = options.web.then(|| format!("{seen}/ui/"));
        let files = data.folder("files")?;
        let blobs = LocalBlobs::open(&files);
        let blobs: Arc<dyn Blobs> =
            Arc::new(blobs.with_context(|| format!("cannot keep files in {}", files.display()))?);
        let tokens = AttemptTokens::open(&store).await?;
        let parts = Parts {
            blobs: Some(blobs.clone()),
            attempt_tokens: Some(tokens.clone()),
            logs: Some(Arc::new(KeptLogs::new(blobs.clone()))),
            explain: None,
            telemetry,
            cluster: behind.as_ref().map(|behind| behind.users.clone()),
            pages: options
                .web
                .then(|| Arc::new(Console::new(store.clone(), clock.clone())) as Arc<dyn Pages>),
        };
        let kube_jobs = match &options.relay {
            Some(wanted) => wanted.kube_jobs().await?,
            None => None,
        };
        let relay_outside = relay::Outside {
            kube_jobs,
            store: store.clone(),
            clock: clock.clone(),
            sinks: Arc::new(SinkMaker::new(data.folder("sinks")?, variables(options))),
            telemetry: parts.telemetry.clone(),
        };
        let (engine, parts) = match &options.engine {
            None => (None, parts),
            Some(wanted) => {
                let (store, clock) = (store.clone(), clock.clone());
                let reach = Reach::of(data, &listening, address, ca.as_deref())?;
                let (engine, parts) =
                    prepare_engine(data, options, wanted, reach, store, clock, parts).await?;
                (Some(engine), parts)
            }
        };
        let settings = settings(options.limits);
        let api = Api::new(registry.clone(), store.clone(), clock.clone(), settings, shutdown.clone(), parts);
        let admin = write_access(data, &api, &url, ca.as_deref()).await?;
        let collecting = garbage::collect(store.clone(), registry, clock.clone(), shutdown.clone());
        let garbage = tokio::spawn(collecting);
        let saved_jobs = tokio::spawn(saved_jobs::run(store.clone(), blobs.clone()));
        // A server that starts only its own tasks makes none either.
        let maker = options.engine.as_ref().filter(|wanted| wanted.only_since.is_none());
        let workflows = maker.map(|_| tokio::spawn(run_workflows(store.clone(), clock.clone())));
        let schedules = maker.map(|_| tokio::spawn(run_schedules(store.clone(), clock.clone())));
        let resources = maker.map(|wanted| start_resources(&wanted.resources, &store, &clock));
        let robots =
            engine.as_ref().and_then(|engine| engine.robots.as_ref().map(|robots| robots.url.clone()));
        let (engine, sending) = engine.map(ReadyEngine::spawn).unzip();
        let relay = options
            .relay
            .as_ref()
            .map(|_| tokio::spawn(relay::run(relay_outside, relay_settings(options.limits))));
        let serving = tokio::spawn(serve(api, listener, listening, shutdown.clone()));
        Ok(Self {
            url,
            console,
            admin,
            store,
            robots,
            shutdown,
            serving,
            garbage,
            engine,
            sending,
            workflows,
            schedules,
            resources,
            relay,
            saved_jobs,
        })
    }

    /// What asks it to stop.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Waits until it was asked to stop, and lets open requests end.
    pub async fn wait(self) -> anyhow::Result<()> {
        self.serving.await.context("the API server ended badly")?;
        self.shutdown.request();
        self.garbage.await.context("the garbage collector ended badly")?;
        let makers = self.workflows.into_iter().chain(self.schedules).chain(self.resources).chain(self.relay);
        let makers = makers.chain([self.saved_jobs]);
        for running in self.engine.into_iter().chain(makers) {
            // Attempts end with the engine; their tasks are tried again by the next server.
            running.abort();
            drop(running.await);
        }
        if let Some(sending) = self.sending {
            sending.finish().await;
        }
        self.store.close();
        tracing::info!("stopped");
        Ok(())
    }
}

/// The variables that sinks may name.
fn variables(options: &Options<'_>) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
    let env = options.relay.as_ref().map(|relay| relay.env.clone()).unwrap_or_default();
    move |name| env.variable(name).or_else(|| std::env::var(name).ok())
}

/// Starts what sees to managed resources.
fn start_resources(wanted: &ResourceArgs, store: &Store, clock: &Arc<dyn Clock>) -> JoinHandle<()> {
    let (outbound, answers) = LiveOutbound::new(wanted.adapter_kubeconfig.clone());
    // An error says that somebody did it before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let settings = ResourceSettings {
        env: adapter_env(),
        selector: wanted.resource_selector.clone().unwrap_or_default(),
    };
    let resources = Resources::new(store.clone(), clock.clone(), Some(Arc::new(outbound)), settings);
    tokio::spawn(run_resources(resources, answers))
}

/// True if a server could not start because another one holds the directory.
pub fn is_in_use(error: &anyhow::Error) -> bool {
    let held = |link: &(dyn std::error::Error + 'static)| {
        matches!(link.downcast_ref::<LogError>(), Some(LogError::InUse(_)))
    };
    error.chain().any(held)
}

/// How attempts reach the server.
struct Reach {
    url: String,
    /// A file with the authority of its certificate, if that matters.
    authority: Option<PathBuf>,
    /// The authority itself, if it speaks TLS at all.
    ca: Option<String>,
}

impl Reach {
    /// Plain, where that is spoken: attempts run on this machine. Else they are told whom to trust.
    fn of(
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
    robots: Option<RobotPart>,
    sending: Sending,
}

impl ReadyEngine {
    fn spawn(self) -> (JoinHandle<()>, Sending) {
        let Self { engine, outside, facts, questions, robots, sending } = self;
        let running = async move {
            // These end with this loop.
            let mut loops = JoinSet::new();
            if let Some(robots) = robots {
                robots.start(&mut loops, outside.telemetry.clone());
            }
            run_engine(engine, outside, facts, questions).await;
        };
        (tokio::spawn(running), sending)
    }
}

/// Makes what runs tasks, and tells the API how to ask it.
async fn prepare_engine(
    data: &DataDir,
    options: &Options<'_>,
    wanted: &EngineOptions,
    reach: Reach,
    store: Store,
    clock: Arc<dyn Clock>,
    parts: Parts,
) -> anyhow::Result<(ReadyEngine, Parts)> {
    let (Some(blobs), Some(tokens)) = (parts.blobs.clone(), parts.attempt_tokens.clone()) else {
        bail!("tasks cannot be run without a place for files and tokens");
    };
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
    let mint = move |task: &Task, attempt: u32| {
        let handle = Handle { task: task.metadata.uid.clone(), attempt };
        Token::new(tokens.mint(&task.metadata.namespace, &task.metadata.name, &handle))
    };
    let pods = match &wanted.pods {
        Some(args) => {
            let ca = reach.ca.as_deref();
            Some(PodPart::prepare(data, args, asked, &reach.url, ca, blobs.clone()).await?)
        }
        None => None,
    };
    let mut robots = match &wanted.robots {
        Some(args) => {
            let (store, clock) = (store.clone(), clock.clone());
            RobotPart::prepare(data, args, options.tls, asked, store, clock).await?
        }
        None => None,
    };
    let mut queue = asked.queue_settings(&options.limits.log_suffix);
    if let Some(args) = &wanted.pods {
        queue.default_runtime = args.runtime.into();
    }
    let settings = muster_engine::settings::Settings {
        queue,
        reap: asked.reap_settings(),
        processes: Capacity { slots, cpu_millis: Some(cpu), memory },
        pods: pods.as_ref().map(|pods| pods.settings.clone()),
        robots: robots.as_ref().map(|robots| robots.settings.clone()),
        ahead: Ahead::Measured,
        only_since: wanted.only_since,
        base_env: reach.env(&wanted.base_env),
        url: reach.url,
        work_root: attempts.display().to_string(),
        kill_timeout: asked.kill_timeout.as_std(),
        mint: Mint::new(mint),
    };
    let mut live: Vec<Arc<dyn Logs>> = vec![Arc::new(runtime.logs())];
    live.extend(pods.as_ref().map(PodPart::logs));
    live.extend(robots.as_ref().map(RobotPart::logs));
    let logs = AllLogs::new(live, KeptLogs::new(blobs.clone()));
    let telemetry = parts.telemetry.clone();
    let processes: Arc<dyn Runtime> = Arc::new(runtime);
    let (pods, of_pods) = pods.map(PodPart::runtime).unzip();
    let (of_robots, robot_facts) = robots.as_mut().map(RobotPart::runtime).unzip();
    let facts = join_facts([Some(facts), of_pods, robot_facts.flatten()]);
    let runtime: Arc<dyn Runtime> = Arc::new(Runtimes::new(processes, pods, of_robots));
    let (tracer, sending) = wanted.traces.start(&telemetry);
    let outside = Outside { store, runtime, blobs, clock, telemetry, tracer };
    let keeper = Keeper::new(outside.runtime.clone(), outside.blobs.clone());
    let engine = Engine::new(settings, outside.clone(), keeper.spawn()?)?;
    let (explainer, questions) = Explainer::new();
    let parts = Parts { logs: Some(Arc::new(logs)), explain: Some(Arc::new(explainer)), ..parts };
    Ok((ReadyEngine { engine, outside, facts, questions, robots, sending }, parts))
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

async fn listen(asked: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(asked).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "{asked} is in use by another program; choose another address with --listen, for example \
             --listen 127.0.0.1:0"
        ),
        _ => anyhow::anyhow!("cannot listen on {asked}: {error}; choose an address with --listen HOST:PORT"),
    })?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// TLS and plain HTTP on this address, and the authority clients have to trust.
fn choose_listening(
    data: &DataDir,
    tls: Option<&UpArgs>,
    address: SocketAddr,
    behind: Option<&Behind>,
) -> anyhow::Result<(Listening, Option<String>)> {
    let Some(args) = tls else { return Ok((Listening { tls: None, plain: true }, None)) };
    let speak = |cert: &Path, key: &Path| -> anyhow::Result<Option<Arc<Tls>>> {
        let tls = Tls::new(certs::load(cert, key)?)?;
        Ok(Some(Arc::new(match behind {
            Some(behind) => tls.behind(behind.proxy()),
            None => tls,
        })))
    };
    let loopback = address.ip().is_loopback();
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let tls = speak(cert, key)?;
        let trust = fs::read_to_string(cert)?;
        return Ok((Listening { tls, plain: loopback || args.insecure_http }, Some(trust)));
    }
    if !loopback && args.insecure_http {
        tracing::warn!(%address, "plain HTTP: everybody on the network can read the tokens");
        return Ok((Listening { tls: None, plain: true }, None));
    }
    if !loopback && !args.tls_generate {
        bail!(
            "{address} can be reached from other machines, which needs TLS: give --tls-generate, or --tls-cert and \
             --tls-key, or --insecure-http if you know what you do"
        );
    }
    let (names, addresses) = args.certificate_names(address.ip());
    let identity = data.identity(&names, &addresses)?;
    let tls = speak(&identity.cert, &identity.key)?;
    let authority = fs::read_to_string(identity.ca)?;
    if let Some(behind) = behind {
        behind.tell_authority(&authority);
    }
    Ok((Listening { tls, plain: loopback }, Some(authority)))
}

fn open_store(data: &DataDir, limits: &LimitArgs, telemetry: &Telemetry) -> anyhow::Result<Store> {
    let log = MeasuredLog::new(SqliteLog::open(&data.database())?, telemetry.clone());
    let history = History {
        max_changes: limits.history_changes,
        max_age: limits.history_age.as_std(),
        ..History::default()
    };
    let relay = relay_settings(limits);
    let hold = Some((relay::START_HOLD, relay.hold(Revision::ZERO)));
    let store = Store::open_holding(log, history, SystemClock, hold)?;
    relay::hold_for_sinks(&store, &relay);
    Ok(store)
}

/// How the relay works. Whoever has the store open has the database locked: no other holder of leases can be alive, so
/// they are all the same one.
fn relay_settings(limits: &LimitArgs) -> relay::Settings {
    relay::Settings { max_held_changes: limits.relay_backlog, ..relay::Settings::default() }
}

fn settings(limits: &LimitArgs) -> Settings {
    Settings {
        max_body: limits.max_body,
        max_file: limits.max_file,
        max_watches: limits.max_watches,
        requests_per_second: limits.max_requests,
        bookmark_every: limits.bookmark_interval.as_std(),
        log_suffix: limits.log_suffix.clone(),
        ..Settings::default()
    }
}

/// Makes the admin token on the first start, and writes a kubeconfig for this address.
async fn write_access(data: &DataDir, api: &Api, url: &str, ca: Option<&str>) -> anyhow::Result<String> {
    let path = data.admin_token();
    let kept = fs::read_to_string(&path).ok().map(|secret| secret.trim().to_owned());
    let valid = kept.filter(|secret| api.tokens().authenticate(secret, &SystemClock).is_some());
    let secret = if let Some(secret) = valid {
        secret
    } else {
        // The file was lost: the old secret cannot be recovered, so it is replaced.
        if api.tokens().exists(ADMIN) {
            api.tokens().revoke(ADMIN).await?;
        }
        let secret = api.tokens().create(ADMIN, Role::Admin, None, SystemClock.now()).await?;
        rewrite_private(&path, &format!("{secret}\n"))?;
        secret
    };
    rewrite_private(&data.kubeconfig(), &kubeconfig_text(url, ca, ADMIN, &secret))?;
    Ok(secret)
}
