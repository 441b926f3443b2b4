//! `logs`: the logs of the pods of a KubeJob, one for each container, listed in its status.

use hyper::StatusCode;
use muster_ports::blobs::BlobKey;
use muster_types::KubeJob;
use muster_types::kube_job::KeptLog;
use serde_json::json;

use super::files::{blobs, of_blob, on_thread, receive, send};
use super::{PartCall, RequestBody, Subresource};
use crate::refusal::Refusal;
use crate::respond::{self, Reply};

/// Its line in the table.
pub const SUBRESOURCE: Subresource =
    Subresource { name: "logs", kind: "KubeJobLog", verbs: &["get", "update"], has_files: true };

/// Most logs of a job.
const MAX_LOGS: usize = 10_000;

/// Lists the logs, or gets or keeps one.
pub async fn answer(call: &PartCall, body: RequestBody) -> Result<Reply, Refusal> {
    match (call.verb, call.rest.as_slice()) {
        ("get", []) => {
            let (_, job) = call.read_object::<KubeJob>()?;
            Ok(respond::document(StatusCode::OK, &json!({ "items": job.status.logs })))
        }
        ("get", [pod, container]) => get(call, pod, container),
        ("update", [pod, container]) => put(call, pod, container, body).await,
        (_, []) => Err(Refusal::method_not_allowed()),
        _ => Err(Refusal::no_such_path()),
    }
}

fn get(call: &PartCall, pod: &str, container: &str) -> Result<Reply, Refusal> {
    let (_, job) = call.read_object::<KubeJob>()?;
    let is_kept = |log: &&KeptLog| log.pod == pod && log.container == container;
    let Some(log) = job.status.logs.iter().find(is_kept) else {
        let why =
            format!("kubejob \"{}\" has no log of container \"{container}\" of pod \"{pod}\"", call.name);
        return Err(Refusal::no_such_thing(why));
    };
    Ok(send(blobs(call)?, key_of(&job, pod, container)?, log.size))
}

async fn put(call: &PartCall, pod: &str, container: &str, body: RequestBody) -> Result<Reply, Refusal> {
    let (_, job) = call.read_object::<KubeJob>()?;
    let key = key_of(&job, pod, container)?;
    let size = receive(call, body, key.clone()).await?;
    let log = KeptLog { pod: pod.to_owned(), container: container.to_owned(), size };
    let kept = call.change(|now: &mut KubeJob| {
        if now.metadata.uid != job.metadata.uid {
            return Err(Refusal::not_found(call.info(), &call.name));
        }
        let logs = &mut now.status.logs;
        if let Some(known) = logs.iter_mut().find(|known| known.pod == pod && known.container == container) {
            known.clone_from(&log);
        } else if logs.len() >= MAX_LOGS {
            return Err(call.invalid("status.logs", &format!("a job has at most {MAX_LOGS} logs")));
        } else {
            logs.push(log.clone());
        }
        Ok(())
    });
    if let Err(refusal) = kept.await {
        // Nobody will ever find the file again.
        let blobs = blobs(call)?;
        on_thread(move || blobs.delete(&key)).await?;
        return Err(refusal);
    }
    Ok(respond::document(StatusCode::OK, &json!(log)))
}

fn key_of(job: &KubeJob, pod: &str, container: &str) -> Result<BlobKey, Refusal> {
    let key = BlobKey::of_kube_job(&job.metadata.uid);
    key.and_then(|key| key.join(&format!("{pod}/{container}.log"))).map_err(|error| of_blob(&error))
}
