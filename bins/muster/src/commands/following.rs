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
    options: LogOptions,
) -> anyhow::Result<()> {
    let tries = if options.follow { MAX_FAILURES } else { 0 };
    LogCopy::new(options).run(client, namespace, name, tries).await
}

/// A log of which some may have been printed.
pub struct LogCopy {
    options: LogOptions,
    begun: bool,
    /// Bytes that were printed of what is being read.
    printed: u64,
    /// Bytes that come again and are not printed again.
    skip: u64,
}

enum Copied {
    Whole,
    Broken(ClientError),
    Refused(ClientError),
}

impl LogCopy {
    /// A log of which nothing was printed.
    pub fn new(options: LogOptions) -> Self {
        Self { options, begun: false, printed: 0, skip: 0 }
    }

    /// Prints what was not printed yet. A connection that breaks is tried again so many times.
    pub async fn run(
        &mut self,
        client: &Client,
        namespace: &str,
        name: &str,
        tries: u32,
    ) -> anyhow::Result<()> {
        let mut failures = 0;
        loop {
            if std::mem::replace(&mut self.begun, true) {
                self.find_place(client, namespace, name).await;
            }
            let broken = match self.copy(client, namespace, name).await? {
                Copied::Whole => match self.check_end(client, namespace, name).await {
                    None => return Ok(()),
                    Some(error) => error,
                },
                Copied::Refused(error) => return Err(explain_missing(client, namespace, name, error).await),
                Copied::Broken(error) => error.into(),
            };
            if failures >= tries {
                return Err(broken);
            }
            if failures == 0 {
                streams::note(format!("{broken}; trying again"));
            }
            let pause = Duration::from_millis(100).saturating_mul(1 << failures.min(8));
            tokio::time::sleep(pause.min(MAX_PAUSE)).await;
            failures += 1;
        }
    }

    /// A server that stops ends a log that is followed as if the task had ended. Says so if it has not.
    async fn check_end(&self, client: &Client, namespace: &str, name: &str) -> Option<anyhow::Error> {
        if !self.options.follow || self.options.attempt.is_some() {
            return None;
        }
        match wait_for_task(client, namespace, name, |_| true).await {
            Ok(task) if state_of(&task).is_terminal() => None,
            Ok(_) => {
                let reason = "it ended the log before the task".to_owned();
                Some(ClientError::Unreachable { url: client.url().to_owned(), reason }.into())
            }
            Err(error) if is_transient(&error) => Some(error),
            // It is gone, and its log with it.
            Err(_) => None,
        }
    }

    /// Where to go on after a connection broke.
    async fn find_place(&mut self, client: &Client, namespace: &str, name: &str) {
        let Ok(task) = wait_for_task(client, namespace, name, |_| true).await else { return };
        // What was printed is known to be of the first attempt only if there is no second one.
        let same = self.options.attempt.is_some() || task["status"]["attempt"].as_u64() == Some(1);
        let whole_lines = self.options.tail.is_some() || self.options.since_seconds.is_some();
        if self.printed > 0 && (!same || whole_lines) {
            streams::note("this is the output from the beginning:");
        }
        self.skip = if same && !whole_lines { self.printed } else { 0 };
        self.options.tail = None;
        self.options.since_seconds = None;
        self.printed = 0;
    }

    async fn copy(&mut self, client: &Client, namespace: &str, name: &str) -> io::Result<Copied> {
        let failed = |error: ClientError| {
            if error.is_transient() { Copied::Broken(error) } else { Copied::Refused(error) }
        };
        let mut log = match client.log(namespace, name, &self.options).await {
            Ok(log) => log,
            Err(error) => return Ok(failed(error)),
        };
        loop {
            let mut part = match log.next().await {
                Ok(Some(part)) => part,
                Ok(None) => return Ok(Copied::Whole),
                Err(error) => return Ok(failed(error)),
            };
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            self.printed = self.printed.saturating_add(length);
            let known = length.min(self.skip);
            self.skip -= known;
            let part = part.split_off(usize::try_from(known).unwrap_or(part.len()));
            let mut out = io::stdout().lock();
            out.write_all(&part)?;
            out.flush()?;
        }
    }
}

/// True if the same request may succeed later.
pub fn is_transient(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_transient)
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
