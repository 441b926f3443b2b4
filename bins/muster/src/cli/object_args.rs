//! Flags of the verbs about objects of any kind: `apply`, `get`, `describe`, `delete`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use muster_types::Duration;

/// Flags of `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// Check and say what would happen, but change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take over fields that another manager owns
    #[arg(long)]
    pub force_conflicts: bool,
    /// Who owns the applied fields
    #[arg(long, value_name = "NAME", default_value = "muster")]
    pub field_manager: String,
}

/// Which files to read.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// File or directory with objects in YAML or JSON, - for standard input; can be repeated
    #[arg(id = "files", long = "filename", short = 'f', value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Read the directories below, too
    #[arg(long, short = 'R')]
    pub recursive: bool,
}

/// Flags of `get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// What to show: RESOURCE, RESOURCE NAME…, RESOURCE/NAME… or RESOURCE,RESOURCE
    #[arg(value_name = "RESOURCE[/NAME]", required = true)]
    pub what: Vec<String>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Form of the output; wide has more columns, name is RESOURCE/NAME
    #[arg(long, short, value_name = "FORM", default_value = "table")]
    pub output: Output,
    /// Go on showing changes until stopped
    #[arg(long, short, conflicts_with = "limit")]
    pub watch: bool,
    /// Show at most so many objects of each resource
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Objects that are not there are no error
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Leave out the line with the names of the columns
    #[arg(long)]
    pub no_headers: bool,
    /// Show in json and yaml who owns which field
    #[arg(long)]
    pub show_managed_fields: bool,
}

/// Which objects of a collection.
#[derive(Debug, Args)]
pub struct SelectArgs {
    /// Objects of all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Objects with these labels, such as app=shop,tier!=db or 'app in (shop,bank)'
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Objects with these values of fields, such as status.state=Failed
    #[arg(long, value_name = "SELECTOR")]
    pub field_selector: Option<String>,
}

/// Form of objects in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    Wide,
    Json,
    Yaml,
    Name,
}

/// Flags of `describe`.
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// What to show: RESOURCE, RESOURCE NAME… or RESOURCE/NAME…
    #[arg(value_name = "RESOURCE[/NAME]", required = true)]
    pub what: Vec<String>,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Flags of `delete`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["what", "files"]).required(true))]
pub struct DeleteArgs {
    /// What to delete: RESOURCE NAME…, RESOURCE/NAME…, or RESOURCE with -l or --all
    #[arg(value_name = "RESOURCE[/NAME]")]
    pub what: Vec<String>,
    /// File or directory with the objects to delete, - for standard input; can be repeated
    #[arg(
        id = "files",
        long = "filename",
        short = 'f',
        value_name = "FILE",
        conflicts_with_all = ["what", "selector", "field_selector", "all", "all_namespaces"]
    )]
    pub files: Vec<PathBuf>,
    /// Read the directories below, too
    #[arg(long, short = 'R', requires = "files")]
    pub recursive: bool,
    #[command(flatten)]
    pub select: SelectArgs,
    /// All objects of the resource in the namespace, or everywhere with -A
    #[arg(long, conflicts_with_all = ["selector", "field_selector"])]
    pub all: bool,
    /// What happens to the objects that the deleted ones own: they go afterwards, go first, or stay
    #[arg(long, value_name = "HOW", default_value = "background")]
    pub cascade: Cascade,
    /// Wait until the objects are gone
    #[arg(
        long,
        value_name = "true|false",
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        hide_possible_values = true,
        action = clap::ArgAction::Set
    )]
    pub wait: bool,
    /// Longest time to wait until the objects are gone [default: no limit]
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Duration>,
    /// Objects that are not there are no error
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Check and say what would happen, but change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What happens to the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cascade {
    Background,
    Foreground,
    Orphan,
}
