//! The server, put together: store, API, and what is done besides. `up` and `run` use it, each in its own way.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use muster_apiserver::access::Role;
use muster_apiserver::api::{Api, Settings};
use muster_apiserver::attempt_tokens::AttemptTokens;
use muster_apiserver::kinds;
use muster_apiserver::parts::Parts;
use muster_apiserver::serve::{Listening, serve};
use muster_apiserver::shutdown::Shutdown;
use muster_apiserver::tls::Tls;
use muster_kube_jobs::ClusterJobs;
use muster_ports::clock::{Clock, SystemClock};
use muster_ports::explain::Explain;
use muster_ports::kube_jobs::KubeJobs;
use muster_ports::logs::KeptLogs;
use muster_ports::pages::Pages;
use muster_ports::store::{LogError, Standing, Store};
use muster_ports::telemetry::Telemetry;
use muster_runtime_kube::ConnectError;
use muster_types::Millis;
use muster_web::console::Console;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::behind::Behind;
use crate::cli::{LimitArgs, PodArgs, QueueArgs, ResourceArgs, RobotArgs, StoreArgs, TraceArgs, UpArgs};
use crate::data_dir::{DataDir, kubeconfig_text, random_word, rewrite_private, server_id, server_url};
use crate::files_choice;
use crate::hands::Hands;
use crate::identity::{Generated, Given, Source};
use crate::leading::Replica;
use crate::relay_env::RelayEnv;
use crate::robots::Ears;
use crate::store_choice;
use crate::work::{Reach, Work, Working};

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
    /// Where everything is kept.
    pub store: &'a StoreArgs,
    /// Limits of the API.
    pub limits: &'a LimitArgs,
    /// Whether it runs tasks.
    pub engine: Option<EngineOptions>,
    /// Whether it hears robots at a broker of somebody else's. At its own it does where it runs tasks.
    pub bridge: Option<&'a RobotArgs>,
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
#[derive(Debug, Clone)]
pub struct EngineOptions {
    pub queue: QueueArgs,
    pub base_env: Vec<(String, String)>,
    pub only_since: Option<Millis>,
    pub pods: Option<PodArgs>,
    pub robots: Option<RobotArgs>,
    pub resources: ResourceArgs,
    pub traces: TraceArgs,
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
    pub fn with_robots(self, robots: Option<&RobotArgs>) -> Self {
        Self { robots: robots.cloned(), ..self }
    }

    /// Where traces are sent.
    #[must_use]
    pub fn traces(self, traces: TraceArgs) -> Self {
        Self { traces, ..self }
    }

    /// How managed resources are seen to.
    #[must_use]
    pub fn resources(self, resources: ResourceArgs) -> Self {
        Self { resources, ..self }
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
    doing: Doing,
    /// What hears robots. It ends with this.
    _hearing: JoinSet<()>,
}

/// Who does what one server does alone.
enum Doing {
    /// This one, all the time.
    Alone(Working),
    /// Those of several that hold the leases of the roles.
    Elected(JoinHandle<()>),
}

impl Server {
    /// Starts it. When this returns, it can be asked.
    pub async fn start(data: &DataDir, options: &Options<'_>) -> anyhow::Result<Self> {
        let (listener, address) = listen(options.listen).await?;
        let behind = Behind::prepare(options.tls).await?;
        let telemetry = Telemetry::default();
        // Before the certificate is renewed: another server may be at work in this directory.
        let (store, identity) = store_choice::open(data, options.store, options.limits, &telemetry)?;
        let (listening, proof) = choose_listening(data, options.tls, address, behind.as_ref())?;
        let ca = proof.as_ref().map(|proof| proof.trust.clone());
        let shutdown = Shutdown::default();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let registry = kinds::registry().with_types_of(&store);
        let scheme = if listening.tls.is_some() { "https" } else { "http" };
        let url = server_url(scheme, address);
        // A certificate that nobody knows makes browsers warn; on this machine they need none.
        let seen = if listening.plain { server_url("http", address) } else { url.clone() };
        let console = options.web.then(|| format!("{seen}/ui/"));
        let blobs = files_choice::open(data, options.store).await?;
        let tokens = AttemptTokens::open(&store).await?;
        let hands = Arc::new(Hands::new(KeptLogs::new(blobs.clone())));
        let parts = Parts {
            blobs: Some(blobs.clone()),
            attempt_tokens: Some(tokens.clone()),
            logs: Some(hands.clone()),
            explain: options.engine.as_ref().map(|_| hands.clone() as Arc<dyn Explain>),
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
        let replica = server_id(data.path())?;
        let work = Work {
            data: data.clone(),
            up: options.tls.cloned(),
            tls: listening.tls.clone(),
            engine: options.engine.clone(),
            relay: options.relay.clone(),
            limits: options.limits.clone(),
            reach: Reach::of(data, &listening, address, ca.as_deref())?,
            clock: clock.clone(),
            blobs,
            tokens,
            telemetry: parts.telemetry.clone(),
            registry: registry.clone(),
            shutdown: shutdown.clone(),
            kube_jobs,
            hands,
            pods_of: identity.unwrap_or_else(|| replica.clone()),
        };
        let settings = settings(options.limits);
        let admin_name = if store.is_shared() { format!("{ADMIN}-{replica}") } else { ADMIN.to_owned() };
        let api = Api::new(registry, store.clone(), clock.clone(), settings, shutdown.clone(), parts);
        let admin = write_access(data, &api, &admin_name, &url, ca.as_deref()).await?;
        let mut robots = None;
        let mut hearing = JoinSet::new();
        if let Some(Proof { source, tls, trust }) = proof {
            let (data, url, admin) = (data.clone(), url.clone(), admin.clone());
            let authority = work.reach.authority.clone();
            hearing.spawn(async move {
                let trusted = |ca: &str| {
                    let kubeconfig = kubeconfig_text(&url, Some(ca), &admin_name, &admin);
                    publish_trust(&data, &kubeconfig, authority.as_deref(), ca);
                };
                source.follow(&tls, trust, trusted).await;
            });
        }
        if let Some(args) = options.bridge
            && let Some(broker) = &args.mqtt_url
        {
            let (store, clock, telemetry) = (store.clone(), clock.clone(), work.telemetry.clone());
            let (reception, url) = Ears { data, args, store, clock, telemetry }.at(broker)?;
            hearing.spawn(reception.run());
            robots = Some(url);
        }
        let doing = if store.is_shared() {
            let holder = format!("{url} {}", random_word()?);
            let (store, lease) = (store.clone(), options.store.lease.as_std());
            Doing::Elected(tokio::spawn(Replica { store, clock, name: holder, lease }.serve(work)))
        } else {
            let working = work.start(&work.singletons(), &store, None).await?;
            robots = working.robots.clone().or(robots);
            Doing::Alone(working)
        };
        let serving = tokio::spawn(serve(api, listener, listening, shutdown.clone()));
        Ok(Self { url, console, admin, store, robots, shutdown, serving, doing, _hearing: hearing })
    }

    /// What asks it to stop.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Waits until it was asked to stop, and lets open requests end. A log that will not work again ends it too, if other
    /// servers have it: they go on, and this one begins anew.
    pub async fn wait(self) -> anyhow::Result<()> {
        let (mut standing, shared) = (self.store.standing(), self.store.is_shared());
        let asked = self.shutdown.clone();
        let broken = tokio::spawn(async move {
            let broken = |standing: &Standing| shared && matches!(standing, Standing::Broken(_));
            let ended = standing.wait_for(broken).await.map(|standing| standing.clone());
            asked.request();
            ended
        });
        self.serving.await.context("the API server ended badly")?;
        self.shutdown.request();
        match self.doing {
            Doing::Alone(working) => working.stop(true).await,
            Doing::Elected(leading) => leading.await.context("what leads ended badly")?,
        }
        let why = if broken.is_finished() { broken.await.ok().and_then(Result::ok) } else { None };
        self.store.close();
        if let Some(Standing::Broken(why)) = why {
            bail!("{why}");
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// True if a server could not start because another one holds the directory.
pub fn is_in_use(error: &anyhow::Error) -> bool {
    let held = |link: &(dyn std::error::Error + 'static)| {
        matches!(link.downcast_ref::<LogError>(), Some(LogError::InUse(_)))
    };
    error.chain().any(held)
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

/// What a server that speaks TLS proves itself with.
struct Proof {
    source: Source,
    tls: Arc<Tls>,
    /// What clients have to trust.
    trust: String,
}

/// TLS and plain HTTP on this address, and the certificate there.
fn choose_listening(
    data: &DataDir,
    tls: Option<&UpArgs>,
    address: SocketAddr,
    behind: Option<&Behind>,
) -> anyhow::Result<(Listening, Option<Proof>)> {
    let Some(args) = tls else { return Ok((Listening { tls: None, plain: true }, None)) };
    let speak = |mut source: Source, plain: bool| -> anyhow::Result<(Listening, Option<Proof>)> {
        let identity = source.open()?;
        let tls = Tls::new(identity.certified)?;
        let tls = Arc::new(match behind {
            Some(behind) => tls.behind(behind.proxy()),
            None => tls,
        });
        let proof = Proof { source, tls: tls.clone(), trust: identity.trust };
        Ok((Listening { tls: Some(tls), plain }, Some(proof)))
    };
    let loopback = address.ip().is_loopback();
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        return speak(Source::Given(Given::new(cert, key)), loopback || args.insecure_http);
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
    let (listening, proof) = speak(Source::Generated(Generated::new(data, names, addresses)), loopback)?;
    if let (Some(behind), Some(proof)) = (behind, &proof) {
        behind.tell_authority(&proof.trust);
    }
    Ok((listening, proof))
}

/// Writes where clients and attempts of this machine look what they have to trust from now on. Others keep what they copied.
fn publish_trust(data: &DataDir, kubeconfig: &str, of_attempts: Option<&Path>, ca: &str) {
    let path = data.kubeconfig();
    let written = rewrite_private(&path, kubeconfig)
        .and_then(|()| of_attempts.map_or(Ok(()), |path| rewrite_private(path, ca)));
    match written {
        Ok(()) => tracing::info!(
            "clients have to trust another certificate, and {} is written again; give it to those who copied it",
            path.display()
        ),
        Err(error) => tracing::warn!("clients do not learn which certificate to trust: {error:#}"),
    }
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
async fn write_access(
    data: &DataDir,
    api: &Api,
    name: &str,
    url: &str,
    ca: Option<&str>,
) -> anyhow::Result<String> {
    let path = data.admin_token();
    let kept = fs::read_to_string(&path).ok().map(|secret| secret.trim().to_owned());
    let valid = kept.filter(|secret| api.tokens().authenticate(secret, &SystemClock).is_some());
    let secret = if let Some(secret) = valid {
        secret
    } else {
        // The file was lost: the old secret cannot be recovered, so it is replaced.
        if api.tokens().exists(name) {
            api.tokens().revoke(name).await?;
        }
        let secret = api.tokens().create(name, Role::Admin, None, SystemClock.now()).await?;
        rewrite_private(&path, &format!("{secret}\n"))?;
        secret
    };
    rewrite_private(&data.kubeconfig(), &kubeconfig_text(url, ca, name, &secret))?;
    Ok(secret)
}
