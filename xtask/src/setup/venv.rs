//! Python environments of our own, filled with pinned wheels.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::debian;
use crate::run;

/// Makes an environment in `dir` and installs the requirements into it.
pub fn create(dir: &Path, requirements: &[&str]) -> Result<()> {
    ensure_python_can_make_environments()?;
    run::quietly(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
    let mut pip = Command::new(dir.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    pip.args(requirements);
    let what = format!("installing {}", requirements.join(" "));
    run::retry(&what, Duration::from_secs(2), || run::quietly(&mut pip)).map(drop)
}

/// Debian splits `ensurepip` from python3, so a machine with Python may still be unable to make an environment.
fn ensure_python_can_make_environments() -> Result<()> {
    let probe = || run::quietly(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    if probe().is_ok() {
        return Ok(());
    }
    debian::install_on_machine(&["python3", "python3-venv"])
        .context("python3 with its venv module is needed; install python3 and python3-venv")?;
    probe().map(drop)
}
