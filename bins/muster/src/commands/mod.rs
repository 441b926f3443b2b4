//! The verbs that talk to a server.

use std::process::ExitCode;

use crate::cli::{Command, Globals};

/// Runs a verb other than `up`.
pub fn run(_globals: &Globals, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(_) => Ok(ExitCode::FAILURE),
    }
}
