//! Files in a bucket of an S3-compatible service.
//!
//! A key of the port is a key of the bucket below the prefix, as it is but for a few characters that are written as `%XX`. A file
//! is one object: it is there whole or not at all, and a reader that began goes on with what it asks for next. Large files go up
//! in parts of one size, as they are written; nothing is whole in memory.
//!
//! Directories do not exist there. That a name is not both a file and a directory is looked up before a file is put in its place;
//! two servers that do both in the same moment are not kept apart.
//!
//! The calls wait; the work is done by a small runtime of its own, so that they can be made from any thread.

mod connector;
mod place;
mod writer;

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path as FilePath;
use std::sync::{Arc, mpsc};

use futures_util::{StreamExt as _, TryStreamExt as _};
use muster_ports::blobs::{BlobEntry, BlobError, BlobKey, BlobWriter, Blobs};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _};
use percent_encoding::percent_decode_str;
use tokio::runtime::{Builder, Runtime};

pub use place::{PlaceError, S3Place};
use writer::S3Writer;

/// Size of the parts of large files. All but the last of a file have it.
const PART: usize = 8 << 20;
/// How much of a file is read at once to be sent.
const CHUNK: usize = 1 << 20;
/// The directory of tasks.
const TASKS: &str = "tasks";
/// Segments that are always directories: `tasks/<uid>`.
const SURELY_DIRECTORIES: usize = 2;

/// Files in a bucket. A clone is the same place.
#[derive(Clone)]
pub struct S3Blobs {
    bucket: Arc<Bucket>,
}

/// The bucket, and what speaks to it.
struct Bucket {
    store: AmazonS3,
    prefix: String,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl S3Blobs {
    /// Connects to a bucket, and looks whether it can be used.
    pub fn open(place: &S3Place) -> Result<Self, PlaceError> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("files-s3").enable_all().build();
        let runtime =
            runtime.map_err(|error| place.refused(format_args!("no thread can be started: {error}")))?;
        let store = place.connect()?;
        let bucket = Bucket { store, prefix: place.prefix().to_owned(), runtime: Some(runtime) };
        let blobs = Self { bucket: Arc::new(bucket) };
        let looked = blobs.wait(|bucket| async move {
            bucket.store.list(Some(&bucket.path(TASKS))).next().await.transpose()
        });
        looked.map_err(|error| place.refused(tell(&error)))?;
        Ok(blobs)
    }

    /// Waits for work that the runtime does. Any thread may.
    fn wait<T, W>(&self, work: impl FnOnce(Arc<Bucket>) -> W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (sender, answer) = mpsc::sync_channel(1);
        self.spawn(|bucket| {
            let work = work(bucket);
            async move { drop(sender.send(work.await)) }
        });
        answer.recv().unwrap_or_else(|error| Err(Error::Generic { store: "S3", source: error.into() }))
    }

    fn spawn<W: Future<Output = ()> + Send + 'static>(&self, work: impl FnOnce(Arc<Bucket>) -> W) {
        if let Some(runtime) = &self.bucket.runtime {
            runtime.spawn(work(self.bucket.clone()));
        }
    }

    /// Refuses a name that is already of the other sort.
    fn check_name(&self, key: &BlobKey) -> Result<(), BlobError> {
        let segments: Vec<&str> = key.as_str().split('/').collect();
        for depth in SURELY_DIRECTORIES + 1..segments.len() {
            let above = BlobKey::new(&segments[..depth].join("/"))?;
            match self.size(&above) {
                Ok(_) => return Err(BlobError::Clash(above)),
                Err(BlobError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let text = key.as_str().to_owned();
        let below = self.wait(|bucket| async move {
            bucket.store.list(Some(&bucket.path(&text))).next().await.transpose()
        });
        match below.map_err(|error| of(key, error))? {
            Some(_) => Err(BlobError::Clash(key.clone())),
            None => Ok(()),
        }
    }
}

impl Bucket {
    fn path(&self, key: &str) -> Path {
        let both = if self.prefix.is_empty() { key.to_owned() } else { format!("{}/{key}", self.prefix) };
        Path::from(both)
    }

    /// What a key of the bucket is called below another.
    fn below(above: &Path, path: &Path) -> Option<String> {
        let rest = path.as_ref().strip_prefix(above.as_ref())?.strip_prefix('/')?;
        Some(percent_decode_str(rest).decode_utf8().ok()?.into_owned())
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Blobs for S3Blobs {
    fn write(&self, key: &BlobKey) -> Result<Box<dyn BlobWriter>, BlobError> {
        Ok(Box::new(S3Writer::new(self.clone(), key.clone())))
    }

    fn take(&self, key: &BlobKey, file: &FilePath) -> Result<(), BlobError> {
        let failed = |error: io::Error| BlobError::Io { key: key.clone(), error };
        let mut source = File::open(file).map_err(failed)?;
        let mut writer = self.write(key)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            match source.read(&mut chunk).map_err(failed)? {
                0 => break,
                count => writer.write_all(&chunk[..count]).map_err(failed)?,
            }
        }
        writer.finish()?;
        fs::remove_file(file).map_err(failed)
    }

    fn read(&self, key: &BlobKey, offset: u64, max: usize) -> Result<Vec<u8>, BlobError> {
        let end = offset.saturating_add(max as u64);
        if end == offset {
            return self.size(key).map(|_| Vec::new());
        }
        let text = key.as_str().to_owned();
        let read =
            self.wait(|bucket| async move { bucket.store.get_range(&bucket.path(&text), offset..end).await });
        match read {
            Ok(bytes) => Ok(bytes.into()),
            Err(error @ Error::NotFound { .. }) => Err(of(key, error)),
            // A range behind the end is refused.
            Err(error) => match self.size(key)? {
                size if offset >= size => Ok(Vec::new()),
                _ => Err(of(key, error)),
            },
        }
    }

    fn size(&self, key: &BlobKey) -> Result<u64, BlobError> {
        let text = key.as_str().to_owned();
        let head = self.wait(|bucket| async move { bucket.store.head(&bucket.path(&text)).await });
        head.map(|head| head.size).map_err(|error| of(key, error))
    }

    fn list(&self, below: &BlobKey) -> Result<Vec<BlobEntry>, BlobError> {
        let text = below.as_str().to_owned();
        let listed = self.wait(|bucket| async move {
            let above = bucket.path(&text);
            let objects: Vec<_> = bucket.store.list(Some(&above)).try_collect().await?;
            let entries = objects.into_iter().filter_map(|object| {
                Some(BlobEntry { path: Bucket::below(&above, &object.location)?, size: object.size })
            });
            Ok(entries.collect::<Vec<_>>())
        });
        let mut entries = listed.map_err(|error| of(below, error))?;
        entries.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(entries)
    }

    fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        let text = key.as_str().to_owned();
        let deleted = self.wait(|bucket| async move {
            let path = bucket.path(&text);
            let below: Vec<_> =
                bucket.store.list(Some(&path)).map_ok(|object| object.location).try_collect().await?;
            let all = futures_util::stream::iter(below.into_iter().chain([path]).map(Ok)).boxed();
            let mut outcomes = bucket.store.delete_stream(all);
            while let Some(outcome) = outcomes.next().await {
                match outcome {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        deleted.map_err(|error| of(key, error))
    }

    fn tasks(&self) -> Result<Vec<String>, BlobError> {
        let key = BlobKey::new(TASKS)?;
        let listed = self.wait(|bucket| async move {
            let above = bucket.path(TASKS);
            let found = bucket.store.list_with_delimiter(Some(&above)).await?;
            Ok(found
                .common_prefixes
                .iter()
                .filter_map(|path| Bucket::below(&above, path))
                .collect::<Vec<_>>())
        });
        let mut uids = listed.map_err(|error| of(&key, error))?;
        uids.sort();
        Ok(uids)
    }
}

/// What a service says, as this port says it.
fn of(key: &BlobKey, error: Error) -> BlobError {
    match error {
        Error::NotFound { .. } => BlobError::NotFound(key.clone()),
        error => BlobError::Io { key: key.clone(), error: io::Error::other(tell(&error)) },
    }
}

/// An error with everything behind it, each part once.
fn tell(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}
