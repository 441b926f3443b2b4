//! Where attempts run: a local process, a pod, a robot. The words are those of `muster-types`.
//!
//! A runtime is told what to do by name and never answers: what happens is reported as facts, through the channel it was
//! made with. Every call may be repeated; doing a thing twice does nothing twice.

use std::time::Duration;

pub use muster_types::attempt::{
    Cause, ContainerEnding, Ending, Fact, Handle, Launch, LaunchContainer, Limits, Observation,
};

/// A place where attempts run.
pub trait Runtime: Send + Sync + 'static {
    /// Starts an attempt. Reports `Started` or `StartFailed`, later `Ended` or `Lost`.
    fn start(&self, launch: Launch);

    /// Asks an attempt to end, and ends it after the grace.
    fn stop(&self, handle: &Handle, grace: Duration);

    /// Lets go of the files of an attempt that has ended.
    fn remove(&self, handle: &Handle);
}
