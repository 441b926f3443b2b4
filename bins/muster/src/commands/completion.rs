//! `muster completion`: scripts that complete the command line.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output::streams;

/// Prints the script of a shell.
pub fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "muster", &mut script);
    streams::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
