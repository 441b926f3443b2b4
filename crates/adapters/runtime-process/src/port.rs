//! The runtime as the engine sees it.

use std::io;
use std::time::Duration;

use muster_exec::DirError;
use muster_ports::blobs::Blobs;
use muster_ports::runtime::{FilesError, Handle, Launch, Runtime};

use crate::keep_logs::keep_logs;
use crate::runtime::ProcessRuntime;

impl Runtime for ProcessRuntime {
    fn start(&self, launch: Launch) {
        Self::start(self, launch);
    }

    fn start_all(&self, launches: Vec<Launch>) {
        Self::start_all(self, launches);
    }

    fn recall(&self, handle: &Handle) {
        Self::recall(self, handle);
    }

    fn stop(&self, handle: &Handle, grace: Duration) {
        Self::stop(self, handle, grace);
    }

    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        if self.is_open(handle) {
            return Err(FilesError::Running);
        }
        keep_logs(self.dirs(), handle, blobs)
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        if self.is_open(handle) {
            return Err(FilesError::Running);
        }
        self.dirs().remove(handle).map_err(|error| match error {
            DirError::Io(error) => FilesError::Io(error),
            other => FilesError::Io(io::Error::other(other)),
        })
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(self.dirs().stored()?)
    }
}
