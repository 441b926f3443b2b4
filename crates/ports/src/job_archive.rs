//! Where that is kept which remains of a KubeJob: the job as it was, and the logs of its pods.

use std::io;

use bytes::Bytes;
use muster_types::kube_job::KubeJobSpec;

use crate::kube_jobs::PodContainer;
use crate::publisher::Boxed;

/// Keeps jobs.
pub trait JobArchive: Send + Sync {
    /// Begins to keep a job, or goes on with it. The name under which it is kept.
    fn begin<'a>(
        &'a self,
        namespace: &'a str,
        job: &'a KubeJobSpec,
    ) -> Boxed<'a, Result<String, ArchiveError>>;

    /// Keeps a log. If its pieces end with an error, so does this, and it is to be kept again from its beginning.
    fn keep_log<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        container: &'a PodContainer,
        log: Box<dyn LogPieces>,
    ) -> Boxed<'a, Result<(), ArchiveError>>;

    /// All logs are kept.
    fn finish<'a>(&'a self, namespace: &'a str, name: &'a str) -> Boxed<'a, Result<(), ArchiveError>>;
}

/// A log, piece by piece.
pub trait LogPieces: Send {
    /// The next piece; `None` at the end.
    fn next(&mut self) -> Boxed<'_, Option<io::Result<Bytes>>>;
}

/// Something was not kept; it may be tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing can be kept: {0}")]
pub struct ArchiveError(pub String);
