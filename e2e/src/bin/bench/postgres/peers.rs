//! Queues that keep their jobs in PostgreSQL, driven by small programs in their own languages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::script;
use crate::process::program;

const GRAPHILE_WORKER: &str = include_str!("graphile_worker.cjs");
const PROCRASTINATE: &str = include_str!("procrastinate_peer.py");

/// One of them.
pub enum Peer {
    /// Its modules.
    GraphileWorker(PathBuf),
    /// A Python that has it.
    Procrastinate(PathBuf),
}

/// Those that are there.
pub fn present() -> Vec<Peer> {
    let mut all = Vec::new();
    // DIR/node_modules/.bin/graphile-worker
    let modules =
        program("MUSTER_GRAPHILE_WORKER").and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    match modules {
        Some(modules) => all.push(Peer::GraphileWorker(modules)),
        None => eprintln!(
            "MISSING PEER Graphile Worker: MUSTER_GRAPHILE_WORKER is not set; `cargo xtask setup` says why"
        ),
    }
    match program("MUSTER_PROCRASTINATE") {
        Some(python) => all.push(Peer::Procrastinate(python)),
        None => eprintln!(
            "MISSING PEER procrastinate: MUSTER_PROCRASTINATE is not set; `cargo xtask setup` says why"
        ),
    }
    all
}

impl Peer {
    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::GraphileWorker(_) => "Graphile Worker",
            Self::Procrastinate(_) => "procrastinate",
        }
    }

    /// Jobs of so many bytes that are added one by one, per second.
    pub fn creates(&self, url: &str, clients: usize, count: usize, size: usize) -> anyhow::Result<f64> {
        self.rate(url, count, &["creates", &clients.to_string(), &count.to_string(), &size.to_string()])
    }

    /// Jobs that run `true`, added in bulk and run, per second.
    pub fn tasks(&self, url: &str, width: usize, count: usize) -> anyhow::Result<f64> {
        self.rate(url, count, &["tasks", &width.to_string(), &count.to_string()])
    }

    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    fn rate(&self, url: &str, count: usize, arguments: &[&str]) -> anyhow::Result<f64> {
        let dir = tempfile::tempdir()?;
        let mut command = self.command(dir.path(), url)?;
        let output = command.args(arguments).stdin(Stdio::null()).output().context("cannot start it")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let seconds = said.lines().find_map(|line| line.strip_prefix("took ")?.trim().parse::<f64>().ok());
        match seconds {
            Some(seconds) if output.status.success() => Ok(count as f64 / seconds),
            _ => bail!(
                "{} ended with {}: {said}{}",
                self.name(),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    fn command(&self, dir: &Path, url: &str) -> anyhow::Result<Command> {
        Ok(match self {
            Self::GraphileWorker(modules) => {
                let mut node = Command::new("node");
                node.arg(script(dir, "graphile_worker.cjs", GRAPHILE_WORKER)?).arg(url).arg(modules);
                node
            }
            Self::Procrastinate(python) => {
                let mut python = Command::new(python);
                python.arg(script(dir, "procrastinate_peer.py", PROCRASTINATE)?).arg(url);
                python
            }
        })
    }
}
