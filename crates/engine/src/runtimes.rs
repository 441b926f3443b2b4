//! All places where attempts run, as one.
//!
//! An attempt is started where its launch belongs. Whatever else is asked about one is asked everywhere: who does not know it
//! does nothing.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::blobs::Blobs;
use muster_ports::runtime::{FilesError, Handle, Launch, Runtime};

/// Processes and pods.
pub struct Runtimes {
    processes: Arc<dyn Runtime>,
    pods: Arc<dyn Runtime>,
}

impl Runtimes {
    /// Both of them.
    pub fn new(processes: Arc<dyn Runtime>, pods: Arc<dyn Runtime>) -> Self {
        Self { processes, pods }
    }

    fn of(&self, launch: &Launch) -> &dyn Runtime {
        if launch.pod.is_some() { &*self.pods } else { &*self.processes }
    }

    fn all(&self) -> [&dyn Runtime; 2] {
        [&*self.processes, &*self.pods]
    }
}

impl Runtime for Runtimes {
    fn start(&self, launch: Launch) {
        self.of(&launch).start(launch);
    }

    fn adopt(&self, launch: Launch, ran: bool) {
        self.of(&launch).adopt(launch, ran);
    }

    fn stop(&self, handle: &Handle, grace: Duration) {
        self.all().into_iter().for_each(|runtime| runtime.stop(handle, grace));
    }

    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        self.all().into_iter().try_for_each(|runtime| runtime.keep_logs(handle, blobs))
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        self.all().into_iter().try_for_each(|runtime| runtime.remove(handle))
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        let mut stored = self.processes.stored()?;
        stored.extend(self.pods.stored()?);
        Ok(stored)
    }
}
