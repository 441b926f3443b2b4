//! `muster retry job/NAME`: a new job with only what did not succeed.

use std::collections::BTreeMap;
use std::process::ExitCode;

use muster_client::client::ApplyOptions;
use muster_types::{Job, JsonText, State};
use muster_workflows::group_render::{GROUP, JOB, PLACE};
use muster_workflows::job_render::group_name;
use muster_workflows::job_retry::retry_job;
use serde_json::Value;

use super::session::Session;
use super::task_names::fresh_name;
use super::which_tasks::list;
use super::work::Work;
use crate::cli::state_of;
use crate::output::streams;

/// What a retried object names the old one in.
const RETRY_OF: &str = "muster.dev/retry-of";

/// Makes new jobs and prints their names.
pub async fn run(session: &Session, works: &[Work]) -> anyhow::Result<ExitCode> {
    for work in works {
        if work.resource.kind != "Job" {
            anyhow::bail!(
                "a {} cannot be retried by itself; retry its job, or its tasks with -l {GROUP}={}",
                work.resource.kind,
                work.name
            );
        }
        let old = Job::from_document(&work.get(session).await?)?;
        let state = old.status.current_state();
        if !state.is_terminal() {
            anyhow::bail!("job {} has not ended ({state}); cancel it or wait for its end", work.name);
        }
        let tasks = list(session, Some(&format!("{JOB}={}", work.name))).await?;
        let ended = read_members(&old, &tasks);
        let member =
            |group: &str, place: u32| ended.get(&(group_name(&old.metadata.name, group), place)).copied();
        let Some(spec) = retry_job(&old, member) else {
            streams::note(format!("Everything in job {} succeeded.", work.name));
            continue;
        };
        let mut new = Job::new(session.namespace(), &fresh_name(&work.name)?, spec);
        new.metadata.labels.clone_from(&old.metadata.labels);
        new.metadata.annotations.insert(RETRY_OF.to_owned(), work.name.clone());
        let options = ApplyOptions { manager: "muster".to_owned(), force: false, dry_run: false };
        let document = new.to_document()?;
        let made = session.client.create(&work.resource, session.namespace(), &document, &options).await?;
        streams::report(super::tracking::name_of(&made.object))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How the tasks of a job ended, by the name of their group and their place. Those of another job of that name are not its.
fn read_members(job: &Job, tasks: &[Value]) -> BTreeMap<(String, u32), State> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members = tasks.iter().filter_map(|task| {
        let metadata = &task["metadata"];
        let group = text(&metadata["labels"][GROUP]);
        let place = metadata["annotations"][PLACE].as_str()?.parse().ok()?;
        group.starts_with(&job.metadata.name).then(|| ((group, place), state_of(task)))
    });
    members.collect()
}
