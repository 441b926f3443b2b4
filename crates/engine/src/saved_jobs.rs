//! Lets go of the logs of a KubeJob when its object is deleted. What a crash left behind is found at the start.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_ports::blobs::{BlobKey, Blobs};
use muster_ports::publisher::Boxed;
use muster_ports::store::{ResourceName, Store, WatchError, WatchScope};
use muster_types::{JsonText, KubeJob};

/// Where KubeJobs are kept.
const KUBE_JOBS: &str = "kubejobs.muster.dev";
/// Changes taken in at once.
const CHANGES: usize = 256;

/// Sees to it until the store closes.
pub fn run(store: Store, blobs: Arc<dyn Blobs>) -> Boxed<'static, ()> {
    Box::pin(follow(store, blobs))
}

async fn follow(store: Store, blobs: Arc<dyn Blobs>) {
    loop {
        let resource = ResourceName::new(KUBE_JOBS);
        let snapshot = store.snapshot(&resource);
        let uid = |json: &[u8]| KubeJob::from_json(json).ok().map(|job| job.metadata.uid);
        let there: BTreeSet<String> =
            snapshot.range(None, None).filter_map(|stored| uid(stored.json())).collect();
        let all = blobs.clone();
        let listing = tokio::task::spawn_blocking(move || all.list(&BlobKey::of_kube_jobs()));
        let files = listing.await.ok().and_then(Result::ok).unwrap_or_default();
        let kept: BTreeSet<String> =
            files.iter().filter_map(|file| file.path.split('/').next()).map(str::to_owned).collect();
        for uid in kept.difference(&there) {
            let_go(&blobs, uid).await;
        }
        let Ok(mut watch) = store.watch(WatchScope::Resource(resource), snapshot.revision) else { return };
        loop {
            let changes = match watch.next(CHANGES).await {
                Ok(changes) => changes,
                Err(WatchError::Closed) => return,
                // Fell behind: start over from what is there.
                Err(WatchError::Gone { .. } | WatchError::Future { .. }) => break,
            };
            for change in changes.iter().filter(|change| change.deleted) {
                if let Some(uid) = uid(change.object.json()) {
                    let_go(&blobs, &uid).await;
                }
            }
        }
    }
}

async fn let_go(blobs: &Arc<dyn Blobs>, uid: &str) {
    let Ok(key) = BlobKey::of_kube_job(uid) else { return };
    let blobs = blobs.clone();
    let done = tokio::task::spawn_blocking(move || blobs.delete(&key)).await;
    if let Ok(Err(error)) = done {
        tracing::warn!(uid, %error, "the logs of a job that is gone stay until the next start");
    }
}
