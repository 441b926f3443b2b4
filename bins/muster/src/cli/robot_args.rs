//! Flags that say how robots are reached, and the verbs about them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use muster_types::Duration;

use super::ServerRole;
use super::object_args::Output;

/// Who lets robots in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Approval {
    /// A valid join token is enough
    Automatic,
    /// Somebody says so: `muster robot approve`
    Manual,
}

/// How robots are reached.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Robots")]
pub struct RobotArgs {
    /// Address of the broker for robots that is part of this server, or `off`; any address but a loopback one needs TLS
    /// [default: 127.0.0.1:1883, if nobody else listens there]
    #[arg(long, value_name = "ADDR", env = "MUSTER_MQTT_LISTEN")]
    pub mqtt_listen: Option<String>,
    /// A broker of your own to use instead: mqtt://USER:PASSWORD@HOST:PORT, mqtts://…, ws://…/PATH or wss://…; with a password better
    /// in a file or in the environment
    #[arg(long, value_name = "URL", env = "MUSTER_MQTT_URL", hide_env_values = true, group = "own_broker")]
    pub mqtt_url: Option<String>,
    /// File with what --mqtt-url would say
    #[arg(long, value_name = "FILE", env = "MUSTER_MQTT_URL_FILE", group = "own_broker")]
    pub mqtt_url_file: Option<PathBuf>,
    /// Certificate of the authority that the broker of your own is held against [default: those of this machine]
    #[arg(long, value_name = "FILE", requires = "own_broker")]
    pub mqtt_ca_file: Option<PathBuf>,
    /// What topics begin with
    #[arg(long, value_name = "TOPIC", default_value = muster_fleet_mqtt::DEFAULT_PREFIX, env = "MUSTER_MQTT_PREFIX")]
    pub mqtt_prefix: String,
    /// Namespace of robots that join; they run tasks of that namespace
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub robot_namespace: String,
    /// Who lets robots in
    #[arg(long, value_name = "HOW", default_value = "automatic")]
    pub robot_approval: Approval,
    /// The most robots that are let in [default: no limit]
    #[arg(long, value_name = "COUNT")]
    pub max_robots: Option<usize>,
    /// Silence after which a robot is Offline and its tasks go elsewhere
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub robot_offline_after: Duration,
    /// Where programs on robots reach this server, for `muster report` [default: they do not]
    #[arg(long, value_name = "URL")]
    pub robot_url: Option<String>,
}

impl RobotArgs {
    /// This, for a server that runs tasks on robots: at a broker of one's own, or at the one that is part of this server, if it
    /// listens there.
    pub fn of_engine(&self, roles: &[ServerRole]) -> Option<&Self> {
        let own = self.mqtt_listen.as_deref() != Some("off") && roles.contains(&ServerRole::Bridge);
        (self.mqtt_url.is_some() || own).then_some(self)
    }

    /// This, for a server that listens to robots at a broker of one's own.
    pub fn of_bridge(&self, roles: &[ServerRole]) -> anyhow::Result<Option<&Self>> {
        let listens = roles.contains(&ServerRole::Bridge);
        if listens && self.mqtt_url.is_none() && !roles.contains(&ServerRole::Engine) {
            anyhow::bail!(
                "the role bridge without the role engine listens at a broker of your own: give --mqtt-url URL"
            );
        }
        if !listens && self.mqtt_listen.as_deref().is_some_and(|address| address != "off") {
            anyhow::bail!("--mqtt-listen is for a server that listens to robots: add bridge to --roles");
        }
        Ok((listens && self.mqtt_url.is_some()).then_some(self))
    }
}

/// Verbs of `robot`.
#[derive(Debug, Subcommand)]
pub enum RobotCommand {
    /// Show the robots there are
    #[command(visible_alias = "ls")]
    List {
        /// Robots of all namespaces
        #[arg(long, short = 'A')]
        all_namespaces: bool,
        /// Only robots with these labels of their spec, such as zone=a,arm=left
        #[arg(long, short = 'l', value_name = "LABELS")]
        label: Option<String>,
        /// Form of the output
        #[arg(long, short, value_name = "FORM", default_value = "table")]
        output: Output,
    },
    /// Show everything about a robot, for reading
    Describe(RobotName),
    /// Let robots in that wait for it
    Approve(RobotNames),
    /// Give robots no new tasks; those they have go on
    Drain {
        #[command(flatten)]
        robots: RobotNames,
        /// Give them tasks again
        #[arg(long)]
        undo: bool,
    },
    /// Make tokens that robots join with
    #[command(subcommand)]
    Token(RobotTokenCommand),
}

/// Verbs of `robot token`.
#[derive(Debug, Subcommand)]
pub enum RobotTokenCommand {
    /// Make a join token and print it, which is done only this once
    Create {
        /// Name of the token
        #[arg(default_value = "robots")]
        name: String,
        /// How long robots can join with it, such as 12h or 30d [default: 24h]
        #[arg(long, value_name = "DURATION")]
        ttl: Option<Duration>,
        /// How many robots can join with it, 1000 at most
        #[arg(long, value_name = "N", default_value = "1")]
        uses: u32,
    },
}

/// Which robot.
#[derive(Debug, Args)]
pub struct RobotName {
    /// Name of the robot
    #[arg(value_name = "ROBOT")]
    pub name: String,
}

/// Which robots.
#[derive(Debug, Args)]
pub struct RobotNames {
    /// Names of the robots
    #[arg(value_name = "ROBOT", required = true)]
    pub names: Vec<String>,
}
