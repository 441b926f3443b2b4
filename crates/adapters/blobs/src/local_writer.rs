//! A file being written: beside the others until it is whole.

use std::fs::File;
use std::io;
use std::sync::Arc;

use muster_ports::blobs::{BlobError, BlobKey, BlobWriter};

use crate::local_blobs::Root;

/// Writes to a file that nobody sees, and moves it to its place at the end.
pub struct LocalWriter {
    root: Arc<Root>,
    key: BlobKey,
    file: File,
    /// Its name among the unfinished; `None` once it is in its place.
    unfinished: Option<String>,
    size: u64,
}

impl LocalWriter {
    pub(crate) fn new(root: Arc<Root>, key: BlobKey, file: File, unfinished: String) -> Self {
        Self { root, key, file, unfinished: Some(unfinished), size: 0 }
    }
}

impl io::Write for LocalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl BlobWriter for LocalWriter {
    fn finish(mut self: Box<Self>) -> Result<u64, BlobError> {
        let io = |error| BlobError::Io { key: self.key.clone(), error };
        self.file.sync_all().map_err(io)?;
        if let Some(name) = self.unfinished.as_deref() {
            self.root.place(&self.key, name, true)?;
            self.unfinished = None;
        }
        Ok(self.size)
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        if let Some(name) = &self.unfinished {
            self.root.forget(name);
        }
    }
}
