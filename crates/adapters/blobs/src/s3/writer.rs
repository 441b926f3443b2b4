//! A file on its way into a bucket: in one piece if it is small, else in parts as they are written.

use std::io;

use muster_ports::blobs::{BlobError, BlobKey, BlobWriter};
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};

use super::{PART, S3Blobs, of};

/// Nobody sees it before it is finished.
pub(super) struct S3Writer {
    blobs: S3Blobs,
    key: BlobKey,
    buffer: Vec<u8>,
    size: u64,
    /// What was sent so far, if there was more than one part.
    upload: Option<Box<dyn MultipartUpload>>,
    /// A part of it did not arrive: nothing can be made of the others.
    torn: bool,
}

impl S3Writer {
    pub fn new(blobs: S3Blobs, key: BlobKey) -> Self {
        Self { blobs, key, buffer: Vec::new(), size: 0, upload: None, torn: false }
    }

    fn check_whole(&self) -> Result<(), BlobError> {
        let torn = || io::Error::other("a part of it could not be sent; send it again from its beginning");
        if self.torn { Err(BlobError::Io { key: self.key.clone(), error: torn() }) } else { Ok(()) }
    }

    /// Sends what was gathered as the next part.
    fn send(&mut self) -> Result<(), BlobError> {
        // Until it was.
        self.torn = true;
        let part = PutPayload::from(std::mem::take(&mut self.buffer));
        let (upload, text) = (self.upload.take(), self.key.as_str().to_owned());
        let sent = self.blobs.wait(|bucket| async move {
            let mut upload = match upload {
                Some(upload) => upload,
                None => bucket.store.put_multipart(&bucket.path(&text)).await?,
            };
            let outcome = upload.put_part(part).await;
            if outcome.is_err() {
                // The service forgets unfinished ones in its own time if this fails too.
                drop(upload.abort().await);
            }
            outcome.map(|()| upload)
        });
        self.upload = Some(sent.map_err(|error| of(&self.key, error))?);
        self.torn = false;
        Ok(())
    }
}

impl io::Write for S3Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_whole().map_err(io::Error::other)?;
        let count = bytes.len().min(PART - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        self.size += count as u64;
        if self.buffer.len() == PART {
            self.send().map_err(io::Error::other)?;
        }
        Ok(count)
    }

    /// Parts have one size: nothing is sent before its time.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for S3Writer {
    fn finish(mut self: Box<Self>) -> Result<u64, BlobError> {
        self.check_whole()?;
        self.blobs.check_name(&self.key)?;
        if self.upload.is_some() && !self.buffer.is_empty() {
            self.send()?;
        }
        let (upload, rest) = (self.upload.take(), PutPayload::from(std::mem::take(&mut self.buffer)));
        let text = self.key.as_str().to_owned();
        let finished = self.blobs.wait(|bucket| async move {
            match upload {
                Some(mut upload) => {
                    let outcome = upload.complete().await;
                    if outcome.is_err() {
                        drop(upload.abort().await);
                    }
                    outcome
                }
                None => bucket.store.put(&bucket.path(&text), rest).await,
            }
        });
        finished.map(|_| self.size).map_err(|error| of(&self.key, error))
    }
}

impl Drop for S3Writer {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            self.blobs.spawn(|_| async move { drop(upload.abort().await) });
        }
    }
}
