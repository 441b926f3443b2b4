//! What is done with a KubeJob that has ended: its logs are read, then it is deleted.

use serde_json::Value;

use super::KubeError;
use crate::job_archive::LogPieces;
use crate::publisher::Boxed;

/// Looks after jobs that have ended.
pub trait FinishedJobs: Send + Sync {
    /// A job and its pods; `None` if no job of that name has that uid.
    fn find<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> Boxed<'a, Result<Option<FinishedJob>, KubeError>>;

    /// The whole log of a container. `None` if there is no log: the pod is gone, or the container never ran.
    fn log<'a>(
        &'a self,
        namespace: &'a str,
        container: &'a PodContainer,
    ) -> Boxed<'a, Result<Option<Box<dyn LogPieces>>, KubeError>>;

    /// Deletes a job and its pods with it. What is gone already is as good.
    fn delete<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> Boxed<'a, Result<(), KubeError>>;
}

/// A job that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedJob {
    /// The whole object, as the cluster shows it.
    pub document: Value,
    /// Its pods.
    pub pods: Vec<FinishedPod>,
}

/// A pod of such a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedPod {
    /// Its name.
    pub name: String,
    /// Its containers that ran.
    pub containers: Vec<PodContainer>,
}

/// A run of a container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodContainer {
    /// Name of the pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
    /// The run before the last one.
    pub previous: bool,
}
