//! The command line: verbs, flags and their help.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use muster_types::Duration;

/// The control plane for work that ends.
#[derive(Debug, Parser)]
#[command(name = "muster", version, about, propagate_version = true, max_term_width = 110)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every verb.
#[derive(Debug, Args)]
pub struct Globals {
    /// Directory of the server's data; the default is the user's data directory (~/.local/share/muster)
    #[arg(long, global = true, value_name = "DIR", env = "MUSTER_DATA")]
    pub data: Option<PathBuf>,
    /// Kubeconfig of the server to talk to; the default is the one in the data directory
    #[arg(long, global = true, value_name = "FILE", env = "MUSTER_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// URL of the server to talk to, instead of the one in the kubeconfig
    #[arg(long, global = true, value_name = "URL", env = "MUSTER_SERVER")]
    pub server: Option<String>,
    /// Namespace of the objects
    #[arg(long, short, global = true, value_name = "NAME", env = "MUSTER_NAMESPACE")]
    pub namespace: Option<String>,
    /// What to log: error, warn, info, debug or trace, per module if wanted
    #[arg(long, global = true, value_name = "FILTER", env = "MUSTER_LOG", default_value = "info")]
    pub log: String,
}

/// Verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server: API, store and everything else, in one process
    Up(UpArgs),
}

/// Flags of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Address of the API and console; any address but a loopback one needs TLS
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7400", env = "MUSTER_LISTEN")]
    pub listen: String,
    /// Certificate (PEM) to serve with; needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Serve any address with a generated certificate; clients trust it through the kubeconfig
    #[arg(long, conflicts_with_all = ["tls_cert", "insecure_http"])]
    pub tls_generate: bool,
    /// Further names or addresses for the generated certificate
    #[arg(long, value_name = "NAME")]
    pub tls_name: Vec<String>,
    /// Serve plain HTTP on any address: everybody on the network can read tokens
    #[arg(long)]
    pub insecure_http: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Limits of the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Largest request body, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub max_body: usize,
    /// Watches open at once
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub max_watches: usize,
    /// Requests per second and token, twice that in a burst; 0 is no limit
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    pub max_requests: u32,
    /// Changes that can be watched from the past
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub history_changes: usize,
    /// Age of the oldest change that can be watched
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub history_age: Duration,
    /// How often a watch says where it is
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub bookmark_interval: Duration,
}

impl UpArgs {
    /// Names and addresses that the generated certificate is for.
    pub fn certificate_names(&self, listen: IpAddr) -> (Vec<String>, Vec<IpAddr>) {
        let mut names = vec!["localhost".to_owned()];
        let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from(std::net::Ipv6Addr::LOCALHOST)];
        if !addresses.contains(&listen) && !listen.is_unspecified() {
            addresses.push(listen);
        }
        for name in &self.tls_name {
            match name.parse() {
                Ok(address) => addresses.push(address),
                Err(_) => names.push(name.clone()),
            }
        }
        (names, addresses)
    }
}
