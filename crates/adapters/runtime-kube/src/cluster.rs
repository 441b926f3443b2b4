//! What is asked of the API server. Nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use kube::core::Request;
use muster_ports::runtime::Launch;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::time::sleep;

use crate::manifest::{SERVER_LABEL, TASK_LABEL, namespace_of, render_pod, render_secret};
use crate::pod::Pod;
use crate::refusal::{Refusal, read_refusal};
use crate::settings::PodSettings;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How a pod that was asked for came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    New,
    /// It was there.
    Found,
}

/// The cluster, as far as pods of this server go.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub client: Client,
    pub settings: Arc<PodSettings>,
}

impl Cluster {
    pub(crate) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Makes the pod of an attempt and then its Secret; one that is there already is as good.
    pub(crate) async fn create(&self, launch: &Launch) -> Result<Made, Refusal> {
        let bad = |reason, message: String| Refusal::Permanent { reason, message };
        let more =
            launch.pod.as_ref().ok_or_else(|| bad("NoPod", "the launch is not one of a pod".into()))?;
        let manifest =
            render_pod(launch, more, &self.settings).map_err(|error| bad("PodRefused", error.to_string()))?;
        let namespace = namespace_of(more, &self.settings);
        let (pod, made) = match self.post::<Pod>(&namespace, "pods", &manifest).await {
            Ok(pod) => (pod, Made::New),
            // Quotas are asked before names: a pod that is there is refused for its quota, too.
            Err(refusal @ (Refusal::Exists | Refusal::Quota(_))) => {
                (self.find_own(&namespace, &manifest, refusal).await?, Made::Found)
            }
            Err(other) => return Err(other),
        };
        let Some(secret) = render_secret(launch, &pod, &self.settings) else { return Ok(made) };
        match self.post::<IgnoredAny>(&namespace, "secrets", &secret).await {
            Ok(_) | Err(Refusal::Exists) => Ok(made),
            Err(Refusal::Quota(message)) => self.observe_no_secret(pod, made, message).await,
            Err(refusal) => Err(refusal),
        }
    }

    /// A quota of Secrets refused that of a pod. A new pod cannot run without one, and goes. One that was found may have it, which
    /// is not for us to read: if it runs, it does.
    async fn observe_no_secret(&self, pod: Pod, made: Made, message: String) -> Result<Made, Refusal> {
        match made {
            Made::Found if pod.status.phase != "Pending" => Ok(made),
            Made::Found => Err(Refusal::Transient { message, after: None }),
            Made::New => {
                let metadata = pod.metadata;
                let (namespace, name) =
                    (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
                self.delete(namespace, name, metadata.uid.unwrap_or_default(), Duration::ZERO).await;
                Err(Refusal::Quota(message))
            }
        }
    }

    async fn post<T: DeserializeOwned>(
        &self,
        namespace: &str,
        plural: &str,
        object: &Value,
    ) -> Result<T, Refusal> {
        let request = Request::new(path(namespace, plural));
        let made = match request.create(&PostParams::default(), object.to_string().into_bytes()) {
            Ok(request) => self.client.request(request).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        made.map_err(|error| read_refusal(&error))
    }

    /// The pod of the same name, if it is of the same attempt and is to stay.
    async fn find_own(&self, namespace: &str, manifest: &Value, refused: Refusal) -> Result<Pod, Refusal> {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let going = || Refusal::Transient { message: "the pod is just going".into(), after: None };
        let found = self.pods(namespace).get(name).await.map_err(|error| {
            match (read_refusal(&error), refused) {
                (Refusal::NotFound, quota @ Refusal::Quota(_)) => quota,
                // It went in between.
                (Refusal::NotFound, _) => going(),
                (other, _) => other,
            }
        })?;
        let labels = found.metadata.labels.as_ref();
        let same = [SERVER_LABEL, TASK_LABEL].iter().all(|key| {
            labels.and_then(|labels| labels.get(*key)).map(String::as_str)
                == manifest["metadata"]["labels"][key].as_str()
        });
        if !same {
            let message = format!("a pod {name} is there that is not of this server");
            return Err(Refusal::Permanent { reason: "PodRefused", message });
        }
        // One that is on its way out is not as good as one that stays.
        if found.metadata.deletion_timestamp.is_some() { Err(going()) } else { Ok(found) }
    }

    /// Deletes a pod, trying until it is deleted, or is another one.
    pub(crate) async fn delete(&self, namespace: String, name: String, uid: String, grace: Duration) {
        let seconds = u32::try_from(grace.as_secs()).unwrap_or(u32::MAX);
        let asked = DeleteParams {
            grace_period_seconds: Some(seconds),
            preconditions: (!uid.is_empty())
                .then_some(Preconditions { uid: Some(uid), resource_version: None }),
            ..DeleteParams::default()
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let done = self.pods(&namespace).delete(&name, &asked).await;
            match done.map_err(|error| read_refusal(&error)) {
                Ok(_) | Err(Refusal::NotFound | Refusal::Exists) => return,
                Err(Refusal::Permanent { message, .. } | Refusal::Quota(message)) => {
                    tracing::error!(namespace, name, message, "a pod cannot be deleted");
                    return;
                }
                Err(Refusal::Transient { message, after }) => {
                    tracing::warn!(namespace, name, message, "a pod cannot be deleted now");
                    sleep(after.map_or(pause, |seconds| Duration::from_secs(seconds.into()))).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

/// Where the objects of a kind are.
pub(crate) fn path(namespace: &str, plural: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{plural}")
}
