//! `muster retry`: new tasks like some that have ended.

use std::process::ExitCode;

use futures_util::{StreamExt as _, stream};
use muster_types::State;

use super::retry_job;
use super::session::Session;
use super::task_names::{all_bare, explain_missing};
use super::tracking::name_of;
use super::which_tasks::{AT_ONCE, list};
use super::work::Work;
use crate::cli::{Globals, RetryArgs, state_of};
use crate::output::streams;

/// Makes new tasks and prints their names.
pub async fn run(globals: &Globals, args: &RetryArgs) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    if let Some(works) = Work::parse_all("retry", &args.tasks)? {
        return retry_job::run(&session, &works).await;
    }
    let mut names = all_bare(&args.tasks);
    if names.is_empty() {
        let tasks = list(&session, args.selector.as_deref()).await?;
        let lost = tasks.iter().filter(|task| matches!(state_of(task), State::Failed | State::Canceled));
        names = lost.map(|task| name_of(task).to_owned()).collect();
        if names.is_empty() {
            streams::note("No task failed or was canceled.");
            return Ok(ExitCode::SUCCESS);
        }
    }
    let (client, namespace) = (&session.client, session.namespace());
    let mut made = stream::iter(&names)
        .map(|name| async move {
            match client.retry_task(namespace, name).await {
                Ok(task) => Ok(task),
                Err(error) => Err(explain_missing(client, namespace, name, error).await),
            }
        })
        .buffered(AT_ONCE);
    let mut failed = false;
    while let Some(task) = made.next().await {
        match task {
            Ok(task) => streams::report(name_of(&task))?,
            Err(error) => {
                streams::note(format!("error: {error:#}"));
                failed = true;
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
