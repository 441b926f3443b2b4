//! `muster kubeconfig`: how other programs reach the server in the data directory.

use std::fs;
use std::io;
use std::path::absolute;
use std::process::ExitCode;

use anyhow::Context as _;
use muster_client::ClientError;

use crate::cli::{Globals, KubeconfigArgs};
use crate::data_dir::DataDir;
use crate::output::streams;

/// Prints the file, or where it is.
pub fn run(globals: &Globals, args: &KubeconfigArgs) -> anyhow::Result<ExitCode> {
    let path = match &globals.kubeconfig {
        Some(named) => named.clone(),
        None => DataDir::choose(globals.data.as_deref())?.kubeconfig(),
    };
    let path = absolute(path)?;
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            anyhow::Error::new(ClientError::NoKubeconfigInData { path: path.display().to_string() })
        }
        _ => anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
    })?;
    if args.path {
        let path = path.to_str().context("the path is not UTF-8 text")?;
        streams::print(&format!("{path}\n"))?;
    } else {
        streams::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}
