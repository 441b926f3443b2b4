//! The runtime as the engine sees it.

use std::time::Duration;

use muster_ports::runtime::{Handle, Launch, Runtime};

use crate::runtime::ProcessRuntime;

impl Runtime for ProcessRuntime {
    fn start(&self, launch: Launch) {
        Self::start(self, launch);
    }

    fn stop(&self, handle: &Handle, grace: Duration) {
        Self::stop(self, handle, grace);
    }

    fn remove(&self, handle: &Handle) {
        if let Err(error) = self.remove_later(handle) {
            tracing::warn!(%handle, %error, "the files of an attempt are left behind");
        }
    }
}
