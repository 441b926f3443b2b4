//! What is asked of KubeJobs alone: keeping their logs, and reading them.

use hyper::Method;
use muster_types::kube_job::{KeptLog, KubeJobSpec};
use serde_json::Value;

use crate::client::Client;
use crate::error::ClientError;
use crate::query::{Query, segment};
use crate::resource::Resource;
use crate::tasks::LogStream;
use crate::transport::Ask;

impl Client {
    /// Changes the status of an object by a merge patch.
    pub async fn patch_status(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        change: &Value,
    ) -> Result<Value, ClientError> {
        let path = format!("{}/status", resource.object(namespace, name));
        let query = Query::default().with("fieldManager", "muster");
        let content_type = "application/merge-patch+json";
        self.transport().read(Ask { query, content_type, ..Ask::send(Method::PATCH, &path, change) }).await
    }

    /// Keeps the log of a container of a pod of a KubeJob, or a part of it.
    pub async fn keep_job_log(
        &self,
        namespace: &str,
        name: &str,
        (pod, container): (&str, &str),
        log: Vec<u8>,
    ) -> Result<(), ClientError> {
        let path = log_path(namespace, name, pod, container);
        let ask = Ask { method: Method::PUT, content_type: "text/plain", body: log, ..Ask::get(&path) };
        self.transport().whole(ask).await.map(drop)
    }

    /// The logs that are kept of a KubeJob.
    pub async fn job_logs(&self, namespace: &str, name: &str) -> Result<Vec<KeptLog>, ClientError> {
        let path = format!("{}/logs", Resource::known::<KubeJobSpec>().object(namespace, name));
        let mut found: Value = self.transport().read(Ask::get(&path)).await?;
        let items = found["items"].take();
        serde_json::from_value(items).map_err(|error| self.transport().peer().unintelligible(&path, error))
    }

    /// Opens one of them.
    pub async fn job_log(
        &self,
        namespace: &str,
        name: &str,
        pod: &str,
        container: &str,
    ) -> Result<LogStream, ClientError> {
        let path = log_path(namespace, name, pod, container);
        let ask = Ask { accept: "text/plain, */*", ..Ask::get(&path) };
        let body = self.transport().begin(ask).await?.into_body();
        Ok(LogStream::new(body, self.transport().peer().clone()))
    }
}

fn log_path(namespace: &str, name: &str, pod: &str, container: &str) -> String {
    let object = Resource::known::<KubeJobSpec>().object(namespace, name);
    format!("{object}/logs/{}/{}", segment(pod), segment(container))
}
