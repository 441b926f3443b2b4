//! What a server says about its pods.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of all pods of a server.
#[derive(Debug, Clone)]
pub struct PodSettings {
    /// Tells the pods of this server from those of others in the same cluster; a label value.
    pub server: String,
    /// Where all pods are made; the namespace of their task if nothing is said.
    pub namespace: Option<String>,
    /// Service account of pods that name none.
    pub service_account: Option<String>,
    /// User that containers run as, unless overridden.
    pub run_as_user: Option<i64>,
    /// A claim that is mounted as the cache; without one, the cache ends with the pod.
    pub cache_claim: Option<String>,
    /// When images are pulled: `Always`, `IfNotPresent` or `Never`; the cluster decides if nothing is said.
    pub image_pull_policy: Option<String>,
    /// Certificate (PEM) of the authority that pods trust when they talk to the server.
    pub authority: Option<String>,
    /// Directory of what is kept of attempts on this machine.
    pub root: PathBuf,
    /// How much of each log is kept, the newest part.
    pub log_max_bytes: u64,
    /// How long sidecars may go on after the leading container ended, besides the time they have to end.
    pub zombie_after: Duration,
    /// How long a pod that was told to end may take, besides the time it has to end.
    pub stuck_after: Duration,
}

impl PodSettings {
    /// The settings of a server that was told nothing.
    pub fn new(server: &str, root: PathBuf) -> Self {
        Self {
            server: server.to_owned(),
            namespace: None,
            service_account: None,
            run_as_user: None,
            cache_claim: None,
            image_pull_policy: None,
            authority: None,
            root,
            log_max_bytes: 16 << 20,
            zombie_after: Duration::from_mins(1),
            stuck_after: Duration::from_mins(1),
        }
    }
}
