//! The responder: when a KubeJob has ended, its logs are kept, then it is deleted (seed 004).
//!
//! Any number of responders share one queue. A message is answered when what it asks for was done, so a stop at any moment leads to
//! work that is done again, and doing it again changes nothing: a job is kept under one name, a log in one place, and a job is
//! deleted by its uid. Nothing is deleted before it was kept: while logs cannot be read or kept, messages wait.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use muster_ports::inbox::{Answer, Delivered, Inbox, Inboxes};
use muster_ports::job_archive::{ArchiveError, JobArchive};
use muster_ports::kube_jobs::{FinishedJobs, KubeError};
use muster_ports::publisher::Boxed;
use muster_ports::publisher::PublishError;
use muster_relay::response::{EndedJob, Response, choose_response};
use muster_types::kube_job::KubeJobSpec;
use tokio::time::sleep;

/// Pause after trouble; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// What is outside of the responder.
#[derive(Clone)]
pub struct Outside {
    /// The queue.
    pub inboxes: Arc<dyn Inboxes>,
    /// The cluster.
    pub jobs: Arc<dyn FinishedJobs>,
    /// Where jobs are kept.
    pub archive: Arc<dyn JobArchive>,
}

/// How it works.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Jobs are kept and stay in the cluster too.
    pub keep_jobs: bool,
}

/// Why a job was not dealt with.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Cluster(#[from] KubeError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Responds until nobody wants it any more.
pub fn run(outside: Outside, settings: Settings) -> Boxed<'static, ()> {
    Box::pin(listen_always(outside, settings))
}

async fn listen_always(outside: Outside, settings: Settings) {
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match outside.inboxes.open().await {
            Ok(mut inbox) => {
                tracing::info!("responding to messages");
                pause = FIRST_PAUSE;
                listen(&outside, settings, &mut *inbox).await
            }
            Err(error) => error,
        };
        tracing::warn!(reason = error.reason, %error, "no messages can be taken; trying again");
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Takes messages, as many at once as the queue hands out, until the connection breaks.
async fn listen(outside: &Outside, settings: Settings, inbox: &mut dyn Inbox) -> PublishError {
    let mut under_way = FuturesUnordered::new();
    loop {
        let (tag, answer) = tokio::select! {
            Some(done) = under_way.next() => done,
            delivered = inbox.next() => match delivered {
                Ok(delivered) => {
                    under_way.push(respond(outside, settings, delivered));
                    continue;
                }
                Err(error) => return error,
            },
        };
        if let Err(error) = inbox.answer(tag, answer).await {
            return error;
        }
    }
}

/// Deals with one message. What may succeed later is tried again, here a few times, then by whoever is next.
async fn respond(outside: &Outside, settings: Settings, delivered: Delivered) -> (u64, Answer) {
    let Delivered { tag, topic, id, body } = delivered;
    let job = match choose_response(&topic, &body) {
        Response::Keep(job) => job,
        Response::Nothing => return (tag, Answer::Done),
        Response::Invalid(why) => {
            tracing::warn!(id, topic, why, "a message is set aside");
            return (tag, Answer::SetAside);
        }
    };
    let mut pause = FIRST_PAUSE;
    loop {
        match keep_and_delete(outside, settings, &job).await {
            Ok(()) => return (tag, Answer::Done),
            Err(Trouble::Cluster(error @ KubeError::Forbidden(_))) => {
                tracing::error!(id, job = job.name, namespace = job.namespace, %error, "a message is set aside");
                return (tag, Answer::SetAside);
            }
            Err(error) => {
                tracing::warn!(id, job = job.name, namespace = job.namespace, %error, "a job waits");
            }
        }
        sleep(pause).await;
        if pause >= LONGEST_PAUSE {
            return (tag, Answer::Again);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn keep_and_delete(outside: &Outside, settings: Settings, job: &EndedJob) -> Result<(), Trouble> {
    let EndedJob { uid, name, namespace, outcome, failure_reason } = job;
    let Some(found) = outside.jobs.find(namespace, name, uid).await? else {
        tracing::info!(name, namespace, uid, "a job that ended is gone already");
        return Ok(());
    };
    let spec = KubeJobSpec {
        job_name: name.clone(),
        job_uid: uid.clone(),
        outcome: (*outcome).to_owned(),
        failure_reason: failure_reason.clone(),
        document: Some(found.document),
    };
    let kept = outside.archive.begin(namespace, &spec).await?;
    for container in found.pods.iter().flat_map(|pod| &pod.containers) {
        if let Some(log) = outside.jobs.log(namespace, container).await? {
            outside.archive.keep_log(namespace, &kept, container, log).await?;
        }
    }
    outside.archive.finish(namespace, &kept).await?;
    if !settings.keep_jobs {
        outside.jobs.delete(namespace, name, uid).await?;
    }
    tracing::info!(name, namespace, kept, deleted = !settings.keep_jobs, "a job is kept");
    Ok(())
}
