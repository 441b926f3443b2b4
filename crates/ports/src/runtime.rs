//! Where attempts run: a local process, a pod, a robot. The words are those of `muster-types`.
//!
//! A runtime is told what to do by name and never answers: what happens is reported as facts, through the channel it was
//! made with. Every call may be repeated; doing a thing twice does nothing twice.

use std::io;
use std::time::Duration;

pub use muster_types::attempt::{
    CLUSTER_UNAVAILABLE, Cause, ContainerEnding, DATA_FILE_VARIABLE, EXECUTOR_LOST, Ending, Fact, Handle,
    IMAGE_ERROR, Launch, LaunchContainer, Limits, NOT_PERMITTED, Observation, SERVER_STOPPED, TaskData,
    UNSCHEDULABLE, WITHOUT_NODE,
};
pub use muster_types::pod_launch::{PodContainer, PodLaunch};
use thiserror::Error;

use crate::blobs::{BlobError, Blobs};

/// Why the files of an attempt could not be kept or let go. They are as they were.
#[derive(Debug, Error)]
pub enum FilesError {
    /// It has not ended.
    #[error("the attempt has not ended")]
    Running,
    /// Where it ran refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Where files are kept refused.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// A place where attempts run.
pub trait Runtime: Send + Sync + 'static {
    /// Starts an attempt. Reports `Started` or `StartFailed`, later `Ended` or `Lost`.
    fn start(&self, launch: Launch);

    /// Starts several, which may cost less than one after the other.
    fn start_all(&self, launches: Vec<Launch>) {
        for launch in launches {
            self.start(launch);
        }
    }

    /// Takes over an attempt of a former process, where attempts outlive the server: goes on as if it had been started here.
    /// One that `ran` and is gone is `Lost`; any other is started, because nobody knows whether it was.
    fn adopt(&self, launch: Launch, ran: bool) {
        drop((launch, ran));
    }

    /// Takes back an attempt that has not started: reports `Returned`. Does nothing to one that has, or that is not known here. What
    /// ranks behind it waits for the answer: that it is back, or that it has started.
    fn recall(&self, handle: &Handle) {
        drop(handle.clone());
    }

    /// Asks an attempt to end, and ends it after the grace.
    fn stop(&self, handle: &Handle, grace: Duration);

    /// Keeps the logs of an attempt that has ended. Blocks. One that wrote nothing keeps nothing.
    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError>;

    /// Lets go of everything an attempt that has ended left here. Blocks.
    fn remove(&self, handle: &Handle) -> Result<(), FilesError>;

    /// The attempts that left something here, whether they run or not. Blocks.
    fn stored(&self) -> Result<Vec<Handle>, FilesError>;
}
