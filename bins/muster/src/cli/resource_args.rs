//! Flags of `up` about managed resources.

use std::path::PathBuf;

use clap::Args;
use muster_types::LabelSelector;

/// How managed resources are seen to.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Managed resources")]
pub struct ResourceArgs {
    /// Kubeconfig of the cluster that adapters apply manifests to [default: the cluster the server runs in]
    #[arg(long, value_name = "FILE", env = "MUSTER_ADAPTER_KUBECONFIG", hide_env_values = true)]
    pub adapter_kubeconfig: Option<PathBuf>,
    /// See only to managed resources with these labels, such as shard=a [default: all]
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    pub resource_selector: Option<LabelSelector>,
}

fn parse_selector(text: &str) -> Result<LabelSelector, String> {
    text.parse().map_err(|error: muster_types::label_selector::LabelSelectorError| error.to_string())
}
