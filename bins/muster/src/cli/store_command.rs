//! Flags of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Verbs of `store`.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy everything a server keeps from one store to another, and compare; no server uses either meanwhile
    Copy(CopyArgs),
}

/// Flags of `store copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// What to copy: sqlite:FILE or postgres://USER@HOST/DATABASE
    #[arg(
        long,
        value_name = "STORE",
        env = "MUSTER_COPY_FROM",
        hide_env_values = true,
        required_unless_present = "from_file"
    )]
    pub from: Option<String>,
    /// File with what --from would say, for one with a password
    #[arg(long, value_name = "FILE", env = "MUSTER_COPY_FROM_FILE", conflicts_with = "from")]
    pub from_file: Option<PathBuf>,
    /// Where to: the same forms; nothing is there, or the beginning of the same copy
    #[arg(
        long,
        value_name = "STORE",
        env = "MUSTER_COPY_TO",
        hide_env_values = true,
        required_unless_present = "to_file"
    )]
    pub to: Option<String>,
    /// File with what --to would say, for one with a password
    #[arg(long, value_name = "FILE", env = "MUSTER_COPY_TO_FILE", conflicts_with = "to")]
    pub to_file: Option<PathBuf>,
    /// Name of the installation that a database belongs to
    #[arg(long, value_name = "NAME", env = "MUSTER_INSTALLATION", default_value = "muster")]
    pub installation: String,
    /// Kept logs and attachments to copy as well: a directory, such as DATA/files, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE", requires = "files_to")]
    pub files_from: Option<PathBuf>,
    /// Where to: the same forms; files that are there and the same are not copied again
    #[arg(long, value_name = "PLACE", requires = "files_from")]
    pub files_to: Option<PathBuf>,
}
