//! `muster up`: the whole product in one process.

use std::fs;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use muster_apiserver::access::Role;
use muster_apiserver::api::{Api, Settings};
use muster_apiserver::attempt_tokens::AttemptTokens;
use muster_apiserver::parts::Parts;
use muster_apiserver::serve::{Listening, serve};
use muster_apiserver::shutdown::Shutdown;
use muster_apiserver::{certs, garbage, kinds};
use muster_blobs::LocalBlobs;
use muster_engine::engine::{self, Engine};
use muster_ports::clock::{Clock, SystemClock};
use muster_ports::store::{History, Store};
use muster_runtime_process::ProcessRuntime;
use muster_store_sql::SqliteLog;
use muster_tasks::capacity::Capacity;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;

use crate::cli::{Globals, ServerRole, UpArgs};
use crate::data_dir::{DataDir, kubeconfig_text, server_url, write_private};
use crate::output::streams;

/// Name of the token that the first start makes.
const ADMIN: &str = "admin";

/// Runs the server until it is told to stop.
pub fn run(globals: &Globals, args: &UpArgs) -> anyhow::Result<ExitCode> {
    let wanted = globals.log.as_deref().unwrap_or("info");
    let filter = EnvFilter::try_new(wanted)
        .with_context(|| format!("--log {wanted} is not a log filter; try --log debug"))?;
    streams::start_logging(filter);
    let data = DataDir::choose(globals.data.as_deref())?;
    data.create()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(up(&data, args))?;
    Ok(ExitCode::SUCCESS)
}

async fn up(data: &DataDir, args: &UpArgs) -> anyhow::Result<()> {
    let (listener, address) = listen(&args.listen).await?;
    let (listening, ca) = choose_listening(data, args, address)?;
    let store = open_store(data, args)?;
    let shutdown = Shutdown::default();
    stop_on_signals(shutdown.clone())?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let registry = kinds::registry();
    let parts = parts(data, &store).await?;
    let api =
        Api::new(registry.clone(), store.clone(), clock.clone(), settings(args), shutdown.clone(), parts);
    let scheme = if listening.tls.is_some() { "https" } else { "http" };
    let url = server_url(scheme, address);
    write_access(data, &api, &url, ca.as_deref()).await?;
    let garbage = tokio::spawn(garbage::collect(store.clone(), registry, clock.clone(), shutdown.clone()));
    let engine = start_engine(data, args, &store, &clock, &url)?;
    announce(data, &url);
    serve(api, listener, listening, shutdown.clone()).await;
    shutdown.request();
    garbage.await.context("the garbage collector ended badly")?;
    if let Some(engine) = engine {
        // Its attempts end with it; their tasks are tried again by the next server.
        engine.abort();
        drop(engine.await);
    }
    store.close();
    tracing::info!("stopped");
    Ok(())
}

/// What the API has besides the store.
async fn parts(data: &DataDir, store: &Store) -> anyhow::Result<Parts> {
    let files = data.path().join("blobs");
    let blobs = LocalBlobs::open(&files).with_context(|| format!("cannot use {}", files.display()))?;
    let attempt_tokens = AttemptTokens::open(store).await?;
    Ok(Parts { blobs: Some(Arc::new(blobs)), attempt_tokens: Some(attempt_tokens), ..Parts::default() })
}

/// Starts what runs tasks, if this server does.
fn start_engine(
    data: &DataDir,
    args: &UpArgs,
    store: &Store,
    clock: &Arc<dyn Clock>,
    url: &str,
) -> anyhow::Result<Option<JoinHandle<()>>> {
    if !args.roles.contains(&ServerRole::Engine) {
        return Ok(None);
    }
    let attempts = data.path().join("attempts");
    fs::create_dir_all(attempts.join("cache"))
        .with_context(|| format!("cannot use {}", attempts.display()))?;
    let settings = muster_runtime_process::Settings::this_program(&attempts, &["shepherd"]);
    let (runtime, facts) = ProcessRuntime::new(settings).context("cannot run processes")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = args.slots.unwrap_or_else(|| u32::try_from(cores).unwrap_or(1));
    let settings = engine::Settings {
        queue: muster_tasks::settings::Settings::default(),
        processes: Capacity { slots, cpu_millis: None, memory: None },
        url: url.to_owned(),
        work_root: attempts.display().to_string(),
        base_env: ["PATH", "HOME", "LANG", "TZ"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
            .collect(),
        kill_timeout: Duration::from_secs(10),
    };
    let engine = Engine::new(settings, store.clone(), Arc::new(runtime), clock.clone())?;
    Ok(Some(tokio::spawn(engine::run(engine, facts))))
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
    args: &UpArgs,
    address: SocketAddr,
) -> anyhow::Result<(Listening, Option<String>)> {
    let loopback = address.ip().is_loopback();
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let tls = certs::load(cert, key)?;
        let trust = fs::read_to_string(cert)?;
        return Ok((Listening { tls: Some(tls), plain: loopback || args.insecure_http }, Some(trust)));
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
    let tls = certs::load(&identity.cert, &identity.key)?;
    Ok((Listening { tls: Some(tls), plain: loopback }, Some(fs::read_to_string(identity.ca)?)))
}

fn open_store(data: &DataDir, args: &UpArgs) -> anyhow::Result<Store> {
    let log = SqliteLog::open(&data.database())?;
    let history = History {
        max_changes: args.limits.history_changes,
        max_age: args.limits.history_age.as_std(),
        ..History::default()
    };
    Ok(Store::open(log, history, SystemClock)?)
}

fn settings(args: &UpArgs) -> Settings {
    Settings {
        max_body: args.limits.max_body,
        max_watches: args.limits.max_watches,
        requests_per_second: args.limits.max_requests,
        bookmark_every: args.limits.bookmark_interval.as_std(),
        ..Settings::default()
    }
}

/// Makes the admin token on the first start, and writes a kubeconfig for this address.
async fn write_access(data: &DataDir, api: &Api, url: &str, ca: Option<&str>) -> anyhow::Result<()> {
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
        write_private(&path, &format!("{secret}\n"))?;
        secret
    };
    write_private(&data.kubeconfig(), &kubeconfig_text(url, ca, ADMIN, &secret))
}

/// Says where the server is and what to do next. Nobody may be reading, which is no reason to stop.
fn announce(data: &DataDir, url: &str) {
    let kubeconfig = data.kubeconfig().display().to_string();
    let path = data.path().display();
    let is_default = DataDir::choose(None).is_ok_and(|default| default.path() == data.path());
    let muster = if is_default { "muster".to_owned() } else { format!("muster --data {path}") };
    let text = format!(
        "Muster is ready.\n\n  API         {url}\n  kubeconfig  {kubeconfig}\n  data        {path}\n\n\
         Try in another terminal:\n  {muster} get tasks\n  {muster} apply --help\n\n\
         Or with kubectl:\n  export KUBECONFIG={kubeconfig}\n  kubectl api-resources --api-group=muster.dev\n  \
         kubectl explain task.spec\n\nStop with Ctrl-C."
    );
    if let Err(error) = streams::report(text) {
        tracing::warn!(%error, "cannot print where the server is");
    }
}

fn stop_on_signals(shutdown: Shutdown) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        tracing::info!("stopping; once more ends at once");
        shutdown.request();
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        std::process::exit(130);
    });
    Ok(())
}
