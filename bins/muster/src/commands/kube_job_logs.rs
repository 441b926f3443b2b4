//! `muster logs kubejob/NAME`: what is kept of a job of a cluster.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::bail;
use muster_client::client::{Form, PageRequest, Selectors};
use muster_client::{Resource, Scope};
use muster_types::kube_job::{JOB_NAME, KeptLog, KubeJobSpec};

use super::session::Session;
use super::tracking::name_of;
use crate::cli::LogsArgs;
use crate::output::streams;

/// Objects of one job's name that are looked at.
const LOOKED_AT: usize = 500;

/// The name in `kubejob/NAME`; `None` if something else is meant.
pub fn bare(word: &str) -> Option<&str> {
    match word.split_once('/')? {
        ("kubejob" | "kubejobs" | "mkj" | "kubejob.muster.dev" | "kubejobs.muster.dev", name) => Some(name),
        _ => None,
    }
}

/// Shows the logs of all pods, one after the other.
pub async fn run(session: &Session, name: &str, args: &LogsArgs) -> anyhow::Result<ExitCode> {
    if args.follow || args.tail.is_some() || args.since.is_some() || args.attempt.is_some() {
        bail!("what is kept of a job is shown whole: --follow, --tail, --since and --attempt are for tasks");
    }
    let name = find(session, name).await?;
    let (client, namespace) = (&session.client, session.namespace());
    let all = client.job_logs(namespace, &name).await?;
    let is_part = |log: &KeptLog, wanted: &str| {
        let rest = log.container.strip_prefix(wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(".part"))
    };
    let is_wanted = |log: &&KeptLog| args.container.as_ref().is_none_or(|wanted| is_part(log, wanted));
    let wanted: Vec<&KeptLog> = all.iter().filter(is_wanted).collect();
    if wanted.is_empty() && !all.is_empty() {
        let known: Vec<String> = all.iter().map(|log| format!("{}/{}", log.pod, log.container)).collect();
        bail!("no such container was kept; there are {}", known.join(", "));
    }
    for log in &wanted {
        if wanted.len() > 1 {
            streams::note(format!("==> {} {}", log.pod, log.container));
        }
        let mut stream = client.job_log(namespace, &name, &log.pod, &log.container).await?;
        while let Some(piece) = stream.next().await? {
            io::stdout().write_all(&piece)?;
        }
        io::stdout().flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of the object: that one, or the newest that is kept of a job of that name.
async fn find(session: &Session, name: &str) -> anyhow::Result<String> {
    let resource = Resource::known::<KubeJobSpec>();
    match session.client.get(&resource, session.namespace(), name, Form::Metadata).await {
        Ok(_) => return Ok(name.to_owned()),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    let selectors = Selectors { labels: Some(format!("{JOB_NAME}={name}")), fields: None };
    let scope = Scope::Namespace(session.namespace());
    let request = PageRequest { limit: LOOKED_AT, from: None };
    let page = session.client.list(&resource, scope, &selectors, Form::Objects, request).await?;
    let items = page.document["items"].as_array().cloned().unwrap_or_default();
    let newest =
        items.iter().max_by_key(|item| item["metadata"]["creationTimestamp"].as_str().map(str::to_owned));
    let Some(newest) = newest else {
        bail!("nothing is kept of a job \"{name}\"; `muster get kubejobs` shows what is");
    };
    Ok(name_of(newest).to_owned())
}
