//! Muster: the control plane for work that ends. This is the only place where the parts are put together.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks on its streams")]

mod cli;
mod commands;
mod data_dir;
mod up;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use crate::cli::{Cli, Command};

/// Many small, short-lived allocations from several threads: the system allocator took a quarter of the time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Up(args) => up::run(&cli.globals, &args),
        command => commands::run(&cli.globals, command),
    }
}
