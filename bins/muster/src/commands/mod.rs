//! The verbs that talk to a server, one file each.

mod adapter;
mod apply;
mod attempt_env;
mod backup;
mod cancel;
mod completion;
mod delete;
mod describe;
mod document_arg;
mod explain;
mod following;
mod get;
mod kube_job_logs;
mod kubeconfig;
mod listing;
mod logs;
mod new_task;
mod outcome;
mod report;
mod retry;
mod retry_job;
mod robot;
mod run;
mod schedule;
mod session;
mod signals;
mod sink;
mod store;
mod submit;
mod targets;
mod task_names;
mod token;
mod top;
mod tracking;
mod version;
mod wait;
mod watch;
mod watch_work;
mod which_tasks;
mod work;
mod work_tree;

use std::process::ExitCode;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;

pub use session::Session;

use crate::cli::{Command, Globals};
use crate::output::streams;
use crate::up;

/// Runs a verb.
pub fn carry_out(globals: &Globals, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => return up::run(globals, &args),
        Command::Run(args) => return run::run(globals, &args),
        Command::Shepherd => return Ok(muster_runtime_process::shepherd_main()),
        _ => {}
    }
    start_logging(globals)?;
    // An error says that somebody did it before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Up(_) | Command::Run(_) | Command::Shepherd => Ok(ExitCode::FAILURE),
            Command::Submit(args) => submit::run(globals, &args).await,
            Command::Logs(args) => logs::run(globals, &args).await,
            Command::Wait(args) => wait::run(globals, &args).await,
            Command::Watch(args) => watch::run(globals, &args).await,
            Command::Top(args) => top::run(globals, &args).await,
            Command::Cancel(args) => cancel::run(globals, &args).await,
            Command::Retry(args) => retry::run(globals, &args).await,
            Command::Explain(args) => explain::run(globals, &args).await,
            Command::Report(args) => report::run(globals, &args).await,
            Command::Apply(args) => apply::run(globals, &args).await,
            Command::Get(args) => get::run(globals, &args).await,
            Command::Describe(args) => describe::run(globals, &args).await,
            Command::Delete(args) => delete::run(globals, &args).await,
            Command::Adapter(command) => adapter::run(globals, &command).await,
            Command::Schedule(command) => schedule::run(globals, &command).await,
            Command::Robot(command) => robot::run(globals, command).await,
            Command::Sink(command) => sink::run(globals, command).await,
            Command::Store(command) => store::run(&command),
            Command::Backup { file } => backup::back_up(globals, &file).await,
            Command::Restore { file } => backup::restore(globals, &file),
            Command::Kubeconfig(args) => kubeconfig::run(globals, &args),
            Command::Token(command) => token::run(globals, command).await,
            Command::Completion { shell } => completion::run(shell),
            Command::Version(args) => version::run(globals, &args).await,
        }
    })
}

/// Only on demand: what a verb has to say is its output.
pub fn start_logging(globals: &Globals) -> anyhow::Result<()> {
    let Some(wanted) = &globals.log else { return Ok(()) };
    let filter = EnvFilter::try_new(wanted)
        .with_context(|| format!("--log {wanted} is not a log filter; try --log debug"))?;
    streams::start_logging(filter, globals.log_format);
    Ok(())
}
