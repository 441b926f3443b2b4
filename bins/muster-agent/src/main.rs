//! The robot's side: joins a fleet, says that it is alive, runs the attempts it is given, and reports.
//!
//! It decides nothing. Programs are run by the same executor as on a server, in a process of their own. That process goes on when the
//! agent is killed, and the next agent takes it over: what runs is followed again, what ended is reported as it ended, and of what is
//! gone it says that it is lost, and the server's policy decides. An agent that is told to end (SIGTERM, SIGINT) ends what it runs.

mod agent;
mod args;
mod artifacts;
mod device;
mod identity;
mod private;
mod records;
mod sent_places;
mod tails;
mod uploads;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use muster_runtime_process::Arguments;
use tracing_subscriber::EnvFilter;

use crate::args::{Args, Command, SECRET_FLAGS};

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::of_this_process()?;
    let mut args = Args::parse_from(arguments.all());
    if let Some(Command::Shepherd) = args.command {
        return Ok(muster_runtime_process::shepherd_main());
    }
    let hidden = arguments.hide(&SECRET_FLAGS);
    let filter = EnvFilter::try_new(&args.log)?;
    // When nobody reads the log, a complaint about that would end the agent.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .init();
    if let Err(error) = hidden {
        tracing::warn!(%error, "secrets among the arguments stay visible in the list of processes");
    }
    args.read_files()?;
    // An error says that somebody did it before.
    drop(rustls::crypto::ring::default_provider().install_default());
    // One thread is enough: all it does is wait.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(agent::run(args))?;
    Ok(ExitCode::SUCCESS)
}
