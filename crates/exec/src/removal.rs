//! Containers of docker or podman that are removed before the end of their attempt is told.

use std::time::Instant;

use muster_types::image_launch::ImageDriver;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};

/// How far it is.
#[derive(Debug)]
pub(crate) enum Removal {
    /// Nothing else of the attempt may run when it begins.
    Due {
        /// Who runs them.
        driver: ImageDriver,
        /// What they are called.
        names: Vec<String>,
    },
    /// A client removes them.
    UnderWay(Removing),
}

/// The client that removes containers.
#[derive(Debug)]
pub(crate) struct Removing {
    pub(crate) pid: Pid,
    /// Its descriptor, by which its end is noticed, and its output, so that what it says does not end it.
    pub(crate) _held: [OwnedFd; 2],
    pub(crate) give_up_at: Instant,
}

impl Removal {
    /// When it is no longer waited for.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Due { .. } => None,
            Self::UnderWay(removing) => Some(removing.give_up_at),
        }
    }
}

impl Removing {
    /// It ended, or takes too long: either way nothing of it is left.
    pub(crate) fn end(self) {
        kill_process_group(self.pid, Signal::KILL).ok();
        waitpid(Some(self.pid), WaitOptions::empty()).ok();
    }
}
