//! The role responder, put together: a queue, a cluster, and a server that keeps jobs.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use muster_client::Client;
use muster_engine::responder::{self, Outside, Settings};
use muster_kube_jobs::ClusterJobs;
use muster_relay_sinks::amqp::AmqpInboxes;

use crate::relay_env::RelayEnv;
use crate::server_archive::ServerArchive;

/// Responds for ever. An error says what to give it.
pub async fn prepare(
    env: &RelayEnv,
    kubeconfig: Option<PathBuf>,
    client: Client,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let (address, exchange, queue) = env.inbox()?;
    let inboxes = AmqpInboxes::new(address, exchange, queue);
    let cluster = muster_runtime_kube::connect(kubeconfig.as_deref()).await;
    let cluster = cluster.context("the role responder deletes jobs of a cluster")?;
    let outside = Outside {
        inboxes: Arc::new(inboxes),
        jobs: Arc::new(ClusterJobs::new(cluster, env.namespace.clone())),
        archive: Arc::new(ServerArchive(client)),
    };
    Ok(responder::run(outside, Settings { keep_jobs: env.keep_jobs }))
}
