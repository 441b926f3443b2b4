//! What the agent is told on its command line. Everything can also be said in the environment.

use std::io;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use muster_runtime_process::{SecretFlag, read_secret};
use muster_types::Duration;

/// Flags whose values are kept out of the list of processes.
pub const SECRET_FLAGS: [SecretFlag; 2] = [SecretFlag::Always("--token"), SecretFlag::InUrl("--broker")];

/// Runs tasks of a Muster fleet on this machine.
#[derive(Debug, Clone, Parser)]
#[command(name = "muster-agent", version)]
pub struct Args {
    /// Where the broker is: mqtt://HOST:PORT, mqtts://HOST:PORT, ws://HOST:PORT/PATH or wss://…, with USER:PASSWORD@ if the broker
    /// has users of its own: then better in a file
    #[arg(
        long,
        value_name = "URL",
        env = "MUSTER_BROKER",
        default_value = "mqtt://127.0.0.1:1883",
        hide_env_values = true
    )]
    pub broker: String,
    /// File with the URL of the broker
    #[arg(long, value_name = "FILE", env = "MUSTER_BROKER_FILE", conflicts_with = "broker")]
    pub broker_file: Option<PathBuf>,
    /// File with a join token, made with `muster robot token create`; needed the first time
    #[arg(long, value_name = "FILE", env = "MUSTER_JOIN_TOKEN_FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// The join token itself, better in a file or in the environment
    #[arg(long, value_name = "TOKEN", env = "MUSTER_JOIN_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// The name of this robot, unique in the fleet [default: the name of this machine]
    #[arg(long, value_name = "ID", env = "MUSTER_ROBOT_ID")]
    pub robot_id: Option<String>,
    /// A label it is selected by; may be given several times
    #[arg(long, value_name = "NAME=VALUE", env = "MUSTER_ROBOT_LABELS", value_delimiter = ',')]
    pub label: Vec<String>,
    /// Where it keeps what it needs [default: ~/.k8s4r/tasks]
    #[arg(long, value_name = "DIR", env = "MUSTER_WORK_DIR")]
    pub work_dir: Option<PathBuf>,
    /// Tasks at once
    #[arg(long, value_name = "COUNT", env = "MUSTER_MAX_TASKS", default_value_t = 1)]
    pub max_tasks: u32,
    /// How long tasks go on without an agent before they are ended, should this one be killed and none come after it
    #[arg(long, value_name = "TIME", env = "MUSTER_ORPHANS_END_AFTER", default_value = "1h")]
    pub orphans_end_after: Duration,
    /// What topics begin with
    #[arg(long, value_name = "TOPIC", env = "MUSTER_MQTT_PREFIX", default_value = muster_fleet_mqtt::DEFAULT_PREFIX)]
    pub prefix: String,
    /// Certificate of the authority to trust [default: those of this machine]
    #[arg(long, value_name = "FILE", env = "MUSTER_CA_FILE")]
    pub ca_file: Option<PathBuf>,
    /// How often it says that it is alive
    #[arg(long, value_name = "TIME", env = "MUSTER_HEARTBEAT", default_value = "30s")]
    pub heartbeat: Duration,
    /// What is logged
    #[arg(long, value_name = "FILTER", env = "MUSTER_LOG", default_value = "info")]
    pub log: String,
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// Reads what is in files.
    pub fn read_files(&mut self) -> io::Result<()> {
        if let Some(file) = &self.broker_file {
            self.broker = read_secret("--broker-file", file)?;
        }
        match &self.token_file {
            Some(file) if file.exists() => self.token = Some(read_secret("--token-file", file)?),
            // Once it has joined, the token is not needed.
            Some(file) => tracing::warn!(file = %file.display(), "the file of --token-file is not there"),
            None => {}
        }
        Ok(())
    }
}

/// What this program is besides.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// The process that runs programs; started by the agent itself
    #[command(hide = true)]
    Shepherd,
}
