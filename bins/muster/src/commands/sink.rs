//! `muster sink`: where messages go, and how that stands.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use muster_client::Resource;
use muster_client::client::Form;
use muster_types::Timestamp;
use muster_types::event_sink::{EventSinkSpec, REPLAY_REQUEST, TEST_REQUEST};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::session::Session;
use super::task_names::fresh_name;
use super::{describe, get};
use crate::cli::{DescribeArgs, GetArgs, Globals, SelectArgs, SinkCommand};
use crate::output::streams;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Carries out a verb.
pub async fn run(globals: &Globals, command: SinkCommand) -> anyhow::Result<ExitCode> {
    match command {
        SinkCommand::List { all_namespaces, output } => {
            let args = GetArgs {
                what: vec!["eventsinks".to_owned()],
                select: select(all_namespaces),
                output,
                watch: false,
                limit: None,
                ignore_not_found: false,
                no_headers: false,
                show_managed_fields: false,
            };
            get::run(globals, &args).await
        }
        SinkCommand::Describe(sink) => {
            let what = vec![format!("eventsink/{}", sink.name)];
            describe::run(globals, &DescribeArgs { what, select: select(false) }).await
        }
        SinkCommand::Pause(sink) => suspend(globals, &sink.name, true).await,
        SinkCommand::Resume(sink) => suspend(globals, &sink.name, false).await,
        SinkCommand::Test { sink, timeout } => {
            let request = fresh_name("test")?;
            let asked =
                Asked { annotation: TEST_REQUEST, field: "test", request, patience: timeout.as_std() };
            asked.carry_out(globals, &sink.name).await
        }
        SinkCommand::Replay { sink, from, timeout } => {
            if from.parse::<u64>().is_err() && from.parse::<Timestamp>().is_err() {
                bail!("--from {from} is neither a revision nor a time such as 2026-11-15T12:00:00Z");
            }
            let request = format!("{from}#{}", fresh_name("replay")?);
            let asked =
                Asked { annotation: REPLAY_REQUEST, field: "replay", request, patience: timeout.as_std() };
            asked.carry_out(globals, &sink.name).await
        }
    }
}

fn select(all_namespaces: bool) -> SelectArgs {
    SelectArgs { all_namespaces, selector: None, field_selector: None }
}

async fn suspend(globals: &Globals, name: &str, suspend: bool) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let resource = Resource::known::<EventSinkSpec>();
    let change = json!({"spec": {"suspend": suspend}});
    session.client.patch(&resource, session.namespace(), name, &change).await?;
    streams::report(format!("{name} {}", if suspend { "paused" } else { "resumed" }))?;
    Ok(ExitCode::SUCCESS)
}

/// A request to the relay.
struct Asked {
    annotation: &'static str,
    /// Where in the status the answer is.
    field: &'static str,
    request: String,
    patience: Duration,
}

impl Asked {
    async fn carry_out(&self, globals: &Globals, name: &str) -> anyhow::Result<ExitCode> {
        let session = Session::open(globals).await?;
        let resource = Resource::known::<EventSinkSpec>();
        let namespace = session.namespace();
        let mut change = json!({"metadata": {"annotations": {}}});
        change["metadata"]["annotations"][self.annotation] = json!(self.request);
        let before = session.client.get(&resource, namespace, name, Form::Objects).await?;
        if before["spec"]["suspend"] == true {
            bail!("{name} is paused; resume it first with `muster sink resume {name}`");
        }
        let mut sink = session.client.patch(&resource, namespace, name, &change).await?;
        let deadline = Instant::now() + self.patience;
        loop {
            let answer = &sink["status"][self.field];
            if answer["request"] == self.request.as_str() {
                return tell(name, answer);
            }
            if Instant::now() >= deadline {
                bail!(
                    "{name} did not answer; does the server have the role relay? See `muster sink describe {name}`"
                );
            }
            sleep(PAUSE).await;
            sink = session.client.get(&resource, namespace, name, Form::Objects).await?;
        }
    }
}

fn tell(name: &str, answer: &Value) -> anyhow::Result<ExitCode> {
    let message = answer["message"].as_str().unwrap_or_default();
    if answer["done"] == true {
        streams::report(format!("{name}: {message}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    bail!("{name}: {message}");
}
