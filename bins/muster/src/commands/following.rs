//! Copying the log of a task to standard output or elsewhere, over lost connections.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
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

/// Where a log goes.
pub trait LogSink: Send {
    /// Takes the next part.
    fn put(&mut self, part: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Takes a remark about the log.
    fn note(&mut self, words: String) -> impl Future<Output = ()> + Send;
}

/// A log on standard output, with remarks on standard error.
pub struct Printed;

impl LogSink for Printed {
    async fn put(&mut self, part: Bytes) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(&part)?;
        out.flush()
    }

    async fn note(&mut self, words: String) {
        streams::note(words);
    }
}

/// Copies a log to its end, or to the end of the task if it is followed.
pub async fn copy_log(
    client: &Client,
    namespace: &str,
    name: &str,
    options: LogOptions,
) -> anyhow::Result<()> {
    let tries = if options.follow { MAX_FAILURES } else { 0 };
    LogCopy::new(options, Printed).run(client, namespace, name, tries).await
}

/// A log of which some may have been printed.
///
/// As long as nothing breaks, one request follows the task through all of its attempts. After that each attempt is asked for
/// by its number, so that what was printed of it is known.
pub struct LogCopy<S> {
    options: LogOptions,
    sink: S,
    begun: bool,
    /// The attempt that is being read, once that has to be known.
    attempt: Option<u32>,
    /// Bytes that were printed of what is being read.
    printed: u64,
    /// Bytes that come again and are not printed again.
    skip: u64,
}

/// How reading ended.
enum Copied {
    Whole,
    Broken(ClientError),
    Refused(ClientError),
}

/// What comes after the end of a stream.
enum After {
    Nothing,
    /// The next attempt.
    Attempt(u32),
    /// The same again: the stream ended too early.
    Again(anyhow::Error),
}

impl<S: LogSink> LogCopy<S> {
    /// A log of which nothing was printed.
    pub fn new(options: LogOptions, sink: S) -> Self {
        Self { options, sink, begun: false, attempt: None, printed: 0, skip: 0 }
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
        if std::mem::replace(&mut self.begun, true) {
            self.find_place(client, namespace, name).await;
        }
        loop {
            let broken = match self.copy(client, namespace, name).await? {
                Copied::Refused(error) => return Err(explain_missing(client, namespace, name, error).await),
                Copied::Broken(error) => error.into(),
                Copied::Whole => match self.look_further(client, namespace, name).await {
                    After::Nothing => return Ok(()),
                    After::Attempt(next) => {
                        (self.attempt, self.printed, self.skip) = (Some(next), 0, 0);
                        continue;
                    }
                    After::Again(error) => error,
                },
            };
            if failures >= tries {
                return Err(broken);
            }
            if failures == 0 {
                self.sink.note(format!("{broken}; trying again")).await;
            }
            let pause = Duration::from_millis(100).saturating_mul(1 << failures.min(8));
            tokio::time::sleep(pause.min(MAX_PAUSE)).await;
            failures += 1;
            self.find_place(client, namespace, name).await;
        }
    }

    /// Whether there is more. A server that stops ends a log that is followed as if the task had ended.
    async fn look_further(&self, client: &Client, namespace: &str, name: &str) -> After {
        if !self.options.follow || self.options.attempt.is_some() {
            return After::Nothing;
        }
        let read = self.attempt.unwrap_or(u32::MAX);
        let goes_on = |task: &Value| state_of(task).is_terminal() || attempt_of(task) > read;
        let seen = match self.attempt {
            // This stream goes on by itself.
            None => wait_for_task(client, namespace, name, |_| true).await,
            Some(_) => wait_for_task(client, namespace, name, goes_on).await,
        };
        match seen {
            Ok(task) if attempt_of(&task) > read => After::Attempt(read + 1),
            Ok(task) if state_of(&task).is_terminal() => After::Nothing,
            Ok(_) => {
                let reason = "it ended the log before the task".to_owned();
                After::Again(ClientError::Unreachable { url: client.url().to_owned(), reason }.into())
            }
            Err(error) if is_transient(&error) => After::Again(error),
            // It is gone, and its log with it.
            Err(_) => After::Nothing,
        }
    }

    /// Where to go on after a connection broke.
    async fn find_place(&mut self, client: &Client, namespace: &str, name: &str) {
        let Ok(task) = wait_for_task(client, namespace, name, |_| true).await else { return };
        let (first, latest) = (self.attempt.is_none(), attempt_of(&task));
        if first && self.options.follow && self.options.attempt.is_none() {
            self.attempt = (latest > 0).then_some(latest);
        }
        // One request may have gone through several attempts, and may have begun in the middle.
        let unknown = first && self.options.attempt.is_none() && latest > 1;
        let partial = self.options.tail.take().is_some() | self.options.since_seconds.take().is_some();
        if self.printed > 0 && (unknown || partial) {
            self.sink.note("this is the output from the beginning:".to_owned()).await;
            self.printed = 0;
        }
        self.skip = self.printed;
        self.printed = 0;
    }

    async fn copy(&mut self, client: &Client, namespace: &str, name: &str) -> io::Result<Copied> {
        let failed = |error: ClientError| {
            if error.is_transient() { Copied::Broken(error) } else { Copied::Refused(error) }
        };
        let options = LogOptions { attempt: self.options.attempt.or(self.attempt), ..self.options.clone() };
        let mut log = match client.log(namespace, name, &options).await {
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
            self.sink.put(part).await?;
        }
    }
}

fn attempt_of(task: &Value) -> u32 {
    task["status"]["attempt"].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
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
