//! `muster up`: the whole product in one process.

use std::process::ExitCode;

use anyhow::Context as _;
use muster_apiserver::shutdown::Shutdown;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cli::{Globals, ServerRole, UpArgs};
use crate::data_dir::DataDir;
use crate::output::streams;
use crate::server::{EngineOptions, Options, Server};

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
    let runs_tasks = args.roles.contains(&ServerRole::Engine);
    let engine = runs_tasks.then(|| {
        EngineOptions::new(args.queue.clone(), EngineOptions::clean_env())
            .with_pods(&args.pods)
            .resources(args.resources.clone())
    });
    let relay = args.roles.contains(&ServerRole::Relay);
    let web = args.roles.contains(&ServerRole::Web);
    let options = Options { listen: &args.listen, tls: Some(args), limits: &args.limits, engine, relay, web };
    let server = Server::start(data, &options).await?;
    stop_on_signals(server.shutdown())?;
    announce(data, &server);
    server.wait().await
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
    let text = format!(
        "Muster is ready.\n\n  API         {url}\n{console}  kubeconfig  {kubeconfig}\n  data        {path}\n\n\
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
