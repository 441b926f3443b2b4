//! `cargo xtask soak`: the release binaries with users, robots and faults for a while, and a judge over what happened.
//!
//! The program that does it belongs to package `muster-e2e`, binary `soak`; it knows its flags. The server is built alone, with
//! exactly the features it ships with, and so is the agent.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::{run, setup, workspace};

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    let workspace = workspace::load()?;
    let toolbox = setup::prepare_soak()?;
    toolbox.print_missing();
    println!("==> building the release binaries");
    for package in ["muster", "muster-agent"] {
        run::openly(run::cargo(&workspace.root).args(["build", "--release", "-p", package]))?;
    }
    let build = ["build", "--release", "-p", "muster-e2e", "--bin", "soak"];
    run::openly(run::cargo(&workspace.root).args(build))?;
    // Not through cargo, which would stand between the program and a signal.
    let mut soak = std::process::Command::new(workspace.target_dir.join("release/soak"));
    soak.args(arguments).env("MUSTER_BIN", workspace.target_dir.join("release/muster"));
    toolbox.give_to(&mut soak);
    let status = soak.stdin(Stdio::null()).status().context("cannot start the soak")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
