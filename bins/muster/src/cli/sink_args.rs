//! Flags of `sink`.

use clap::{Args, Subcommand};
use muster_types::Duration;

use super::object_args::Output;

/// Verbs of `sink`.
#[derive(Debug, Subcommand)]
pub enum SinkCommand {
    /// Show the sinks there are, with their backlog and lag
    #[command(visible_alias = "ls")]
    List {
        /// Sinks of all namespaces
        #[arg(long, short = 'A')]
        all_namespaces: bool,
        /// Form of the output
        #[arg(long, short, value_name = "FORM", default_value = "table")]
        output: Output,
    },
    /// Show everything about a sink, for reading
    Describe(SinkName),
    /// Send one test message and say what became of it
    Test {
        #[command(flatten)]
        sink: SinkName,
        /// Longest time to wait for the answer
        #[arg(long, value_name = "DURATION", default_value = "30s")]
        timeout: Duration,
    },
    /// Send nothing until resumed; changes are kept only as long as for anybody else
    Pause(SinkName),
    /// Go on where the sink was
    Resume(SinkName),
    /// Send again what was sent before, under the same ids
    Replay {
        #[command(flatten)]
        sink: SinkName,
        /// A revision to begin behind, or a time such as 2026-11-15T12:00:00Z
        #[arg(long, value_name = "REVISION|TIME")]
        from: String,
        /// Longest time to wait until it begins
        #[arg(long, value_name = "DURATION", default_value = "30s")]
        timeout: Duration,
    },
}

/// Which sink.
#[derive(Debug, Args)]
pub struct SinkName {
    /// Name of the sink
    #[arg(value_name = "SINK")]
    pub name: String,
}
