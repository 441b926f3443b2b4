//! How an executor works: where it keeps things, and the limits of what it keeps.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::when_deserted::WhenDeserted;

/// The settings of an executor. They travel to a shepherd as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Holds one directory per attempt. Absolute; made when it is needed.
    pub work_root: PathBuf,
    /// How many attempts run at a time; more wait for their turn. Without it there is no limit.
    pub max_running: Option<usize>,
    /// How much of a container's output is kept, the newest part: in two files of half this size.
    pub log_max_bytes: u64,
    /// Whether logs are forced to the disk before an end is reported. Without it they are complete for every reader and
    /// survive the death of every process, but not a power cut.
    pub sync_logs: bool,
    /// How long sidecars have, at most, to end after the leading container did.
    pub leftover_grace: Duration,
    /// How long output is waited for after a program ended, when something that escaped from its group holds on to it.
    pub drain_timeout: Duration,
    /// Where programs are looked for when an environment has no `PATH`.
    pub default_path: String,
    /// Where docker and podman are looked for.
    pub driver_path: String,
    /// What becomes of attempts when whoever asked for them is gone. That they go on has to be asked for.
    pub when_deserted: WhenDeserted,
    /// The process is the executor's alone. It then takes in orphans of its programs and ends them, and moves itself in and
    /// out of control groups to enforce limits; neither is safe where something else starts processes too.
    pub owns_process: bool,
}

impl Settings {
    /// The defaults, with one place for all attempts, and drivers where this process finds programs.
    pub fn new(work_root: impl Into<PathBuf>) -> Self {
        let default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        Self {
            work_root: work_root.into(),
            max_running: None,
            log_max_bytes: 16 << 20,
            sync_logs: false,
            leftover_grace: Duration::from_secs(10),
            drain_timeout: Duration::from_millis(200),
            default_path: default_path.into(),
            driver_path: std::env::var("PATH").unwrap_or_else(|_| default_path.into()),
            when_deserted: WhenDeserted::End,
            owns_process: false,
        }
    }
}
