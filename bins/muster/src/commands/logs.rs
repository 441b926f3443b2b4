//! `muster logs`: what a task wrote.

use std::process::ExitCode;

use muster_client::tasks::LogOptions;

use super::following::copy_log;
use super::kube_job_logs;
use super::session::Session;
use super::task_names::bare;
use crate::cli::{Globals, LogsArgs};

/// Shows a log.
pub async fn run(globals: &Globals, args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    if let Some(name) = kube_job_logs::bare(&args.task) {
        return kube_job_logs::run(&session, name, args).await;
    }
    let options = LogOptions {
        container: args.container.clone(),
        attempt: args.attempt,
        follow: args.follow,
        tail: args.tail,
        since_seconds: args.since.map(|since| since.as_std().as_secs().max(1)),
    };
    copy_log(&session.client, session.namespace(), bare(&args.task), options).await?;
    Ok(ExitCode::SUCCESS)
}
