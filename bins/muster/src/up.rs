//! `muster up`: the whole product in one process.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use muster_apiserver::shutdown::Shutdown;
use muster_client::Resource;
use muster_client::client::ApplyOptions;
use muster_types::event_sink::EventSinkSpec;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cli::{Globals, ServerRole, UpArgs};
use crate::commands::Session;
use crate::data_dir::DataDir;
use crate::output::streams;
use crate::relay_env::{self, RelayEnv};
use crate::respond;
use crate::server::{EngineOptions, Options, RelayOptions, Server};

/// Runs the server until it is told to stop.
pub fn run(globals: &Globals, args: &UpArgs) -> anyhow::Result<ExitCode> {
    // The broker would tell of every connection.
    let wanted = globals.log.as_deref().unwrap_or("info,mqtt5=error");
    let filter = EnvFilter::try_new(wanted)
        .with_context(|| format!("--log {wanted} is not a log filter; try --log debug"))?;
    streams::start_logging(filter, globals.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if args.roles.iter().all(|role| *role == ServerRole::Responder) {
        runtime.block_on(respond_alone(globals, args))?;
        return Ok(ExitCode::SUCCESS);
    }
    let data = DataDir::choose(globals.data.as_deref())?;
    data.create()?;
    runtime.block_on(up(globals, &data, args))?;
    Ok(ExitCode::SUCCESS)
}

/// Responds to messages, with another server to keep things, until it is told to stop.
async fn respond_alone(globals: &Globals, args: &UpArgs) -> anyhow::Result<()> {
    // An error says that somebody did it before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let env = RelayEnv::of_process()?;
    let session = Session::open(globals).await?;
    let responding = respond::prepare(&env, cluster_of(&env, args), session.client).await?;
    let shutdown = Shutdown::default();
    stop_on_signals(shutdown.clone())?;
    tokio::select! {
        () = responding => {}
        () = shutdown.requested() => {}
    }
    Ok(())
}

/// The kubeconfig of the cluster whose jobs are meant.
fn cluster_of(env: &RelayEnv, args: &UpArgs) -> Option<PathBuf> {
    args.pods.cluster_kubeconfig.clone().or_else(|| env.kubeconfig.clone())
}

/// Makes the sink that the environment describes, or makes it so again.
async fn make_sink(session: &Session, sink: &Value) -> anyhow::Result<()> {
    let resource = Resource::known::<EventSinkSpec>();
    let options = ApplyOptions { manager: "muster-environment".to_owned(), force: true, dry_run: false };
    session.client.apply(&resource, "default", relay_env::SINK, sink, &options).await?;
    Ok(())
}

async fn up(globals: &Globals, data: &DataDir, args: &UpArgs) -> anyhow::Result<()> {
    // An error says that somebody did it before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runs_tasks = args.roles.contains(&ServerRole::Engine);
    let responds = args.roles.contains(&ServerRole::Responder);
    // Variables of such common names mean something to a server that has nothing else to do.
    let env = if runs_tasks && !responds { RelayEnv::default() } else { RelayEnv::of_process()? };
    let engine = runs_tasks.then(|| {
        EngineOptions::new(args.queue.clone(), EngineOptions::clean_env())
            .with_pods(&args.pods)
            .with_robots(args.robots.of_engine(&args.roles))
            .resources(args.resources.clone())
            .traces(args.traces.clone())
    });
    let relay = args
        .roles
        .contains(&ServerRole::Relay)
        .then(|| RelayOptions { cluster_kubeconfig: cluster_of(&env, args), env: env.clone() });
    let web = args.roles.contains(&ServerRole::Web);
    let bridge = args.robots.of_bridge(&args.roles)?;
    let (store, limits) = (&args.store, &args.limits);
    let options =
        Options { listen: &args.listen, tls: Some(args), store, limits, engine, bridge, relay, web };
    let server = Server::start(data, &options).await?;
    stop_on_signals(server.shutdown())?;
    // Whoever runs tasks too has a broker for other things, perhaps.
    if let Some(sink) = env.sink().filter(|_| options.relay.is_some() && !runs_tasks) {
        make_sink(&Session::of_data(globals, data).await?, &sink).await?;
    }
    let responding = if responds {
        let client = Session::of_data(globals, data).await?.client;
        Some(tokio::spawn(respond::prepare(&env, cluster_of(&env, args), client).await?))
    } else {
        None
    };
    announce(data, &server);
    let ended = server.wait().await;
    if let Some(responding) = responding {
        responding.abort();
    }
    ended
}

/// Says where the server is and what to do next. Nobody may be reading, which is no reason to stop.
fn announce(data: &DataDir, server: &Server) {
    let kubeconfig = data.kubeconfig().display().to_string();
    let path = data.path().display();
    let is_default = DataDir::choose(None).is_ok_and(|default| default.path() == data.path());
    let muster = if is_default { "muster".to_owned() } else { format!("muster --data {path}") };
    let url = &server.url;
    let console = server.console.as_ref().map_or_else(String::new, |console| {
        format!("  console     {console} (sign in with the token in {})\n", data.admin_token().display())
    });
    let robots =
        server.robots.as_ref().map_or_else(String::new, |robots| format!("\n  robots      {robots}"));
    let text = format!(
        "Muster is ready.\n\n  API         {url}\n{console}  kubeconfig  {kubeconfig}\n  data        {path}{robots}\n\n\
         Try in another terminal:\n  {muster} submit --wait -- echo hello\n  {muster} get tasks\n\n\
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
