//! Flags of where a server keeps everything.

use std::path::PathBuf;

use clap::Args;
use muster_types::Duration;

/// Where everything is kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Store")]
pub struct StoreArgs {
    /// Where everything is kept: sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/DATABASE, which several servers may share;
    /// with a password better in a file or in the environment [default: a file in the data directory]
    #[arg(long, value_name = "STORE", env = "MUSTER_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// File with what --store would say
    #[arg(long, value_name = "FILE", env = "MUSTER_STORE_FILE", conflicts_with = "store")]
    pub store_file: Option<PathBuf>,
    /// Name of the installation that a database belongs to; servers that share one say the same, all others are refused
    #[arg(long, value_name = "NAME", env = "MUSTER_INSTALLATION", default_value = "muster")]
    pub installation: String,
    /// How long the server that does the work of a role may be silent before another one takes over; for tasks a fifth more
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub lease: Duration,
    /// Place of kept logs and attachments: a directory, or s3://BUCKET/PREFIX with AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID
    /// and AWS_SECRET_ACCESS_KEY; servers that share a database share it too [default: in the data directory]
    #[arg(long, value_name = "PLACE", env = "MUSTER_FILES", hide_env_values = true)]
    pub files: Option<PathBuf>,
}

impl Default for StoreArgs {
    /// A server that was told nothing.
    fn default() -> Self {
        super::untold()
    }
}
