//! `muster run`: one command as a task, in the foreground.
//!
//! Where no server is named, the task runs on this machine: by the server that holds the data directory, else by one that
//! is part of this process and lives as long as the task does.

mod guests;
mod here;

use std::process::ExitCode;
use std::time::Duration;

use muster_client::tasks::LogOptions;
use muster_client::{Access, Client, ClientError};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_types::State;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::guests::Guests;
use super::following::{LogCopy, Printed, is_transient, wait_for_end};
use super::new_task::NewTask;
use super::outcome::Outcome;
use super::session::Session;
use super::signals::Signals;
use super::task_names::fresh_name;
use super::{explain, start_logging};
use crate::cli::{Globals, LimitArgs, RunArgs, StoreArgs, state_of, untold};
use crate::data_dir::DataDir;
use crate::output::streams;
use crate::server::{EngineOptions, Options, RelayOptions, Server, is_in_use};

/// How long a server that starts or stops may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time between two looks at such a server.
const PAUSE: Duration = Duration::from_millis(50);
/// The exit code of a program that was ended because nobody reads what it writes.
const BROKEN_PIPE: u8 = 141;
/// How often a server that breaks off is asked again.
const TRIES: u32 = 10;
/// How long a user waits without asking why.
const A_WHILE: Duration = Duration::from_secs(2);

/// Runs a command.
pub fn run(globals: &Globals, args: &RunArgs) -> anyhow::Result<ExitCode> {
    start_logging(globals)?;
    // An error says that somebody did it before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let code = runtime.block_on(run_here_or_there(globals, args));
    // Nothing that still goes on is of any use.
    runtime.shutdown_background();
    code
}

async fn run_here_or_there(globals: &Globals, args: &RunArgs) -> anyhow::Result<ExitCode> {
    let begun = SystemClock.now();
    let mut signals = Signals::new()?;
    let task = NewTask::of(&args.task, &args.command)?;
    let name = fresh_name(&task.stem())?;
    let mut log = LogCopy::new(LogOptions { follow: true, ..LogOptions::default() }, Printed);
    if globals.server.is_some() || globals.kubeconfig.is_some() {
        let session = Session::open(globals).await?;
        create(&session, &name, &task).await?;
        return see_through(&session, &name, &mut log, &mut signals, TRIES).await;
    }
    let data = DataDir::choose(globals.data.as_deref())?;
    data.create()?;
    let task = if args.in_work_dir { task } else { here::in_current_directory(task)? };
    let limits = LimitArgs::default();
    // Its own, whatever the environment says of servers.
    let store = StoreArgs { store: None, files: None, ..StoreArgs::default() };
    let mut deadline = Instant::now() + PATIENCE;
    loop {
        let base_env = if args.clean_env { EngineOptions::clean_env() } else { here::environment() };
        let engine = Some(EngineOptions::new(untold(), base_env).only_since(begun));
        let options = Options {
            listen: "127.0.0.1:0",
            tls: None,
            store: &store,
            limits: &limits,
            engine,
            bridge: None,
            relay: Some(RelayOptions::default()),
            web: false,
        };
        let held = match Server::start(&data, &options).await {
            Ok(server) => {
                return run_embedded(globals, server, &name, &task, &mut log, &mut signals).await;
            }
            Err(error) if is_in_use(&error) => error,
            Err(error) => return Err(error),
        };
        // It may be starting, or stopping: then it does not answer, or its kubeconfig is not there.
        let unanswered = match Session::of_data(globals, &data).await {
            Ok(session) => match create(&session, &name, &task).await {
                Ok(()) => match see_through(&session, &name, &mut log, &mut signals, 0).await {
                    Err(error) if is_transient(&error) => {
                        // It is gone. What it was doing goes on with the next one, which may be our own.
                        deadline = Instant::now() + PATIENCE;
                        error
                    }
                    ended => return ended,
                },
                Err(error) if error.is_transient() => error.into(),
                Err(error) => return Err(error.into()),
            },
            Err(error) => error,
        };
        if Instant::now() >= deadline {
            return Err(unanswered.context(held));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn run_embedded(
    globals: &Globals,
    server: Server,
    name: &str,
    task: &NewTask,
    log: &mut LogCopy<Printed>,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let access = Access::local(&server.url, server.admin.clone(), "the server in this process")?;
    let mut guests = Guests::new(&server.store)?;
    let session = Session::with(globals, access)?;
    create(&session, name, &task.tried_once_here()).await?;
    let code = see_through(&session, name, log, signals, TRIES).await?;
    drop(session);
    guests.see_off(name, signals).await;
    server.shutdown().request();
    server.wait().await?;
    Ok(code)
}

/// Makes the task. Its name is its own: if the answer to a request was lost, the next one finds it there.
async fn create(session: &Session, name: &str, task: &NewTask) -> Result<(), ClientError> {
    let object = task.object_with(&json!({"name": name, "labels": task.labels}));
    let made = session.client.create_encoded(session.namespace(), object.to_string().into_bytes()).await;
    match made {
        Err(error) if error.is_conflict() => Ok(()),
        other => other.map(drop),
    }
}

/// Shows the output of the task and waits for its end.
async fn see_through(
    session: &Session,
    name: &str,
    log: &mut LogCopy<Printed>,
    signals: &mut Signals,
    tries: u32,
) -> anyhow::Result<ExitCode> {
    let (client, namespace) = (&session.client, session.namespace());
    let mut canceled_by = None;
    let following = async {
        log.run(client, namespace, name, tries).await?;
        wait_for_end(client, namespace, name).await
    };
    tokio::pin!(following);
    let waiting = say_why_it_waits(client, namespace, name);
    tokio::pin!(waiting);
    let mut said = false;
    let seen = loop {
        tokio::select! {
            ended = &mut following => break ended,
            () = &mut waiting, if !said => said = true,
            word = signals.next() => {
                if canceled_by.is_some() {
                    std::process::exit(word.code());
                }
                canceled_by = Some(word);
                streams::note("canceling the task; once more leaves at once");
                cancel(client, namespace, name).await;
            }
        }
    };
    let ended = match seen {
        Err(error) if streams::is_closed(&error) => {
            // Nobody reads its output any more. A command of a shell would be ended by SIGPIPE.
            cancel(client, namespace, name).await;
            drop(wait_for_end(client, namespace, name).await);
            return Ok(ExitCode::from(BROKEN_PIPE));
        }
        ended => ended?,
    };
    if let (State::Canceled, Some(word)) = (state_of(&ended), canceled_by) {
        return Ok(ExitCode::from(u8::try_from(word.code()).unwrap_or(1)));
    }
    let Outcome { code, note } = Outcome::of(&ended);
    if let Some(note) = note {
        streams::note(format!("error: {note}"));
    }
    Ok(ExitCode::from(code))
}

async fn cancel(client: &Client, namespace: &str, name: &str) {
    if let Err(error) = client.patch_task(namespace, name, &json!({"spec": {"cancel": true}})).await {
        streams::note(format!("error: {error}"));
    }
}

/// Tells the user after a while what the task waits for, if it does.
async fn say_why_it_waits(client: &Client, namespace: &str, name: &str) {
    tokio::time::sleep(A_WHILE).await;
    let Ok(document) = client.explain_task(namespace, name).await else { return };
    let waits = |state: State| {
        matches!(state, State::Created | State::Ready | State::Postponed | State::QuotaBlocked)
    };
    if waits(state_in(&document))
        && let Ok(why) = explain::read(document)
    {
        streams::note(format!("{name} waits: {}", explain::sentences(&why).join(" ")));
    }
}

fn state_in(document: &Value) -> State {
    document["state"].as_str().and_then(|word| word.parse().ok()).unwrap_or_default()
}
