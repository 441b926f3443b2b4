//! A place for files that keeps none: the simulation follows which attempts had their logs kept, not what was in them.

use std::path::Path;

use muster_ports::blobs::{BlobEntry, BlobError, BlobKey, BlobWriter, Blobs};

/// Keeps nothing.
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn write(&self, key: &BlobKey) -> Result<Box<dyn BlobWriter>, BlobError> {
        Err(BlobError::NotFound(key.clone()))
    }

    fn take(&self, _key: &BlobKey, _file: &Path) -> Result<(), BlobError> {
        Ok(())
    }

    fn read(&self, key: &BlobKey, _offset: u64, _max: usize) -> Result<Vec<u8>, BlobError> {
        Err(BlobError::NotFound(key.clone()))
    }

    fn size(&self, key: &BlobKey) -> Result<u64, BlobError> {
        Err(BlobError::NotFound(key.clone()))
    }

    fn list(&self, _below: &BlobKey) -> Result<Vec<BlobEntry>, BlobError> {
        Ok(Vec::new())
    }

    fn delete(&self, _key: &BlobKey) -> Result<(), BlobError> {
        Ok(())
    }

    fn tasks(&self) -> Result<Vec<String>, BlobError> {
        Ok(Vec::new())
    }
}
