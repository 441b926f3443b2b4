//! Flags of the verbs that make tasks: `submit` and `run`.

use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};
use muster_types::task::Subject;
use muster_types::{Duration, Quantity};

use super::array_spec::ArraySpec;

/// What a task is to be, whoever asks for it.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "The task")]
pub struct TaskArgs {
    /// Title for people; it need not be unique
    #[arg(long, value_name = "TITLE")]
    pub name: Option<String>,
    /// Tasks with a higher priority start first; 0 is the lowest
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub priority: Option<i32>,
    /// Longest time an attempt may run, such as 90s or 2h
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Duration>,
    /// Time between asking a stopped attempt to end and killing it
    #[arg(long, value_name = "DURATION")]
    pub kill_timeout: Option<Duration>,
    /// Try again up to so many times when an attempt fails or is killed
    #[arg(long, value_name = "COUNT")]
    pub retries: Option<u32>,
    /// Environment variable of the command; NAME alone takes the value it has here; can be repeated
    #[arg(long, short = 'e', value_name = "NAME[=VALUE]")]
    pub env: Vec<Setting>,
    /// Label of the task; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Vec<Setting>,
    /// Processor time it is given, such as 2 or 500m
    #[arg(long, value_name = "CORES")]
    pub cpu: Option<Quantity>,
    /// Memory it is given, such as 256Mi
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<Quantity>,
    /// Nothing else runs while it does
    #[arg(long)]
    pub isolated: bool,
    /// What it is about; tasks on the same subject wait for one another
    #[arg(long, value_name = "KIND/NAME", value_parser = parse_subject)]
    pub subject: Option<Subject>,
    /// Any text to find it by
    #[arg(long, value_name = "TEXT")]
    pub locator: Option<String>,
    /// Where attempts run [default: the server's]
    #[arg(long, value_name = "RUNTIME")]
    pub runtime: Option<RuntimeChoice>,
}

/// Where attempts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuntimeChoice {
    Process,
    Pod,
    Robot,
}

impl RuntimeChoice {
    /// The word in a manifest.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Pod => "pod",
            Self::Robot => "robot",
        }
    }
}

/// Flags of `submit`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("work").args(["command", "addon", "kind", "made"]).multiple(true).required(true))]
pub struct SubmitArgs {
    /// The command to run and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<String>,
    /// Task that was made with --suspend and is now submitted; can be repeated
    #[arg(
        long = "task",
        value_name = "NAME",
        conflicts_with_all = ["command", "addon", "kind", "array", "follow", "suspend", "TaskArgs"]
    )]
    pub made: Vec<String>,
    /// Addon to run instead of a command
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub addon: Option<String>,
    /// Kind of the task: gives its priority and dependencies, and selects the addon
    #[arg(long, value_name = "NAME")]
    pub kind: Option<String>,
    /// Extension to run beside the addon [default: those selected by rule]; can be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub extension: Vec<String>,
    /// The task's data (spec.data), handed to the addon: JSON, or @FILE with JSON or YAML
    #[arg(long, value_name = "JSON|@FILE")]
    pub input: Option<String>,
    /// Only make it; it is submitted later, when spec.suspend becomes false
    #[arg(long, conflicts_with_all = ["wait", "follow"])]
    pub suspend: bool,
    /// One task for each number, such as 1-1000, 0-100:10 or 1,3,7-9; the command finds its own in MUSTER_INDEX
    #[arg(long, value_name = "NUMBERS")]
    pub array: Option<ArraySpec>,
    /// One task for each line of a file, - for standard input; the command finds its own in MUSTER_LINE
    #[arg(long, value_name = "FILE", conflicts_with = "array", requires = "command")]
    pub each_line: Option<String>,
    /// Wait until all of it has ended; the exit code is 1 if something failed
    #[arg(long)]
    pub wait: bool,
    /// Print the output of the task while it runs, and exit with its code
    #[arg(long, short, conflicts_with_all = ["array", "each_line", "wait"])]
    pub follow: bool,
    /// Form of the output [default: the bare name, or the label of an array]
    #[arg(long, short, value_name = "FORM")]
    pub output: Option<MadeOutput>,
    #[command(flatten)]
    pub task: TaskArgs,
}

/// Form of new objects in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MadeOutput {
    Name,
    Json,
    Yaml,
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The command to run and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true)]
    pub command: Vec<String>,
    /// Do not pass on the environment of this shell, only PATH, HOME, LANG and TZ
    #[arg(long)]
    pub clean_env: bool,
    /// Run in the empty work directory of the attempt, not in the current directory
    #[arg(long)]
    pub in_work_dir: bool,
    #[command(flatten)]
    pub task: TaskArgs,
}

/// A name and perhaps a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: Option<String>,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() {
            return Err("it has no name; write NAME=VALUE".to_owned());
        }
        Ok(Self { name: name.to_owned(), value })
    }
}

fn parse_subject(text: &str) -> Result<Subject, String> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
            Ok(Subject { kind: kind.to_owned(), name: name.to_owned() })
        }
        _ => Err("write KIND/NAME, such as Application/inventory".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_may_hold_equals_signs_and_may_have_no_value() {
        let setting: Setting = "A=b=c".parse().unwrap();
        assert_eq!((setting.name.as_str(), setting.value.as_deref()), ("A", Some("b=c")));
        assert_eq!("A".parse::<Setting>().unwrap().value, None);
        assert!("=b".parse::<Setting>().is_err());
    }

    #[test]
    fn a_subject_is_a_kind_and_a_name() {
        assert_eq!(parse_subject("Application/a/b").unwrap().name, "a/b");
        assert!(parse_subject("inventory").unwrap_err().contains("Application/inventory"));
    }
}
