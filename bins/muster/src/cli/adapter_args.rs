//! Flags of `adapter`.

use std::path::PathBuf;

use clap::Subcommand;

/// Verbs of `adapter`.
#[derive(Debug, Subcommand)]
pub enum AdapterCommand {
    /// Show every step of an adapter on a resource, and what it would make; nothing is made
    DryRun {
        /// File with the Adapter
        #[arg(long, short, value_name = "FILE")]
        file: PathBuf,
        /// Name of the adapter, if the file has several [default: the first]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The managed resource, such as cluster/blue
        #[arg(long, value_name = "KIND/NAME")]
        resource: String,
    },
}
