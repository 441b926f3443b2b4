//! Directories of files as tar archives, packed while they are sent and unpacked only if all of it is in order.
//!
//! Blocking where it reads and writes files. Plain files and directories are taken; links, devices, absolute paths and
//! `..` are refused, and then nothing of the archive is kept.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};
use muster_ports::blobs::{BlobEntry, BlobError, BlobKey, Blobs};
use muster_ports::clock::Millis;
use tar::{Archive, Builder, EntryType, Header};
use tokio::sync::mpsc;

use super::files::{BLOCK, of_blob};
use crate::refusal::Refusal;

/// Most files of an archive.
const MAX_FILES: usize = 100_000;
/// Largest header that says more of the next entry, which is read whole.
const MAX_EXTENSION: u64 = 64 * 1024;
/// Parts that wait to be sent.
const PARTS: usize = 4;

/// A tar of some files below a key, made on a thread of its own while it is sent.
pub fn pack(
    blobs: Arc<dyn Blobs>,
    below: BlobKey,
    entries: Vec<BlobEntry>,
    now: Millis,
) -> impl Stream<Item = Bytes> + Send + 'static {
    send(move |out| append_all(out, &*blobs, &below, &entries, now))
}

/// A tar that is written on a thread of its own while it is sent.
pub fn send(
    write: impl FnOnce(&mut Builder<Outlet>) -> io::Result<()> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let (sender, receiver) = mpsc::channel(PARTS);
    tokio::task::spawn_blocking(move || {
        let mut out = Builder::new(Outlet { sender: Some(sender), buffer: Vec::with_capacity(BLOCK) });
        let sent = write(&mut out).and_then(|()| io::Write::flush(out.get_mut()));
        if let Err(error) = sent {
            // Without its end the archive is not taken for whole.
            tracing::debug!(%error, "an archive was not sent whole");
            out.get_mut().sender = None;
        }
    });
    stream::unfold(receiver, |mut receiver| async move {
        let chunk = receiver.recv().await?;
        Some((chunk, receiver))
    })
}

fn append_all(
    out: &mut Builder<Outlet>,
    blobs: &dyn Blobs,
    below: &BlobKey,
    entries: &[BlobEntry],
    now: Millis,
) -> io::Result<()> {
    for entry in entries {
        let key = below.join(&entry.path).map_err(io::Error::other)?;
        let mut header = Header::new_gnu();
        header.set_size(entry.size);
        header.set_mode(0o644);
        header.set_mtime(u64::try_from(now.0.div_euclid(1000)).unwrap_or(0));
        let mut file = open(blobs, &key).take(entry.size);
        out.append_data(&mut header, &entry.path, &mut file)?;
        if file.limit() > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter"));
        }
    }
    out.finish()
}

/// Unpacks an archive that is kept as a file to below another key. Returns what was unpacked.
pub fn unpack(blobs: &dyn Blobs, packed: &BlobKey, to: &BlobKey) -> Result<Vec<BlobEntry>, Refusal> {
    check_extensions(blobs, packed)?;
    let planned = plan(blobs, packed, to)?;
    if planned.is_empty() {
        return Ok(Vec::new());
    }
    let mut archive = Archive::new(open(blobs, packed));
    let mut unpacked = Vec::new();
    for entry in archive.entries().map_err(|error| unreadable(&error))? {
        let mut entry = entry.map_err(|error| unreadable(&error))?;
        let Some(path) = path_of(&entry)? else { continue };
        let key = to.join(&path).map_err(|error| of_blob(&error))?;
        let mut writer = blobs.write(&key).map_err(|error| of_blob(&error))?;
        io::copy(&mut entry, &mut writer)
            .map_err(|error| of_blob(&BlobError::Io { key: key.clone(), error }))?;
        let size = writer.finish().map_err(|error| of_blob(&error))?;
        unpacked.push(BlobEntry { path, size });
    }
    Ok(unpacked)
}

/// Headers that belong to the next entry are read whole by the reader of archives, so they are looked at first.
fn check_extensions(blobs: &dyn Blobs, packed: &BlobKey) -> Result<(), Refusal> {
    let mut archive = Archive::new(open(blobs, packed));
    for entry in archive.entries().map_err(|error| unreadable(&error))?.raw(true) {
        let entry = entry.map_err(|error| unreadable(&error))?;
        let kind = entry.header().entry_type();
        let extends = kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions();
        if extends && entry.size() > MAX_EXTENSION {
            return Err(Refusal::bad_request("the archive has a name or a header that is too long"));
        }
    }
    Ok(())
}

/// Reads the whole archive without keeping anything of it.
fn plan(blobs: &dyn Blobs, packed: &BlobKey, to: &BlobKey) -> Result<BTreeSet<String>, Refusal> {
    let there = blobs.list(to).map_err(|error| of_blob(&error))?;
    let there: BTreeSet<String> = there.into_iter().map(|entry| entry.path).collect();
    let mut archive = Archive::new(open(blobs, packed));
    let mut planned = BTreeSet::new();
    for entry in archive.entries().map_err(|error| unreadable(&error))? {
        let mut entry = entry.map_err(|error| unreadable(&error))?;
        let Some(path) = path_of(&entry)? else { continue };
        to.join(&path).map_err(|error| of_blob(&error))?;
        let sent = io::copy(&mut entry, &mut io::sink()).map_err(|error| unreadable(&error))?;
        if sent < entry.size() {
            return Err(Refusal::bad_request("the archive ends in the middle of a file"));
        }
        planned.insert(path);
        if planned.len() > MAX_FILES {
            return Err(Refusal::too_large(format!("the archive has more than {MAX_FILES} files")));
        }
    }
    for path in &planned {
        if clashes(path, &there) || clashes(path, &planned) {
            return Err(Refusal::clash(format!("\"{path}\" would be both a file and a directory")));
        }
    }
    Ok(planned)
}

/// True if a file is above or below a path.
fn clashes(path: &str, files: &BTreeSet<String>) -> bool {
    let inside = format!("{path}/");
    path.match_indices('/').any(|(at, _)| files.contains(&path[..at]))
        || files.range(inside.clone()..).next().is_some_and(|file| file.starts_with(&inside))
}

/// The path of a plain file, in plain segments; `None` for directories and headers.
fn path_of<R: Read>(entry: &tar::Entry<'_, R>) -> Result<Option<String>, Refusal> {
    let bytes = entry.path_bytes();
    let shown = String::from_utf8_lossy(&bytes).into_owned();
    let refuse = |why: &str| Err(Refusal::bad_request(format!("the archive has \"{shown}\", {why}")));
    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous | EntryType::Directory => {}
        EntryType::XGlobalHeader => return Ok(None),
        EntryType::Link | EntryType::Symlink => return refuse("which is a link; only plain files are kept"),
        _ => return refuse("which is neither a file nor a directory"),
    }
    let Ok(text) = std::str::from_utf8(&bytes) else { return refuse("which is not UTF-8") };
    if text.starts_with('/') {
        return refuse("which is an absolute path");
    }
    let segments: Vec<&str> = text.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    if segments.contains(&"..") {
        return refuse("which leads out of the directory");
    }
    let is_file = entry.header().entry_type() != EntryType::Directory && !text.ends_with('/');
    if is_file && segments.is_empty() {
        return refuse("which names no file");
    }
    Ok(is_file.then(|| segments.join("/")))
}

fn unreadable(error: &io::Error) -> Refusal {
    Refusal::bad_request(format!("the body is not a tar archive: {error}"))
}

fn open<'a>(blobs: &'a dyn Blobs, key: &'a BlobKey) -> BufReader<FileReader<'a>> {
    BufReader::with_capacity(BLOCK, FileReader { blobs, key, offset: 0 })
}

/// Reads a kept file from its start.
struct FileReader<'a> {
    blobs: &'a dyn Blobs,
    key: &'a BlobKey,
    offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.blobs.read(self.key, self.offset, out.len()).map_err(io::Error::other)?;
        out[..bytes.len()].copy_from_slice(&bytes);
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// Hands bytes on to whoever sends them, in blocks. Fails when nobody takes them any more.
pub struct Outlet {
    /// `None` once nothing more is to be sent.
    sender: Option<mpsc::Sender<Bytes>>,
    buffer: Vec<u8>,
}

impl io::Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BLOCK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let full = std::mem::take(&mut self.buffer);
        let sent = self.sender.as_ref().is_some_and(|sender| sender.blocking_send(full.into()).is_ok());
        if sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}
