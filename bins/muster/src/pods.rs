//! The runtime of pods, put together: a client, settings, and where its facts go.

use std::fs;
use std::sync::Arc;

use anyhow::Context as _;
use muster_engine::settings::Pods;
use muster_ports::blobs::Blobs;
use muster_ports::logs::Logs;
use muster_ports::runtime::{Fact, Runtime};
use muster_runtime_kube::{KubeRuntime, PodSettings, connect};
use muster_tasks::capacity::Capacity;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::cli::{PodArgs, QueueArgs};
use crate::data_dir::DataDir;

/// Pods beside processes.
pub struct PodPart {
    /// Settings of the engine.
    pub settings: Pods,
    runtime: KubeRuntime,
    facts: UnboundedReceiver<Fact>,
}

impl PodPart {
    /// Makes it, for the pods of one server or of several that are one. The cluster is not asked yet: it may be away.
    pub async fn prepare(
        data: &DataDir,
        of: &str,
        args: &PodArgs,
        queue: &QueueArgs,
        url: &str,
        ca: Option<&str>,
        blobs: Arc<dyn Blobs>,
    ) -> anyhow::Result<Self> {
        let url = args.pod_url.clone().unwrap_or_else(|| url.to_owned());
        let client = connect(args.cluster_kubeconfig.as_deref()).await?;
        let root = data.folder("pods")?;
        let settings = PodSettings {
            namespace: args.pod_namespace.clone(),
            service_account: args.pod_service_account.clone(),
            run_as_user: args.pod_user,
            cache_claim: args.pod_cache_claim.clone(),
            image_pull_policy: args.pod_image_pull_policy.clone(),
            authority: authority(args, &url, ca)?,
            log_max_bytes: queue.log_max.value(),
            stuck_after: args.pod_stuck_after.as_std(),
            zombie_after: args.pod_zombie_after.as_std(),
            ..PodSettings::new(of, root)
        };
        let (runtime, facts) = KubeRuntime::new(client, settings, blobs);
        let capacity = Capacity { slots: args.pod_slots, cpu_millis: None, memory: None };
        Ok(Self {
            settings: Pods { capacity, url, namespace: args.pod_namespace.clone(), base_env: Vec::new() },
            runtime,
            facts,
        })
    }

    /// Its logs.
    pub fn logs(&self) -> Arc<dyn Logs> {
        Arc::new(self.runtime.logs())
    }

    /// The runtime, and what it observes.
    pub fn runtime(self) -> (Arc<dyn Runtime>, UnboundedReceiver<Fact>) {
        (Arc::new(self.runtime), self.facts)
    }
}

/// Whom pods trust, if they talk to the server over TLS.
fn authority(args: &PodArgs, url: &str, own: Option<&str>) -> anyhow::Result<Option<String>> {
    if let Some(path) = &args.pod_ca {
        let text = fs::read_to_string(path);
        return Ok(Some(
            text.with_context(|| format!("cannot read {}; give a PEM file with --pod-ca", path.display()))?,
        ));
    }
    Ok(own.filter(|_| url.starts_with("https://")).map(str::to_owned))
}
