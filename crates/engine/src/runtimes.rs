//! All places where attempts run, as one.
//!
//! An attempt is started where its launch belongs. Whatever else is asked about one is asked everywhere: who does not know it
//! does nothing.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::blobs::Blobs;
use muster_ports::runtime::{FilesError, Handle, Launch, Runtime};

/// Processes, and pods and robots where there are any.
pub struct Runtimes {
    processes: Arc<dyn Runtime>,
    pods: Option<Arc<dyn Runtime>>,
    robots: Option<Arc<dyn Runtime>>,
}

impl Runtimes {
    /// All of them. A launch for one that is missing is never made: it has no room.
    pub fn new(
        processes: Arc<dyn Runtime>,
        pods: Option<Arc<dyn Runtime>>,
        robots: Option<Arc<dyn Runtime>>,
    ) -> Self {
        Self { processes, pods, robots }
    }

    fn of(&self, launch: &Launch) -> Option<&dyn Runtime> {
        if launch.pod.is_some() {
            self.pods.as_deref()
        } else if launch.robot.is_some() {
            self.robots.as_deref()
        } else {
            Some(&*self.processes)
        }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Runtime> {
        [Some(&*self.processes), self.pods.as_deref(), self.robots.as_deref()].into_iter().flatten()
    }
}

impl Runtime for Runtimes {
    fn start(&self, launch: Launch) {
        if let Some(runtime) = self.of(&launch) {
            runtime.start(launch);
        }
    }

    fn start_all(&self, launches: Vec<Launch>) {
        let (others, processes): (Vec<_>, Vec<_>) =
            launches.into_iter().partition(|launch| launch.pod.is_some() || launch.robot.is_some());
        self.processes.start_all(processes);
        for launch in others {
            self.start(launch);
        }
    }

    fn adopt(&self, launch: Launch, ran: bool) {
        if let Some(runtime) = self.of(&launch) {
            runtime.adopt(launch, ran);
        }
    }

    fn recall(&self, handle: &Handle) {
        self.processes.recall(handle);
    }

    fn stop(&self, handle: &Handle, grace: Duration) {
        self.all().for_each(|runtime| runtime.stop(handle, grace));
    }

    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        self.all().try_for_each(|runtime| runtime.keep_logs(handle, blobs))
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        self.all().try_for_each(|runtime| runtime.remove(handle))
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        let mut stored = Vec::new();
        for runtime in self.all() {
            stored.extend(runtime.stored()?);
        }
        Ok(stored)
    }
}
