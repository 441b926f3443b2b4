//! Copying the log of a task to standard output, over lost connections.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::time::Duration;

use muster_client::tasks::LogOptions;
use muster_client::{Client, ClientError};
use serde_json::Value;

use super::task_names::explain_missing;
use super::tracking::{Seen, Tracking};
use crate::cli::state_of;
use crate::output::streams;

/// Tries in a row before giving up.
const MAX_FAILURES: u32 = 10;
/// Longest pause between tries.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Copies a log to its end, or to the end of the task if it is followed.
pub async fn copy_log(
    client: &Client,
    namespace: &str,
    name: &str,
    options: &LogOptions,
) -> anyhow::Result<()> {
    let mut options = options.clone();
    // Bytes that were printed, all of one attempt.
    let mut printed = 0;
    let mut skip = 0;
    let mut failures = 0;
    loop {
        let broken = match copy_once(client, namespace, name, &options, &mut skip, &mut printed).await? {
            Copied::Whole => return Ok(()),
            Copied::Missing(error) => return Err(explain_missing(client, namespace, name, error).await),
            Copied::Broken(error) => error,
        };
        if !options.follow || failures >= MAX_FAILURES {
            return Err(broken.into());
        }
        if failures == 0 {
            streams::note(format!("{broken}; trying again"));
        }
        let pause = Duration::from_millis(100).saturating_mul(1 << failures.min(8));
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
        failures += 1;
        let Ok(task) = wait_for_task(client, namespace, name, |_| true).await else { continue };
        // What was printed is known to be of the first attempt only if there is no second one.
        let same = task["status"]["attempt"].as_u64() == Some(1);
        if printed > 0 && !same && options.attempt.is_none() {
            streams::note("the task is being tried again; this is its output from the beginning:");
        }
        skip = if same || options.attempt.is_some() { printed } else { 0 };
        options.tail = None;
        options.since_seconds = None;
        printed = 0;
    }
}

enum Copied {
    Whole,
    Broken(ClientError),
    Missing(ClientError),
}

async fn copy_once(
    client: &Client,
    namespace: &str,
    name: &str,
    options: &LogOptions,
    skip: &mut u64,
    printed: &mut u64,
) -> io::Result<Copied> {
    let broken = |error: ClientError| {
        if error.is_transient() { Copied::Broken(error) } else { Copied::Missing(error) }
    };
    let mut log = match client.log(namespace, name, options).await {
        Ok(log) => log,
        Err(error) => return Ok(broken(error)),
    };
    loop {
        let mut part = match log.next().await {
            Ok(Some(part)) => part,
            Ok(None) => return Ok(Copied::Whole),
            Err(error) => return Ok(broken(error)),
        };
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        *printed = printed.saturating_add(length);
        let known = length.min(*skip);
        *skip -= known;
        let part = part.split_off(usize::try_from(known).unwrap_or(part.len()));
        let mut out = io::stdout().lock();
        out.write_all(&part)?;
        out.flush()?;
    }
}

/// Waits until something is true of a task.
pub async fn wait_for_task(
    client: &Client,
    namespace: &str,
    name: &str,
    wanted: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let mut found = None;
    let mut any = false;
    let tracking = Tracking::one(client, namespace, name);
    tracking
        .run(|seen| {
            match seen {
                Seen::Task(task) if wanted(task) => found = Some(task.clone()),
                Seen::Task(_) => any = true,
                Seen::Listed if any => {}
                Seen::Gone(_) | Seen::Listed => anyhow::bail!("task {name} was deleted"),
            }
            Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .await?;
    found.ok_or_else(|| anyhow::anyhow!("task {name} was not seen any more"))
}

/// Waits until a task has ended.
pub async fn wait_for_end(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Value> {
    wait_for_task(client, namespace, name, |task| state_of(task).is_terminal()).await
}
