//! Flags of `report`, which addons call from inside of their attempt.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Flags of `report`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct ReportArgs {
    #[command(flatten)]
    pub add: ReportAdd,
    #[command(subcommand)]
    pub command: Option<ReportCommand>,
}

/// What is added to the report.
#[derive(Debug, Args, Default)]
pub struct ReportAdd {
    /// What is being done, in a line; can be repeated
    #[arg(long, short, value_name = "TEXT", num_args = 1..)]
    pub activity: Vec<String>,
    /// How many steps there are
    #[arg(long, value_name = "COUNT")]
    pub total: Option<u64>,
    /// How many steps are done
    #[arg(long, value_name = "COUNT", conflicts_with = "increment")]
    pub completed: Option<u64>,
    /// So many more steps are done
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "1")]
    pub increment: Option<u64>,
    /// Something that went wrong; can be repeated
    #[arg(long, value_name = "TEXT")]
    pub error: Vec<String>,
    /// How bad the errors are
    #[arg(long, value_name = "WORD", default_value = "Error", requires = "error")]
    pub severity: String,
    /// What came out: JSON, or @FILE with JSON or YAML
    #[arg(long, value_name = "JSON|@FILE")]
    pub result: Option<String>,
    /// Begin a new report instead of adding to what was reported
    #[arg(long)]
    pub replace: bool,
}

/// Verbs of `report`.
#[derive(Debug, Subcommand)]
pub enum ReportCommand {
    /// Print the report as it is now
    Show,
    /// Forget what was reported
    Clear,
    /// Keep a file with the task
    Attach {
        /// The file, - for standard input
        file: PathBuf,
        /// Name it is kept by [default: that of the file]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Line of the activity it belongs to, from 1
        #[arg(long, value_name = "LINE", value_parser = clap::value_parser!(u64).range(1..))]
        activity: Option<u64>,
    },
    /// Read and write the files of the task's bucket
    #[command(subcommand)]
    Bucket(BucketCommand),
}

/// Verbs of `report bucket`.
#[derive(Debug, Subcommand)]
pub enum BucketCommand {
    /// Print a file, or list a directory
    Get {
        /// Where it is in the bucket
        #[arg(default_value = "")]
        path: String,
        /// Write it to a file instead
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Store a file
    Put {
        /// Where it goes in the bucket
        path: String,
        /// The file, - for standard input
        file: PathBuf,
    },
    /// Delete a file
    Delete {
        /// Where it is in the bucket
        path: String,
    },
}
