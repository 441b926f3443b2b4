//! Files in memory: the fake of every place that keeps files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{BlobEntry, BlobError, BlobKey, BlobWriter, Blobs};

/// Files by key. A clone is the same place.
#[derive(Debug, Clone, Default)]
pub struct MemoryBlobs {
    files: Arc<Mutex<BTreeMap<String, Arc<[u8]>>>>,
    away: Arc<AtomicBool>,
}

/// A file being written to memory.
struct MemoryWriter {
    blobs: MemoryBlobs,
    key: BlobKey,
    bytes: Vec<u8>,
}

impl MemoryBlobs {
    /// From now on every call fails, as when the service cannot be reached, or no longer does.
    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    fn reach(&self, key: &BlobKey) -> Result<(), BlobError> {
        if !self.away.load(Ordering::SeqCst) {
            return Ok(());
        }
        let error = io::Error::new(io::ErrorKind::ConnectionRefused, "the service cannot be reached");
        Err(BlobError::Io { key: key.clone(), error })
    }

    fn find(&self, key: &BlobKey) -> Result<Arc<[u8]>, BlobError> {
        self.reach(key)?;
        let found = self.files.lock().get(key.as_str()).cloned();
        found.ok_or_else(|| BlobError::NotFound(key.clone()))
    }

    fn put(&self, key: &BlobKey, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.reach(key)?;
        let mut files = self.files.lock();
        check_room(&files, key)?;
        files.insert(key.as_str().to_owned(), bytes.into());
        Ok(())
    }
}

/// No file may be above or below the key.
fn check_room(files: &BTreeMap<String, Arc<[u8]>>, key: &BlobKey) -> Result<(), BlobError> {
    let text = key.as_str();
    let above = text.match_indices('/').map(|(at, _)| &text[..at]).find(|above| files.contains_key(*above));
    if let Some(above) = above {
        return Err(BlobError::Clash(BlobKey::new(above)?));
    }
    let inside = format!("{text}/");
    let below = files.range(inside.clone()..).next().is_some_and(|(path, _)| path.starts_with(&inside));
    if below { Err(BlobError::Clash(key.clone())) } else { Ok(()) }
}

impl Blobs for MemoryBlobs {
    fn write(&self, key: &BlobKey) -> Result<Box<dyn BlobWriter>, BlobError> {
        check_room(&self.files.lock(), key)?;
        Ok(Box::new(MemoryWriter { blobs: self.clone(), key: key.clone(), bytes: Vec::new() }))
    }

    fn take(&self, key: &BlobKey, file: &Path) -> Result<(), BlobError> {
        check_room(&self.files.lock(), key)?;
        let io = |error| BlobError::Io { key: key.clone(), error };
        let bytes = std::fs::read(file).map_err(io)?;
        self.put(key, bytes)?;
        std::fs::remove_file(file).map_err(io)
    }

    fn read(&self, key: &BlobKey, offset: u64, max: usize) -> Result<Vec<u8>, BlobError> {
        let bytes = self.find(key)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = from.saturating_add(max).min(bytes.len());
        Ok(bytes[from..to].to_vec())
    }

    fn size(&self, key: &BlobKey) -> Result<u64, BlobError> {
        Ok(self.find(key)?.len() as u64)
    }

    fn list(&self, below: &BlobKey) -> Result<Vec<BlobEntry>, BlobError> {
        self.reach(below)?;
        let inside = format!("{below}/");
        let files = self.files.lock();
        let entries = files.range(inside.clone()..).map_while(|(path, bytes)| {
            let path = path.strip_prefix(&inside)?.to_owned();
            Some(BlobEntry { path, size: bytes.len() as u64 })
        });
        Ok(entries.collect())
    }

    fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        self.reach(key)?;
        let inside = format!("{key}/");
        self.files.lock().retain(|path, _| path != key.as_str() && !path.starts_with(&inside));
        Ok(())
    }

    fn tasks(&self) -> Result<Vec<String>, BlobError> {
        self.reach(&BlobKey("tasks".to_owned()))?;
        let files = self.files.lock();
        let uids = files.keys().filter_map(|path| path.strip_prefix("tasks/")?.split('/').next());
        let mut uids: Vec<_> = uids.map(str::to_owned).collect();
        uids.dedup();
        Ok(uids)
    }
}

impl io::Write for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for MemoryWriter {
    fn finish(self: Box<Self>) -> Result<u64, BlobError> {
        let size = self.bytes.len() as u64;
        self.blobs.put(&self.key, self.bytes)?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    crate::blobs_conformance!((super::MemoryBlobs::default(), ()));
}
