//! The runtime as the engine sees it.

use std::io::{self, Write as _};
use std::time::Duration;

use muster_ports::blobs::{BlobKey, Blobs};
use muster_ports::runtime::{FilesError, Handle, Launch, Runtime};

use crate::runtime::{ProcessRuntime, RemoveError};

/// Bytes copied at once.
const PIECE: usize = 1 << 20;

impl Runtime for ProcessRuntime {
    fn start(&self, launch: Launch) {
        Self::start(self, launch);
    }

    fn stop(&self, handle: &Handle, grace: Duration) {
        Self::stop(self, handle, grace);
    }

    fn keep_logs(&self, handle: &Handle, blobs: &dyn Blobs) -> Result<(), FilesError> {
        let logs = match self.log_path(handle, "any").parent().map(std::fs::read_dir) {
            Some(Ok(logs)) => logs,
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Some(Err(_)) | None => return Ok(()),
        };
        let below = BlobKey::of_task(&handle.task)?.join(&format!("logs/{}", handle.attempt))?;
        for entry in logs {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(container) = name.strip_suffix(".log") else { continue };
            let read = |offset| self.read_log(handle, container, offset, PIECE).map_err(io::Error::other);
            let mut part = read(0)?;
            let mut writer = blobs.write(&below.join(&format!("{container}/{}", part.offset))?)?;
            while !part.bytes.is_empty() {
                writer.write_all(&part.bytes)?;
                part = read(part.offset + part.bytes.len() as u64)?;
            }
            writer.finish()?;
        }
        Ok(())
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        Self::remove(self, handle).map_err(|error| match error {
            RemoveError::Running => FilesError::Running,
            RemoveError::Dir(error) => FilesError::Io(io::Error::other(error)),
        })
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(Self::stored(self)?)
    }
}
