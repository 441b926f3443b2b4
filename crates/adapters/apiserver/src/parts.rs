//! What a server may have besides its store. One that lacks a part says so when it is asked for.

use std::sync::Arc;

use muster_ports::blobs::Blobs;
use muster_ports::explain::Explain;
use muster_ports::logs::Logs;
use muster_ports::pages::Pages;
use muster_ports::telemetry::Telemetry;

use crate::attempt_tokens::AttemptTokens;
use crate::cluster_users::ClusterUsers;

/// The optional parts of a server.
#[derive(Clone, Default)]
pub struct Parts {
    /// Where attachments and buckets are kept.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// What containers wrote.
    pub logs: Option<Arc<dyn Logs>>,
    /// Who knows why a task waits.
    pub explain: Option<Arc<dyn Explain>>,
    /// Numbers of other parts, shown with those of the server.
    pub telemetry: Telemetry,
    /// The tokens of attempts.
    pub attempt_tokens: Option<AttemptTokens>,
    /// The cluster whose users are known here.
    pub cluster: Option<ClusterUsers>,
    /// What people see in a browser.
    pub pages: Option<Arc<dyn Pages>>,
}
