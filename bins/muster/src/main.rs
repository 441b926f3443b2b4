//! Muster: the control plane for work that ends. This is the only place where the parts are put together.

mod adapter_env;
mod behind;
mod cli;
mod commands;
mod data_dir;
mod files_choice;
mod hands;
mod identity;
mod job_controller;
mod leading;
mod machine;
mod manifests;
mod output;
mod pods;
mod relay_env;
mod respond;
mod robots;
mod server;
mod server_archive;
mod store_choice;
mod up;
mod usage;
mod work;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;
use muster_runtime_process::Arguments;

use crate::cli::Cli;
use crate::output::streams;
use crate::usage::UsageError;

/// Many small, short-lived allocations from several threads: the system allocator took a quarter of the time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let error = match run() {
        Ok(code) => return code,
        Err(error) => error,
    };
    if streams::is_closed(&error) {
        return ExitCode::SUCCESS;
    }
    if let Some(usage) = error.downcast_ref::<UsageError>() {
        usage.exit();
    }
    streams::note(format!("error: {error:#}"));
    ExitCode::FAILURE
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::of_this_process()?;
    let mut cli = Cli::parse_from(arguments.all());
    if let Err(error) = arguments.hide(cli.command.secret_flags()) {
        streams::note(format!("secrets among the arguments stay visible in the list of processes: {error}"));
    }
    cli.command.read_secret_files()?;
    commands::carry_out(&cli.globals, cli.command)
}
