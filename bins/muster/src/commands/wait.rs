//! `muster wait`: until something is true of some tasks.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::ExitCode;

use muster_types::State;
use serde_json::Value;

use super::outcome::why;
use super::session::Session;
use super::task_names::all_bare;
use super::tracking::{Seen, Tracking, name_of};
use super::which_tasks::check_names;
use super::work::Work;
use crate::cli::{Globals, Goal, Reached, WaitArgs, state_of};
use crate::output::streams;

/// Waits for what was asked for.
pub async fn run(globals: &Globals, args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    if let Some(works) = Work::parse_all("wait", &args.which.tasks)? {
        return wait_for_works(&session, &works, args).await;
    }
    let names = all_bare(&args.which.tasks);
    if args.goal != Goal::Deleted {
        check_names(&session, &names).await?;
    }
    let mut waiting = Waiting { goal: args.goal.clone(), ..Waiting::default() };
    let (client, namespace) = (&session.client, session.namespace());
    let tracking = match names.as_slice() {
        [name] => Tracking::one(client, namespace, name),
        _ => Tracking::selected(client, namespace, args.which.selector.clone()),
    };
    if names.is_empty() {
        let selected = super::which_tasks::list(&session, args.which.selector.as_deref()).await?;
        if selected.is_empty() {
            anyhow::bail!("no task is selected, so there is nothing to wait for");
        }
        waiting.open.extend(selected.iter().map(|task| (name_of(task).to_owned(), false)));
    } else {
        waiting.open.extend(names.into_iter().map(|name| (name, false)));
    }
    let seen_all = tracking.run(|seen| {
        match seen {
            Seen::Task(task) => waiting.see(task)?,
            Seen::Gone(name) => waiting.see_gone(name)?,
            Seen::Listed => waiting.miss()?,
        }
        Ok(if waiting.open.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    match args.timeout {
        None => seen_all.await?,
        Some(timeout) => {
            if let Ok(ended) = tokio::time::timeout(timeout.as_std(), seen_all).await {
                ended?;
            } else {
                let left: Vec<_> = waiting.open.keys().take(5).map(String::as_str).collect();
                let more = if waiting.open.len() > left.len() { " and others" } else { "" };
                anyhow::bail!(
                    "waited {timeout} in vain for {}{more}; `muster explain NAME` says why",
                    left.join(", ")
                );
            }
        }
    }
    Ok(if waiting.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Waits for jobs and groups, one after the other.
async fn wait_for_works(session: &Session, works: &[Work], args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let mut failed = false;
    let all = async {
        for work in works {
            if args.goal != Goal::Deleted {
                work.get(session).await?;
            }
            let mut waiting = Waiting { goal: args.goal.clone(), ..Waiting::default() };
            waiting.open.insert(work.name.clone(), false);
            let see = |seen: Seen<'_>| {
                match seen {
                    Seen::Task(object) => waiting.see(object)?,
                    Seen::Gone(name) => waiting.see_gone(name)?,
                    Seen::Listed => waiting.miss()?,
                }
                Ok(if waiting.open.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            work.track(session).run(see).await?;
            failed |= waiting.failed;
        }
        anyhow::Ok(())
    };
    match args.timeout {
        None => all.await?,
        Some(timeout) => match tokio::time::timeout(timeout.as_std(), all).await {
            Ok(ended) => ended?,
            Err(_) => anyhow::bail!("waited {timeout} in vain; `muster watch job/NAME` shows how far it is"),
        },
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

struct Waiting {
    goal: Goal,
    /// Tasks that are not there yet, and whether they were seen.
    open: BTreeMap<String, bool>,
    failed: bool,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { goal: Goal::Ended, open: BTreeMap::new(), failed: false }
    }
}

impl Waiting {
    fn see(&mut self, task: &Value) -> anyhow::Result<()> {
        let name = name_of(task);
        let Some(seen) = self.open.get_mut(name) else { return Ok(()) };
        *seen = true;
        let state = state_of(task);
        match self.goal.look(task) {
            Reached::NotYet => return Ok(()),
            Reached::Yes => {
                let failed = self.goal == Goal::Ended && state != State::Succeeded;
                self.failed |= failed;
                let why = if failed { format!(": {}", why(task)) } else { String::new() };
                streams::report(format!("{name} {state}{why}"))?;
            }
            Reached::Never => {
                self.failed = true;
                streams::note(format!("error: {name} is {state}: {}", why(task)));
            }
        }
        self.open.remove(name);
        Ok(())
    }

    /// Those that were never seen are not there any more.
    fn miss(&mut self) -> anyhow::Result<()> {
        let unseen = self.open.iter().filter(|(_, seen)| !**seen).map(|(name, _)| name.clone());
        unseen.collect::<Vec<_>>().iter().try_for_each(|name| self.see_gone(name))
    }

    fn see_gone(&mut self, name: &str) -> anyhow::Result<()> {
        if self.open.remove(name).is_none() {
            return Ok(());
        }
        if self.goal == Goal::Deleted {
            streams::report(format!("{name} deleted"))?;
        } else {
            self.failed = true;
            streams::note(format!("error: {name} was deleted"));
        }
        Ok(())
    }
}
