//! Flags that say where and how pods run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use muster_types::Duration;
use muster_types::task::Runtime;

/// Where attempts run that do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DefaultRuntime {
    /// Processes of this machine
    Process,
    /// Pods of a Kubernetes cluster
    Pod,
}

impl From<DefaultRuntime> for Runtime {
    fn from(asked: DefaultRuntime) -> Self {
        match asked {
            DefaultRuntime::Process => Self::Process,
            DefaultRuntime::Pod => Self::Pod,
        }
    }
}

/// Where and how pods run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Pods")]
pub struct PodArgs {
    /// Where tasks run that do not say: `runtime` of a task decides otherwise
    #[arg(long, value_name = "RUNTIME", env = "MUSTER_RUNTIME", default_value = "process")]
    pub runtime: DefaultRuntime,
    /// Kubeconfig of the cluster that runs pods [default: the cluster this server runs in, if --runtime is pod]
    #[arg(long, value_name = "FILE", env = "MUSTER_CLUSTER_KUBECONFIG", hide_env_values = true)]
    pub cluster_kubeconfig: Option<PathBuf>,
    /// Namespace of all pods [default: that of their task]
    #[arg(long, value_name = "NAME")]
    pub pod_namespace: Option<String>,
    /// Pods at once; quotas and nodes of the cluster may allow fewer
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub pod_slots: u32,
    /// Where pods reach this server [default: the address it listens on]
    #[arg(long, value_name = "URL")]
    pub pod_url: Option<String>,
    /// Authority (PEM) that pods trust when they talk to this server [default: that of this server's certificate]
    #[arg(long, value_name = "FILE")]
    pub pod_ca: Option<PathBuf>,
    /// Service account of pods; without one they cannot talk to the cluster
    #[arg(long, value_name = "NAME")]
    pub pod_service_account: Option<String>,
    /// User that containers run as [default: what the image says]
    #[arg(long, value_name = "UID")]
    pub pod_user: Option<i64>,
    /// Volume claim that is mounted as the cache of pods [default: a cache that ends with the pod]
    #[arg(long, value_name = "NAME")]
    pub pod_cache_claim: Option<String>,
    /// When images are pulled [default: the cluster decides]
    #[arg(long, value_name = "POLICY", value_parser = ["Always", "IfNotPresent", "Never"])]
    pub pod_image_pull_policy: Option<String>,
    /// How long a pod that was told to end may take besides its killTimeout, before it is removed by force
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub pod_stuck_after: Duration,
    /// How long a pod that finds no node holds back tasks with the same placement needs, before the first of them is tried
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub pod_unschedulable_hold: Duration,
    /// How long sidecars may go on after the leading container, besides their killTimeout, before their pod is removed by force
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub pod_zombie_after: Duration,
}

impl PodArgs {
    /// The same in seconds.
    pub fn unschedulable_hold(&self) -> i64 {
        self.pod_unschedulable_hold.seconds_rounded_up()
    }

    /// True if there are to be pods at all.
    pub fn wanted(&self) -> bool {
        self.runtime == DefaultRuntime::Pod || self.cluster_kubeconfig.is_some()
    }
}
