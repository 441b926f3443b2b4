//! The command line: verbs, flags and their help.

mod adapter_args;
mod array_spec;
mod egress_args;
mod examples;
mod follow_args;
mod goal;
mod object_args;
mod pod_args;
mod queue_args;
mod report_args;
mod resource_args;
mod robot_args;
mod schedule_args;
mod secrets;
mod sink_args;
mod store_args;
mod store_command;
mod task_args;
mod trace_args;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use muster_types::Duration;

pub use adapter_args::AdapterCommand;
pub use egress_args::EgressArgs;
pub use follow_args::{
    CancelArgs, ExplainArgs, ExplainOutput, LogsArgs, RetryArgs, TopArgs, WaitArgs, WatchArgs,
};
pub use goal::{Goal, Reached, state_of};
pub use object_args::{ApplyArgs, Cascade, DeleteArgs, DescribeArgs, GetArgs, Output, SelectArgs};
pub use pod_args::PodArgs;
pub use queue_args::QueueArgs;
pub use report_args::{BucketCommand, ReportAdd, ReportArgs, ReportCommand};
pub use resource_args::ResourceArgs;
pub use robot_args::{Approval, RobotArgs, RobotCommand, RobotTokenCommand};
pub use schedule_args::{ScheduleCommand, ScheduleTimes};
pub use sink_args::SinkCommand;
pub use store_args::StoreArgs;
pub use store_command::{CopyArgs, StoreCommand};
pub use task_args::{MadeOutput, RunArgs, SubmitArgs, TaskArgs};
pub use trace_args::{Sending, TraceArgs};

/// The control plane for work that ends.
#[derive(Debug, Parser)]
#[command(
    name = "muster",
    version,
    about,
    max_term_width = 110,
    after_help = "Start with `muster run -- echo hello`, which needs nothing else. Or with `muster up`, and in\n\
                  another terminal `muster submit -- echo hello` and `muster get tasks`.\n\
                  `muster help VERB` tells more about a verb, with examples."
)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every verb.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Directory of the server's data [default: ~/.local/share/muster]
    #[arg(long, global = true, value_name = "DIR", env = "MUSTER_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,
    /// Kubeconfig of the server to talk to [default: the one in the data directory, else KUBECONFIG or
    /// ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE", env = "MUSTER_KUBECONFIG", hide_env_values = true)]
    pub kubeconfig: Option<PathBuf>,
    /// URL of the server to talk to, instead of the one in the kubeconfig
    #[arg(long, global = true, value_name = "URL", env = "MUSTER_SERVER", hide_env_values = true)]
    pub server: Option<String>,
    /// Namespace of the objects [default: that of the kubeconfig, else default]
    #[arg(long, short, global = true, value_name = "NAME", env = "MUSTER_NAMESPACE", hide_env_values = true)]
    pub namespace: Option<String>,
    /// What to log: error, warn, info, debug or trace, per module if wanted [default: info for `up`, nothing
    /// otherwise]
    #[arg(long, global = true, value_name = "FILTER", env = "MUSTER_LOG", hide_env_values = true)]
    pub log: Option<String>,
    /// How logs are written: as text for people, or one JSON object per line
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "MUSTER_LOG_FORMAT",
        hide_env_values = true,
        default_value = "text"
    )]
    pub log_format: LogFormat,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run attempts for a server; started by the server itself
    #[command(hide = true)]
    Shepherd,
    /// Run the server: API, store and everything else, in one process, or only some roles of it
    #[command(visible_alias = "serve", after_help = examples::UP)]
    Up(Box<UpArgs>),
    /// Run one command as a task: show its output, exit with its code
    #[command(after_help = examples::RUN)]
    Run(RunArgs),
    /// Make a task, or many, from a command, an addon or a kind
    #[command(after_help = examples::SUBMIT)]
    Submit(SubmitArgs),
    /// Show what a task wrote
    #[command(after_help = examples::LOGS)]
    Logs(LogsArgs),
    /// Wait for tasks; the exit code is 1 if one failed
    #[command(after_help = examples::WAIT)]
    Wait(WaitArgs),
    /// Show tasks as they change
    #[command(after_help = examples::WATCH)]
    Watch(WatchArgs),
    /// Show all that happens on one screen, and act on it by keys
    #[command(after_help = examples::TOP)]
    Top(TopArgs),
    /// Ask for tasks to be canceled
    #[command(after_help = examples::CANCEL)]
    Cancel(CancelArgs),
    /// Make new tasks like some that have ended
    #[command(after_help = examples::RETRY)]
    Retry(RetryArgs),
    /// Say why a task is where it is
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Report progress, errors, results and files of the task that this program is an attempt of
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Make objects be as files describe them
    #[command(after_help = examples::APPLY)]
    Apply(ApplyArgs),
    /// Show objects, as a table or whole
    #[command(after_help = examples::GET)]
    Get(GetArgs),
    /// Show everything about some objects, for reading
    #[command(after_help = examples::DESCRIBE)]
    Describe(DescribeArgs),
    /// Delete objects
    #[command(after_help = examples::DELETE)]
    Delete(DeleteArgs),
    /// Show the times of a schedule, make a run now, or make runs for times in the past
    #[command(subcommand, after_help = examples::SCHEDULE)]
    Schedule(ScheduleCommand),
    /// Show, test, pause, resume and replay event sinks, where messages about changes go
    #[command(subcommand, after_help = examples::SINK)]
    Sink(SinkCommand),
    /// Copy what a server keeps to another store, such as from a file to PostgreSQL
    #[command(subcommand, after_help = examples::STORE)]
    Store(StoreCommand),
    /// Write everything a server keeps into one file, while it works; for admins
    #[command(after_help = examples::BACKUP)]
    Backup {
        /// The file, which is not there yet
        file: PathBuf,
    },
    /// Make a data directory of a backup
    #[command(after_help = examples::BACKUP)]
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Show, approve and drain the robots of the fleet, and make the tokens they join with
    #[command(subcommand, after_help = examples::ROBOT)]
    Robot(RobotCommand),
    /// Show what an adapter would do on a managed resource
    #[command(subcommand, after_help = examples::ADAPTER)]
    Adapter(AdapterCommand),
    /// Print the kubeconfig of the server in the data directory, secret included
    #[command(after_help = examples::KUBECONFIG)]
    Kubeconfig(KubeconfigArgs),
    /// Make, list and revoke access tokens
    #[command(subcommand, after_help = examples::TOKEN)]
    Token(TokenCommand),
    /// Print a completion script for a shell
    #[command(after_help = examples::COMPLETION)]
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Print the versions of this program and of the server
    Version(VersionArgs),
}

/// Flags of `kubeconfig`.
#[derive(Debug, Args)]
pub struct KubeconfigArgs {
    /// Print the text of the file, which is the default
    #[arg(long, conflicts_with = "path")]
    pub raw: bool,
    /// Print only where the file is
    #[arg(long)]
    pub path: bool,
}

/// Verbs of `token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print its secret, which is shown only this once
    Create {
        /// Name of the token: whom or what it is for
        name: String,
        /// What it may do: admin everything, editor change objects other than EventSinks, Adapters, ResourceTypes and Robots, viewer
        /// read them, robot join the fleet, reporter read managed resources and report on them for one adapter
        #[arg(long, value_parser = PossibleValuesParser::new(["admin", "editor", "viewer", "robot", "reporter"]))]
        role: String,
        /// The adapter that a reporter reports for
        #[arg(long, value_name = "NAME", required_if_eq("role", "reporter"))]
        adapter: Option<String>,
        /// How long it is valid, such as 12h or 30d [default: until it is revoked; for the role robot 24h]
        #[arg(long, value_name = "DURATION")]
        ttl: Option<Duration>,
        /// How many robots can join with it, with the role robot [default: 1]
        #[arg(long, value_name = "N")]
        uses: Option<u32>,
        /// Print a whole kubeconfig with the token instead of the secret alone
        #[arg(long)]
        as_kubeconfig: bool,
    },
    /// Show the tokens there are, without their secrets
    #[command(visible_alias = "ls")]
    List {
        /// Form of the output
        #[arg(long, short, value_name = "FORM", default_value = "table")]
        output: Output,
    },
    /// Make tokens worthless
    Revoke {
        /// Names of the tokens
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

/// Flags of `version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Only the version of this program; no server is asked
    #[arg(long)]
    pub client: bool,
    /// Form of the output
    #[arg(long, short, value_name = "FORM", default_value = "table")]
    pub output: VersionOutput,
}

/// Form of versions in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VersionOutput {
    Table,
    Json,
    Yaml,
}

/// Flags of `up`.
#[derive(Debug, Clone, Args)]
pub struct UpArgs {
    /// Address of the API and console; any address but a loopback one needs TLS
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7400", env = "MUSTER_LISTEN")]
    pub listen: String,
    /// Certificate (PEM) to serve with; needs --tls-key. Both files are read again when they change
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Serve any address with a generated certificate, which is renewed; clients trust it through the kubeconfig
    #[arg(long, conflicts_with_all = ["tls_cert", "insecure_http"])]
    pub tls_generate: bool,
    /// Further names or addresses for the generated certificate
    #[arg(long, value_name = "NAME")]
    pub tls_name: Vec<String>,
    /// Serve plain HTTP on any address: everybody on the network can read tokens
    #[arg(long)]
    pub insecure_http: bool,
    /// What this server does: api, engine, bridge, relay, web, responder. A responder alone keeps jobs on the server that --server or
    /// a kubeconfig names
    #[arg(
        long,
        value_name = "ROLE",
        env = "MUSTER_ROLES",
        value_delimiter = ',',
        default_value = "api,engine,bridge,relay,web"
    )]
    pub roles: Vec<ServerRole>,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub queue: QueueArgs,
    #[command(flatten)]
    pub pods: PodArgs,
    /// Serve behind the API server of the cluster (that of --cluster-kubeconfig, else the one this server runs in): its users
    /// are known here, its roles decide, and its APIServices are told to trust a generated certificate
    #[arg(long, help_heading = "Pods", conflicts_with = "insecure_http")]
    pub aggregated: bool,
    #[command(flatten)]
    pub robots: RobotArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub egress: EgressArgs,
    #[command(flatten)]
    pub traces: TraceArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// A part of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ServerRole {
    /// Serve the API; always on
    Api,
    /// Start and watch tasks
    Engine,
    /// Listen to robots
    Bridge,
    /// Tell event sinks about changes
    Relay,
    /// Show what happens in a browser, under /ui
    Web,
    /// Keep the logs of jobs of a cluster that ended, then delete them
    Responder,
}

/// Limits of the server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Largest request body, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub max_body: usize,
    /// Largest attachment or file of a bucket, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024 * 1024)]
    pub max_file: u64,
    /// Watches open at once
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub max_watches: usize,
    /// Requests per second and token, twice that in a burst; 0 is no limit
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    pub max_requests: u32,
    /// Changes that can be watched from the past
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub history_changes: usize,
    /// Age of the oldest change that can be watched; those older than 30s take no more memory than a quarter of what is
    /// stored, or 2 MB
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub history_age: Duration,
    /// Changes that are kept for an event sink that does not keep up
    #[arg(long, value_name = "COUNT", default_value_t = 2_000_000)]
    pub relay_backlog: usize,
    /// How often a watch says where it is
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub bookmark_interval: Duration,
    /// What the names of logs end in among the attachments of a task; `.yaml` is what the task manager of old called them
    #[arg(long, value_name = "SUFFIX", default_value = ".log", value_parser = [".log", ".yaml"])]
    pub log_suffix: String,
}

impl Default for LimitArgs {
    /// The limits of a server that was told none.
    fn default() -> Self {
        untold()
    }
}

/// Flags of somebody who gave none.
pub fn untold<A: Args>() -> A {
    let matches = A::augment_args(clap::Command::new("untold")).get_matches_from(["untold"]);
    A::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

impl UpArgs {
    /// Names and addresses that the generated certificate is for. The broker of robots shows it too.
    pub fn certificate_names(&self, listen: IpAddr) -> (Vec<String>, Vec<IpAddr>) {
        let mut names = vec!["localhost".to_owned()];
        let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from(std::net::Ipv6Addr::LOCALHOST)];
        let broker = self.robots.mqtt_listen.as_deref().and_then(|text| text.parse::<SocketAddr>().ok());
        for address in [Some(listen), broker.map(|broker| broker.ip())].into_iter().flatten() {
            if !addresses.contains(&address) && !address.is_unspecified() {
                addresses.push(address);
            }
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use muster_apiserver::access::Role;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_role_of_the_server_can_be_asked_for() {
        for role in Role::ALL {
            let role = role.to_string();
            let mut line = vec!["muster", "token", "create", "a", "--role", &role];
            if role == "reporter" {
                line.extend(["--adapter", "dns"]);
            }
            assert!(Cli::try_parse_from(line).is_ok(), "{role}");
        }
    }

    #[test]
    fn a_deletion_waits_unless_told_otherwise() {
        let wait = |flags: &[&str]| {
            let line = ["muster", "delete", "task", "a"].iter().chain(flags);
            match Cli::try_parse_from(line).unwrap().command {
                Command::Delete(args) => args.wait,
                other => panic!("{other:?}"),
            }
        };
        assert!(wait(&[]) && wait(&["--wait"]) && wait(&["--wait=true"]) && !wait(&["--wait=false"]));
    }
}
