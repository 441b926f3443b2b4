//! Jobs that have ended: their logs, and their deletion.

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{AsyncRead, AsyncReadExt as _};
use kube::api::{DeleteParams, GetParams, ListParams, LogParams, Preconditions};
use kube::core::Request;
use kube::{Error, Resource as _};
use muster_ports::job_archive::LogPieces;
use muster_ports::kube_jobs::{FinishedJob, FinishedJobs, KubeError, PodContainer};
use muster_ports::publisher::Boxed;
use serde_json::Value;

use crate::ClusterJobs;
use crate::cluster_jobs::{UID_LABEL, list_all};
use crate::errors::{is_missing, read_error};
use crate::objects::Job;
use crate::views::view_finished;

/// Bytes of a log that are read at once.
const PIECE: usize = 64 << 10;

impl FinishedJobs for ClusterJobs {
    fn find<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> Boxed<'a, Result<Option<FinishedJob>, KubeError>> {
        Box::pin(async move {
            let document = match self.read_job(namespace, name).await {
                Ok(document) if document["metadata"]["uid"] == uid => document,
                Ok(_) => return Ok(None),
                Err(error) if is_missing(&error) => return Ok(None),
                Err(error) => return Err(read_error(&error)),
            };
            let asked = ListParams::default().labels(&format!("{UID_LABEL}={uid}"));
            let listed = list_all(&self.pods(namespace), asked, None).await;
            let (pods, _) = listed.map_err(|error| read_error(&error))?;
            Ok(Some(FinishedJob { document, pods: pods.iter().map(view_finished).collect() }))
        })
    }

    fn log<'a>(
        &'a self,
        namespace: &'a str,
        container: &'a PodContainer,
    ) -> Boxed<'a, Result<Option<Box<dyn LogPieces>>, KubeError>> {
        Box::pin(async move {
            let PodContainer { pod, container, previous } = container;
            let asked =
                LogParams { container: Some(container.clone()), previous: *previous, ..LogParams::default() };
            match self.pods(namespace).log_stream(pod, &asked).await {
                Ok(stream) => Ok(Some(Box::new(Pieces(Box::pin(stream))) as Box<dyn LogPieces>)),
                Err(error) if is_without_log(&error) => Ok(None),
                Err(error) => Err(read_error(&error)),
            }
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> Boxed<'a, Result<(), KubeError>> {
        Box::pin(async move {
            let same = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
            let asked = DeleteParams::foreground().preconditions(same);
            match self.jobs(namespace).delete(name, &asked).await {
                Ok(_) => Ok(()),
                // Gone, or another one by now.
                Err(Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
                Err(error) => Err(read_error(&error)),
            }
        })
    }
}

impl ClusterJobs {
    /// All of a job.
    async fn read_job(&self, namespace: &str, name: &str) -> Result<Value, Error> {
        let request = Request::new(Job::url_path(&(), Some(namespace)));
        let request = request.get(name, &GetParams::default()).map_err(Error::BuildRequest)?;
        self.client.request(request).await
    }
}

/// A log as it comes.
struct Pieces(Pin<Box<dyn AsyncRead + Send>>);

impl LogPieces for Pieces {
    fn next(&mut self) -> Boxed<'_, Option<io::Result<Bytes>>> {
        Box::pin(async {
            let mut piece = vec![0; PIECE];
            match self.0.read(&mut piece).await {
                Ok(0) => None,
                Ok(size) => {
                    piece.truncate(size);
                    Some(Ok(Bytes::from(piece)))
                }
                Err(error) => Some(Err(error)),
            }
        })
    }
}

/// True if there is no log to be had, now and later.
fn is_without_log(error: &Error) -> bool {
    let is_none = |message: &str| {
        message.contains("is waiting to start") || message.contains("previous terminated container")
    };
    is_missing(error) || matches!(error, Error::Api(status) if status.code == 400 && is_none(&status.message))
}
