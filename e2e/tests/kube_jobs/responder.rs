//! A `muster serve --roles responder` of its own, which ends with the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use muster_e2e::cluster::POD;
use muster_e2e::wait::wait_for;
use tempfile::TempDir;

/// A responder.
pub struct Responder {
    process: Child,
    log: PathBuf,
    _dir: TempDir,
}

impl Responder {
    /// Starts one that keeps things on the server of a kubeconfig.
    pub fn start(kubeconfig: &Path, env: &[(&'static str, String)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let log = dir.path().join("responder.log");
        let program = std::env::var_os("MUSTER_BIN").expect("`cargo xtask test` sets MUSTER_BIN");
        let process = Command::new(program)
            .args(["serve", "--roles", "responder", "--kubeconfig"])
            .arg(kubeconfig)
            .envs(env.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log can be made"))
            .spawn()
            .expect("a responder can be started");
        Self { process, log, _dir: dir }
    }

    /// Waits until it said something.
    pub fn wait_for_line(&self, part: &str) {
        let said = || std::fs::read_to_string(&self.log).unwrap_or_default();
        wait_for(&format!("{part} in {}", said()), POD, || said().contains(part));
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
