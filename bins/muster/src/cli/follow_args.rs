//! Flags of the verbs about tasks that are there: `logs`, `wait`, `watch`, `top`, `cancel`, `retry`, `explain`.

use clap::{ArgGroup, Args, ValueEnum};
use muster_types::Duration;

use super::goal::Goal;

/// Flags of `logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Name of the task, or kubejob/NAME for what is kept of a job of a cluster
    #[arg(value_name = "TASK")]
    pub task: String,
    /// Go on until the task has ended; waits for it to start if need be
    #[arg(long, short)]
    pub follow: bool,
    /// Container whose output is shown [default: the leading one]
    #[arg(long, short, value_name = "NAME")]
    pub container: Option<String>,
    /// Only so many lines from the end
    #[arg(long, value_name = "COUNT")]
    pub tail: Option<u64>,
    /// Only what was written in this time, such as 10m
    #[arg(long, value_name = "DURATION")]
    pub since: Option<Duration>,
    /// Number of the attempt, from 1 [default: the latest]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: Option<u32>,
}

/// Which tasks, by name or by what they have.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["tasks", "selector", "all"]).required(true))]
pub struct WhichTasks {
    /// Names of the tasks, or job/NAME or taskgroup/NAME
    #[arg(value_name = "TASK")]
    pub tasks: Vec<String>,
    /// Tasks with these labels, such as muster.dev/array=k7x2m
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// All tasks of the namespace
    #[arg(long)]
    pub all: bool,
}

/// Flags of `wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    #[command(flatten)]
    pub which: WhichTasks,
    /// What to wait for: ended, deleted, state=STATE or condition=TYPE[=STATUS]
    #[arg(long = "for", value_name = "GOAL", default_value = "ended")]
    pub goal: Goal,
    /// Longest time to wait [default: no limit]
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Duration>,
}

/// Flags of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Name of one task, or job/NAME or taskgroup/NAME [default: all tasks of the namespace]
    #[arg(value_name = "TASK", conflicts_with = "selector")]
    pub task: Option<String>,
    /// Tasks with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
}

/// Flags of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Tasks of all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Tasks with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
}

/// Flags of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    #[command(flatten)]
    pub which: WhichTasks,
    /// Wait until the tasks have ended
    #[arg(long)]
    pub wait: bool,
}

/// Flags of `retry`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["tasks", "selector"]).required(true))]
pub struct RetryArgs {
    /// Names of the tasks, or job/NAME
    #[arg(value_name = "TASK")]
    pub tasks: Vec<String>,
    /// Tasks with these labels that have failed or were canceled
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
}

/// Flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Name of the task
    #[arg(value_name = "TASK")]
    pub task: String,
    /// Form of the output
    #[arg(long, short, value_name = "FORM", default_value = "text")]
    pub output: ExplainOutput,
}

/// Form of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainOutput {
    Text,
    Json,
    Yaml,
}
