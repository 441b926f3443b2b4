//! Lists of jobs and pods, now or as they were.

use kube::api::{Api, ListParams, VersionMatch};
use kube::{Client, Error};
use muster_ports::kube_jobs::{KubeError, KubeJobs, KubeList, KubePlace, KubeWatch};
use muster_ports::publisher::Boxed;
use muster_types::KubePodView;
use serde::de::DeserializeOwned;

use crate::errors::read_error;
use crate::follow::Follow;
use crate::objects::{Job, Pod};
use crate::views::{view_job, view_pod};

/// Pods of jobs have this label.
pub const JOB_LABEL: &str = "batch.kubernetes.io/job-name";
/// And this one, with the uid of the job.
pub const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
/// Objects in one page of a list.
const PAGE: u32 = 500;

/// The jobs of a cluster.
#[derive(Clone)]
pub struct ClusterJobs {
    pub(crate) client: Client,
    own_namespace: String,
}

impl ClusterJobs {
    /// The jobs that a client sees. Without a namespace, the client's own is the server's.
    pub fn new(client: Client, own_namespace: Option<String>) -> Self {
        let own_namespace = own_namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        Self { client, own_namespace }
    }

    pub(crate) fn jobs(&self, namespace: &str) -> Api<Job> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn list_both(&self, namespace: &str, at: Option<&str>) -> Result<KubeList, Error> {
        let (jobs, jobs_at) = list_all(&self.jobs(namespace), ListParams::default(), at).await?;
        let of_jobs = ListParams::default().labels(JOB_LABEL);
        let (pods, pods_at) = list_all(&self.pods(namespace), of_jobs, at).await?;
        Ok(KubeList {
            jobs: jobs.iter().map(view_job).collect(),
            pods: pods.iter().filter_map(view_pod).collect(),
            place: KubePlace { jobs: jobs_at, pods: pods_at },
        })
    }
}

/// All objects, page by page, and the version they are of.
pub async fn list_all<K: Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    asked: ListParams,
    at: Option<&str>,
) -> Result<(Vec<K>, String), Error> {
    let asked = asked.limit(PAGE);
    let mut page = match at {
        Some(version) => api.list(&asked.clone().at(version).matching(VersionMatch::Exact)).await?,
        None => api.list(&asked).await?,
    };
    let mut all = Vec::new();
    loop {
        all.append(&mut page.items);
        let Some(more) = page.metadata.continue_.take().filter(|more| !more.is_empty()) else {
            let version = page.metadata.resource_version.unwrap_or_default();
            return Ok((all, at.map_or(version, str::to_owned)));
        };
        page = api.list(&asked.clone().continue_token(&more)).await?;
    }
}

impl KubeJobs for ClusterJobs {
    fn own_namespace(&self) -> &str {
        &self.own_namespace
    }

    fn list<'a>(&'a self, namespace: &'a str, at: Option<&'a str>) -> Boxed<'a, Result<KubeList, KubeError>> {
        Box::pin(async move { self.list_both(namespace, at).await.map_err(|error| read_error(&error)) })
    }

    fn pods<'a>(
        &'a self,
        namespace: &'a str,
        job: Option<&'a str>,
    ) -> Boxed<'a, Result<Vec<KubePodView>, KubeError>> {
        Box::pin(async move {
            let label = job.map_or(JOB_LABEL.to_owned(), |uid| format!("{UID_LABEL}={uid}"));
            let listed = list_all(&self.pods(namespace), ListParams::default().labels(&label), None).await;
            let (pods, _) = listed.map_err(|error| read_error(&error))?;
            Ok(pods.iter().filter_map(view_pod).collect())
        })
    }

    fn watch(&self, namespace: &str, from: &KubePlace) -> Box<dyn KubeWatch> {
        Box::new(Follow::new(self.jobs(namespace), self.pods(namespace), from))
    }
}
