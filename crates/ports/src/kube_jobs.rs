//! The KubeJobs of a cluster: listed, followed, and looked after when they have ended.
//!
//! [`KubeJobs`] is all that the relay may do: look. [`FinishedJobs`] is what the responder may do besides: read the logs of pods,
//! and delete a job.

mod finished_jobs;
mod memory_kube_jobs;

use muster_types::{KubeJobView, KubePodView};
use serde::{Deserialize, Serialize};

use crate::publisher::Boxed;

pub use finished_jobs::{FinishedJob, FinishedJobs, FinishedPod, PodContainer};
pub use memory_kube_jobs::MemoryKubeJobs;

/// Looks at the jobs of a cluster.
pub trait KubeJobs: Send + Sync {
    /// The namespace that this server runs in.
    fn own_namespace(&self) -> &str;

    /// All jobs of a namespace and their pods: as they are, or as they were at a version, if that is still known.
    fn list<'a>(&'a self, namespace: &'a str, at: Option<&'a str>) -> Boxed<'a, Result<KubeList, KubeError>>;

    /// The pods of jobs of a namespace, or of the job with a uid alone, as they are.
    fn pods<'a>(
        &'a self,
        namespace: &'a str,
        job: Option<&'a str>,
    ) -> Boxed<'a, Result<Vec<KubePodView>, KubeError>>;

    /// Follows changes behind a place.
    fn watch(&self, namespace: &str, from: &KubePlace) -> Box<dyn KubeWatch>;
}

/// Changes as they come.
pub trait KubeWatch: Send {
    /// Waits for news, at least one. Dropping the future loses nothing.
    fn next(&mut self) -> Boxed<'_, Result<Vec<KubeNews>, KubeError>>;
}

/// Up to where changes of a namespace were seen: versions of the cluster, one of each watch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubePlace {
    /// Of jobs.
    pub jobs: String,
    /// Of pods.
    pub pods: String,
}

impl KubePlace {
    /// The same version for both.
    pub fn at(version: &str) -> Self {
        Self { jobs: version.to_owned(), pods: version.to_owned() }
    }

    /// The version up to which both were seen. A cluster counts all its objects in one row.
    pub fn version(&self) -> u64 {
        let number = |text: &str| text.parse().unwrap_or(0);
        number(&self.jobs).min(number(&self.pods))
    }

    /// Moves on to what was heard.
    pub fn pass(&mut self, news: &KubeNews) {
        match news {
            KubeNews::Job { version, .. } | KubeNews::JobsUpTo(version) => self.jobs.clone_from(version),
            KubeNews::Pod { version, .. } | KubeNews::PodsUpTo(version) => self.pods.clone_from(version),
        }
    }
}

/// Everything there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubeList {
    /// The jobs.
    pub jobs: Vec<KubeJobView>,
    /// Their pods.
    pub pods: Vec<KubePodView>,
    /// From where to follow.
    pub place: KubePlace,
}

/// What a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeNews {
    /// A job as it is now, or as it last was.
    Job {
        /// What is seen of it.
        job: Box<KubeJobView>,
        /// The version of this change.
        version: String,
        /// It was deleted.
        gone: bool,
    },
    /// A pod as it is now, or as it last was.
    Pod {
        /// What is seen of it.
        pod: Box<KubePodView>,
        /// The version of this change.
        version: String,
        /// It was deleted.
        gone: bool,
    },
    /// No job changed up to here.
    JobsUpTo(String),
    /// No pod changed up to here.
    PodsUpTo(String),
}

/// Why a cluster says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeError {
    /// What was asked for is too long ago.
    #[error("the cluster has forgotten what was then: {0}")]
    Expired(String),
    /// What was asked for is not there yet, so it is of another cluster.
    #[error("the cluster has not come that far: {0}")]
    Future(String),
    /// It does not let us.
    #[error("{0}")]
    Forbidden(String),
    /// It cannot be reached, or is not well.
    #[error("the cluster cannot be asked: {0}")]
    Unreachable(String),
}
