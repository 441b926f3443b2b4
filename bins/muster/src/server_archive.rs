//! Keeps KubeJobs and their logs on a Muster server, over its API. Any number of responders may use one server.

use muster_client::client::ApplyOptions;
use muster_client::{Client, ClientError, Resource};
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::job_archive::{ArchiveError, JobArchive, LogPieces};
use muster_ports::kube_jobs::PodContainer;
use muster_ports::publisher::Boxed;
use muster_types::kube_job::{JOB_NAME, KubeJobSpec};
use serde_json::json;

/// A log is sent in parts that are not much larger than this.
const PART: usize = 8 << 20;

/// A server.
pub struct ServerArchive(pub Client);

fn failed(error: &ClientError) -> ArchiveError {
    ArchiveError(error.to_string())
}

impl JobArchive for ServerArchive {
    fn begin<'a>(
        &'a self,
        namespace: &'a str,
        job: &'a KubeJobSpec,
    ) -> Boxed<'a, Result<String, ArchiveError>> {
        Box::pin(async move {
            let name = KubeJobSpec::object_name(&job.job_name, &job.job_uid);
            let resource = Resource::known::<KubeJobSpec>();
            let object = json!({
                "apiVersion": resource.api_version(), "kind": resource.kind,
                "metadata": {"name": name, "labels": {JOB_NAME: job.job_name}}, "spec": job,
            });
            let options =
                ApplyOptions { manager: "muster-responder".to_owned(), force: true, dry_run: false };
            match self.0.apply(&resource, namespace, &name, &object, &options).await {
                Ok(_) => Ok(name),
                Err(error) => Err(failed(&error)),
            }
        })
    }

    fn keep_log<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        container: &'a PodContainer,
        mut log: Box<dyn LogPieces>,
    ) -> Boxed<'a, Result<(), ArchiveError>> {
        Box::pin(async move {
            let PodContainer { pod, container, previous } = container;
            let file = if *previous { format!("{container}.previous") } else { container.clone() };
            let failed_log = |error: std::io::Error| ArchiveError(format!("the log broke off: {error}"));
            let mut parts = (2..).map(|number| format!("{file}.part{number}"));
            let (mut name_of_part, mut part, mut is_whole) = (file.clone(), Vec::new(), false);
            while !is_whole {
                match log.next().await {
                    Some(piece) => part.extend_from_slice(&piece.map_err(failed_log)?),
                    None => is_whole = true,
                }
                if part.len() < PART && !is_whole {
                    continue;
                }
                let place = (pod.as_str(), name_of_part.as_str());
                let kept = self.0.keep_job_log(namespace, name, place, std::mem::take(&mut part)).await;
                kept.map_err(|error| failed(&error))?;
                name_of_part = parts.next().unwrap_or_default();
            }
            Ok(())
        })
    }

    fn finish<'a>(&'a self, namespace: &'a str, name: &'a str) -> Boxed<'a, Result<(), ArchiveError>> {
        Box::pin(async move {
            let change = json!({"status": {"saved": SystemClock.now().to_timestamp()}});
            let resource = Resource::known::<KubeJobSpec>();
            let kept = self.0.patch_status(&resource, namespace, name, &change).await;
            kept.map(drop).map_err(|error| failed(&error))
        })
    }
}
