//! `cargo xtask sim`: plays seeds of the simulation in release mode, many or one.
//!
//! The program that plays belongs to package `muster-sim`, binary `sim`; it knows its flags.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::{run, workspace};

pub fn command(arguments: &[String]) -> Result<ExitCode> {
    let workspace = workspace::load()?;
    let mut sim = run::cargo(&workspace.root);
    sim.args(["run", "--release", "--quiet", "-p", "muster-sim", "--bin", "sim", "--"]).args(arguments);
    let status = sim.stdin(Stdio::null()).status().context("cannot start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
