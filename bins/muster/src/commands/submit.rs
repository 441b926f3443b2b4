//! `muster submit`: one task, or an array of them.

mod array;
mod creation;

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use muster_client::Client;
use muster_client::tasks::LogOptions;
use muster_types::State;
use serde_json::{Value, json};

use self::array::{Member, Template};
use self::creation::{Manner, create_all};
use super::following::{copy_log, wait_for_end};
use super::new_task::NewTask;
use super::outcome::{Outcome, why};
use super::session::Session;
use super::tracking::{Seen, Tracking, name_of};
use super::{document_arg, task_names};
use crate::cli::{Globals, MadeOutput, SubmitArgs, state_of};
use crate::output::documents::{self, Language, List, hide_managed_fields};
use crate::output::streams;
use crate::output::tally::Tally;
use crate::output::tally_view::TallyView;

/// Makes what was asked for.
pub async fn run(globals: &Globals, args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    if !args.made.is_empty() {
        return submit_made(globals, args).await;
    }
    let task = describe(args)?;
    match &args.each_line {
        Some(path) => {
            let text = read_lines(path)?;
            let lines = text.lines().enumerate().map(|(at, line)| Member {
                index: u64::try_from(at).unwrap_or(u64::MAX).saturating_add(1),
                line: Some(Cow::Borrowed(line)),
            });
            let members: Vec<_> = lines.collect();
            if members.is_empty() {
                let shown = if path == "-" { "standard input" } else { path };
                streams::note(format!("{shown} has no lines, so there is nothing to do"));
                return Ok(ExitCode::SUCCESS);
            }
            submit_array(globals, args, &Template::new(task, true)?, &members).await
        }
        None => match &args.array {
            Some(array) => {
                let members = array.numbers().iter().map(|index| Member { index: *index, line: None });
                let members: Vec<_> = members.collect();
                submit_array(globals, args, &Template::new(task, false)?, &members).await
            }
            None => submit_one(globals, args, &task).await,
        },
    }
}

fn describe(args: &SubmitArgs) -> anyhow::Result<NewTask> {
    let mut task = NewTask::of(&args.task, &args.command)?;
    task.spec.addon = args.addon.clone().unwrap_or_default();
    task.spec.kind = args.kind.clone().unwrap_or_default();
    task.spec.extensions = (!args.extension.is_empty()).then(|| args.extension.clone());
    task.spec.data = args.input.as_deref().map(|text| document_arg::read("--input", text)).transpose()?;
    task.spec.suspend = args.suspend;
    Ok(task)
}

fn read_lines(path: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if path == "-" {
        io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("cannot read {path}, named by --each-line"))?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        anyhow::anyhow!("line {line} of {path} is not UTF-8 text")
    })
}

async fn submit_one(globals: &Globals, args: &SubmitArgs, task: &NewTask) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let (client, namespace) = (&session.client, session.namespace());
    let body = task.object().to_string().into_bytes();
    let made: Value = serde_json::from_slice(&client.create_encoded(namespace, body).await?)
        .context("the server did not answer with a task")?;
    let name = name_of(&made).to_owned();
    if args.follow {
        streams::note(format!("task {name}"));
        let options = LogOptions { follow: true, ..LogOptions::default() };
        copy_log(client, namespace, &name, options).await?;
        let Outcome { code, note } = Outcome::of(&wait_for_end(client, namespace, &name).await?);
        if let Some(note) = note {
            streams::note(format!("error: {note}"));
        }
        return Ok(ExitCode::from(code));
    }
    print_made(args.output, vec![made])?;
    let well = !args.wait || wait_and_tell(client, namespace, &name).await?;
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Submits tasks that are there and were held back.
async fn submit_made(globals: &Globals, args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let (client, namespace) = (&session.client, session.namespace());
    let names = task_names::all_bare(&args.made);
    for name in &names {
        match client.patch_task(namespace, name, &json!({"spec": {"suspend": false}})).await {
            Ok(task) => print_made(args.output, vec![task])?,
            Err(error) => return Err(task_names::explain_missing(client, namespace, name, error).await),
        }
    }
    let mut well = true;
    for name in names.iter().filter(|_| args.wait) {
        well &= wait_and_tell(client, namespace, name).await?;
    }
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits for the end of a task. True if it succeeded.
async fn wait_and_tell(client: &Client, namespace: &str, name: &str) -> anyhow::Result<bool> {
    let ended = wait_for_end(client, namespace, name).await?;
    let state = state_of(&ended);
    let well = state == State::Succeeded;
    let why = if well { String::new() } else { format!(": {}", why(&ended)) };
    streams::note(format!("{name} {state}{why}"));
    Ok(well)
}

/// Prints tasks that were made, in the form that was asked for.
pub fn print_made(output: Option<MadeOutput>, made: Vec<Value>) -> anyhow::Result<()> {
    let language = match output {
        None => {
            made.iter().try_for_each(|task| streams::report(name_of(task)))?;
            return Ok(());
        }
        Some(MadeOutput::Name) => {
            made.iter().try_for_each(|task| streams::report(task_names::with_resource(name_of(task))))?;
            return Ok(());
        }
        Some(MadeOutput::Json) => Language::Json,
        Some(MadeOutput::Yaml) => Language::Yaml,
    };
    let mut list = (made.len() != 1).then(|| List::new(language));
    for mut task in made {
        hide_managed_fields(&mut task);
        let text = match &mut list {
            Some(list) => list.item(&task),
            None => documents::render(language, &task),
        };
        streams::print(&text)?;
    }
    if let Some(list) = list {
        streams::print(list.end())?;
    }
    Ok(())
}

async fn submit_array(
    globals: &Globals,
    args: &SubmitArgs,
    template: &Template,
    members: &[Member<'_>],
) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let (client, namespace) = (&session.client, session.namespace());
    let keep = args.output.is_some_and(|output| output != MadeOutput::Name);
    let tracking = Tracking::selected(client, namespace, Some(template.selector()));
    // From before the first task, so that nothing is missed.
    let revision = if args.wait { tracking.now().await? } else { String::new() };
    let tally = RefCell::new(Tally::new(members.len()));
    let creating = async {
        let made = create_all(client, namespace, template, members, Manner { keep, show: !args.wait }).await;
        if let Err(failed) = made {
            let (all, selector) = (members.len(), template.selector());
            match failed.made {
                0 => return Err(failed.error),
                made => bail!(
                    "{:#}; {made} of {all} tasks were made, cancel them with `muster cancel -l {selector}`",
                    failed.error
                ),
            }
        }
        match args.output {
            None => streams::report(template.selector())?,
            Some(MadeOutput::Name) => {
                let names = members.iter().map(|member| template.name(member.index));
                names.into_iter().try_for_each(|name| streams::report(task_names::with_resource(&name)))?;
            }
            Some(_) => print_made(args.output, made.unwrap_or_default())?,
        }
        Ok(())
    };
    if !args.wait {
        creating.await?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut view = TallyView::new(members.len());
    let watching = tracking.outline_from(revision, |seen| {
        let mut tally = tally.borrow_mut();
        match seen {
            Seen::Task(task) => tally.observe(name_of(task), state_of(task)),
            Seen::Gone(name) => tally.observe_gone(name),
            Seen::Listed => {}
        }
        view.show(&tally);
        Ok(if tally.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    tokio::try_join!(creating, watching)?;
    let tally = tally.into_inner();
    view.end(&tally);
    if tally.is_well() {
        return Ok(ExitCode::SUCCESS);
    }
    let selector = template.selector();
    streams::note(format!(
        "see `muster get tasks -l {selector} --field-selector status.state=Failed` and `muster logs NAME`"
    ));
    Ok(ExitCode::FAILURE)
}
