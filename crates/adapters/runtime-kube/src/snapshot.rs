//! `pod.yaml`: how a pod was when its attempt ended, with what the cluster said about it (seed 000, H62).

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{GetParams, ListParams};
use kube::core::Request;
use muster_ports::blobs::{BlobError, BlobKey, Blobs};
use muster_ports::runtime::Handle;
use serde_json::{Value, json};

use crate::cluster::{Cluster, path};
use crate::pod_view::PodView;

/// Name of the file.
pub(crate) const NAME: &str = "pod.yaml";
/// How long the cluster may take to tell; the end of an attempt does not wait for longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps the file, and returns its size; `None` if the pod is not there any more.
pub(crate) async fn keep(
    cluster: &Cluster,
    blobs: Arc<dyn Blobs>,
    view: &PodView,
    failed: bool,
) -> Option<u64> {
    let told = tokio::time::timeout(PATIENCE, describe(cluster, view, failed)).await.ok()??;
    let handle = view.handle.clone();
    let kept = tokio::task::spawn_blocking(move || write(&*blobs, &handle, &told)).await.ok()?;
    kept.inspect_err(|error| tracing::warn!(%error, "no snapshot of a pod is kept")).ok()
}

async fn describe(cluster: &Cluster, view: &PodView, failed: bool) -> Option<String> {
    let request = Request::new(path(&view.namespace, "pods")).get(&view.name, &GetParams::default()).ok()?;
    let mut value: Value = cluster.client.request(request).await.ok()?;
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let events = if failed { list_events(cluster, view).await.unwrap_or_default() } else { Vec::new() };
    if !events.is_empty() {
        value["events"] = Value::Array(events);
    }
    serde_saphyr::to_string(&value).ok()
}

async fn list_events(cluster: &Cluster, view: &PodView) -> Option<Vec<Value>> {
    let asked = ListParams::default().fields(&format!("involvedObject.uid={}", view.uid));
    let request = Request::new(path(&view.namespace, "events")).list(&asked).ok()?;
    let found: Value = cluster.client.request(request).await.ok()?;
    let line = |event: &Value| {
        json!({
            "type": event["type"], "reason": event["reason"], "message": event["message"],
            "count": event["count"], "last": event["lastTimestamp"],
        })
    };
    Some(found["items"].as_array()?.iter().map(line).collect())
}

fn write(blobs: &dyn Blobs, handle: &Handle, text: &str) -> Result<u64, BlobError> {
    let key = BlobKey::of_task(&handle.task)?.join(&format!("attachments/{NAME}"))?;
    let mut writer = blobs.write(&key)?;
    writer.write_all(text.as_bytes()).map_err(|error| BlobError::Io { key, error })?;
    writer.finish()
}
