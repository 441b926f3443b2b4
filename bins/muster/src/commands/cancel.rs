//! `muster cancel`: tasks that nobody wants any more.

use std::process::ExitCode;

use futures_util::{StreamExt as _, stream};
use muster_client::client::Form;
use muster_client::{Client, Resource};
use muster_types::State;
use serde_json::{Value, json};

use super::following::wait_for_end;
use super::session::Session;
use super::task_names::all_bare;
use super::tracking::name_of;
use super::which_tasks::{AT_ONCE, check_names, list};
use super::work::Work;
use crate::cli::{CancelArgs, Globals, state_of};
use crate::output::progress::Progress;
use crate::output::streams;

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canceled {
    /// It had ended before.
    Ended(State),
    /// It is canceled, or will be when its attempt has ended.
    Asked(State),
}

impl Canceled {
    /// What stands behind the name of the task.
    pub fn words(self) -> String {
        match self {
            Self::Ended(state) => format!("had ended as {state}"),
            Self::Asked(State::Canceled) => "canceled".to_owned(),
            Self::Asked(state) if state.is_terminal() => format!("ended as {state}"),
            Self::Asked(_) => "canceling".to_owned(),
        }
    }
}

/// Cancels what was asked for.
pub async fn run(globals: &Globals, args: &CancelArgs) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    if let Some(works) = Work::parse_all("cancel", &args.which.tasks)? {
        return cancel_works(&session, &works, args.wait).await;
    }
    let names = all_bare(&args.which.tasks);
    let tasks = if names.is_empty() {
        let mut tasks = list(&session, args.which.selector.as_deref()).await?;
        tasks.retain(|task| !state_of(task).is_terminal());
        if tasks.is_empty() {
            streams::note("No task is left that could be canceled.");
            return Ok(ExitCode::SUCCESS);
        }
        tasks
    } else {
        check_names(&session, &names).await?
    };
    let mut failed = false;
    let mut progress = Progress::new("canceled", tasks.len());
    let mut outcomes = stream::iter(tasks.iter().enumerate())
        .map(|(at, task)| {
            let session = &session;
            async move { (at, name_of(task), cancel(session, task, args.wait).await) }
        })
        .buffered(AT_ONCE);
    while let Some((at, name, outcome)) = outcomes.next().await {
        progress.clear();
        match outcome {
            Ok(canceled) => streams::report(format!("{name} {}", canceled.words()))?,
            Err(error) => {
                streams::note(format!("error: {name}: {error:#}"));
                failed = true;
            }
        }
        progress.step(at);
    }
    progress.clear();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Cancels jobs and groups, and waits for their end if that is asked for.
async fn cancel_works(session: &Session, works: &[Work], wait: bool) -> anyhow::Result<ExitCode> {
    for work in works {
        let name = &work.name;
        let before = work.get(session).await?;
        if state_of(&before).is_terminal() {
            streams::report(format!("{name} had ended as {}", state_of(&before)))?;
            continue;
        }
        let change = json!({"spec": {"cancel": true}});
        session.client.patch(&work.resource, session.namespace(), name, &change).await?;
        if wait {
            let ended = work.wait_for_end(session).await?;
            streams::report(format!("{name} ended as {}", state_of(&ended)))?;
        } else {
            streams::report(format!("{name} canceling"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn cancel(session: &Session, task: &Value, wait: bool) -> anyhow::Result<Canceled> {
    let state = state_of(task);
    if state.is_terminal() {
        return Ok(Canceled::Ended(state));
    }
    let (client, namespace, name) = (&session.client, session.namespace(), name_of(task));
    let asked = ask(client, namespace, name).await?;
    if wait && matches!(asked, Canceled::Asked(_)) {
        return Ok(Canceled::Asked(state_of(&wait_for_end(client, namespace, name).await?)));
    }
    Ok(asked)
}

/// Asks for the end of a task that had not ended when it was last seen.
pub async fn ask(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Canceled> {
    match client.patch_task(namespace, name, &json!({"spec": {"cancel": true}})).await {
        Ok(asked) => Ok(Canceled::Asked(state_of(&asked))),
        // It may have ended meanwhile, and then it cannot be changed.
        Err(error) => match client.get(&Resource::tasks(), namespace, name, Form::Objects).await {
            Ok(task) if state_of(&task).is_terminal() => Ok(Canceled::Ended(state_of(&task))),
            _ => Err(error.into()),
        },
    }
}
