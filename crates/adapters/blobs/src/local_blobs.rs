//! Files in a directory of this machine.
//!
//! ```text
//! files/tasks/<uid>/…     the files, by key
//! unfinished/<number>     those being written; what a crash left there is removed when the directory is opened
//! ```
//!
//! A finished file was written to disk and renamed, and its directory was written too: after a crash it is there whole
//! or not at all. Links are never followed and never served: what stands in these directories and is neither a plain
//! file nor a directory is as good as not there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use muster_ports::blobs::{BlobEntry, BlobError, BlobKey, BlobWriter, Blobs};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::folders::{self, Stop};
use crate::local_writer::LocalWriter;

const FILES: &str = "files";
const UNFINISHED: &str = "unfinished";
const TASKS: &str = "tasks";
/// Times a file is moved again because its directory went away meanwhile.
const TRIES: usize = 16;

/// Files below a directory. A clone is the same place.
#[derive(Clone)]
pub struct LocalBlobs {
    root: Arc<Root>,
}

/// The open directories.
pub struct Root {
    files: OwnedFd,
    unfinished: OwnedFd,
    /// For errors and for copying into.
    directory: PathBuf,
    next: AtomicU64,
}

impl LocalBlobs {
    /// Opens a directory, which is made if it is not there. One process at a time may have it open.
    pub fn open(directory: &Path) -> io::Result<Self> {
        for part in [FILES, UNFINISHED] {
            fs::create_dir_all(directory.join(part))?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |part: &str| rustix::fs::open(directory.join(part), flags, Mode::empty());
        let (files, unfinished) = (open(FILES)?, open(UNFINISHED)?);
        for (name, _) in folders::entries(unfinished.as_fd())? {
            folders::remove(unfinished.as_fd(), &name)?;
        }
        let directory = directory.to_owned();
        Ok(Self { root: Arc::new(Root { files, unfinished, directory, next: AtomicU64::new(0) }) })
    }

    fn open_file(&self, key: &BlobKey) -> Result<File, BlobError> {
        let (above, name) = split(key);
        let missing = || BlobError::NotFound(key.clone());
        let folder = match folders::walk(self.root.files.as_fd(), &above) {
            Ok(folder) => folder,
            Err(Stop::Missing | Stop::NotFolder(_)) => return Err(missing()),
            Err(Stop::Io(errno)) => return Err(of_errno(key, errno)),
        };
        let opened = folders::open_file(folder.as_fd(), name).map_err(|errno| of_errno(key, errno))?;
        opened.ok_or_else(missing)
    }
}

impl Root {
    /// A new name among the unfinished.
    fn new_name(&self) -> String {
        self.next.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// Makes a file among the unfinished.
    fn begin(&self, key: &BlobKey) -> Result<(File, String), BlobError> {
        let name = self.new_name();
        let path = self.directory.join(UNFINISHED).join(&name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(path);
        file.map(|file| (file, name)).map_err(|error| BlobError::Io { key: key.clone(), error })
    }

    /// Moves an unfinished file to its place.
    pub(crate) fn place(&self, key: &BlobKey, unfinished: &str, durable: bool) -> Result<(), BlobError> {
        self.put(key, durable, |folder, name| {
            rustix::fs::renameat(&self.unfinished, unfinished, folder, name)
        })
    }

    /// Removes an unfinished file that is not wanted any more.
    pub(crate) fn forget(&self, unfinished: &str) {
        // What cannot be removed now is removed when the directory is opened again.
        folders::remove(self.unfinished.as_fd(), unfinished).unwrap_or_default();
    }

    /// Makes the directory of a key, and calls what puts the file into it.
    fn put(
        &self,
        key: &BlobKey,
        durable: bool,
        rename: impl Fn(&OwnedFd, &str) -> Result<(), Errno>,
    ) -> Result<(), BlobError> {
        let (above, name) = split(key);
        let mut last = Errno::NOENT;
        for _ in 0..TRIES {
            let folder =
                folders::make(self.files.as_fd(), &above).map_err(|stop| Self::of_stop(key, &stop))?;
            let moved = match rename(&folder, name) {
                // A directory without files is none.
                Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                    match folders::remove_empty(folder.as_fd(), name) {
                        Ok(true) => rename(&folder, name),
                        Ok(false) => return Err(BlobError::Clash(key.clone())),
                        Err(errno) => Err(errno),
                    }
                }
                moved => moved,
            };
            match moved {
                Ok(()) if durable => return rustix::fs::fsync(&folder).map_err(|errno| of_errno(key, errno)),
                Ok(()) => return Ok(()),
                // The directory was removed as empty between making and using it.
                Err(Errno::NOENT) => last = Errno::NOENT,
                Err(errno) => return Err(of_errno(key, errno)),
            }
        }
        Err(of_errno(key, last))
    }

    fn of_stop(key: &BlobKey, stop: &Stop) -> BlobError {
        match stop {
            Stop::Missing => of_errno(key, Errno::NOENT),
            Stop::Io(errno) => of_errno(key, *errno),
            Stop::NotFolder(depth) => {
                let (above, _) = split(key);
                let at = above.get(..=*depth).map(|segments| segments.join("/"));
                let at = at.and_then(|at| BlobKey::new(&at).ok());
                BlobError::Clash(at.unwrap_or_else(|| key.clone()))
            }
        }
    }

    /// Refuses a key whose place is taken, before anything is written.
    fn check_room(&self, key: &BlobKey) -> Result<(), BlobError> {
        let (above, name) = split(key);
        match folders::walk(self.files.as_fd(), &above) {
            Err(Stop::Missing) => Ok(()),
            Err(stop) => Err(Self::of_stop(key, &stop)),
            Ok(folder) => match folders::open_folder(folder.as_fd(), name) {
                Ok(inner) => match folders::entries(inner.as_fd()) {
                    Ok(entries) if entries.is_empty() => Ok(()),
                    Ok(_) => Err(BlobError::Clash(key.clone())),
                    Err(errno) => Err(of_errno(key, errno)),
                },
                Err(_) => Ok(()),
            },
        }
    }

    /// Removes the directories above a key that hold nothing any more.
    fn prune(&self, key: &BlobKey) {
        let (mut above, _) = split(key);
        // Tasks themselves are listed, so the directory of all tasks stays.
        while above.len() > 1 {
            let Some(name) = above.pop() else { return };
            let Ok(folder) = folders::walk(self.files.as_fd(), &above) else { continue };
            if !matches!(folders::remove_empty(folder.as_fd(), name), Ok(true)) {
                return;
            }
        }
    }
}

impl Blobs for LocalBlobs {
    fn write(&self, key: &BlobKey) -> Result<Box<dyn BlobWriter>, BlobError> {
        self.root.check_room(key)?;
        let (file, name) = self.root.begin(key)?;
        Ok(Box::new(LocalWriter::new(self.root.clone(), key.clone(), file, name)))
    }

    fn take(&self, key: &BlobKey, file: &Path) -> Result<(), BlobError> {
        let io = |error| BlobError::Io { key: key.clone(), error };
        if !fs::symlink_metadata(file).map_err(io)?.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "only a plain file can be kept")));
        }
        let moved = self
            .root
            .put(key, false, |folder, name| rustix::fs::renameat(rustix::fs::CWD, file, folder, name));
        match moved {
            Err(BlobError::Io { error, .. }) if Errno::from_io_error(&error) == Some(Errno::XDEV) => {}
            outcome => return outcome,
        }
        // Another file system: the copy is whole and on disk before the original goes.
        let mut writer = self.write(key)?;
        let mut original = File::options()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(file)
            .map_err(io)?;
        io::copy(&mut original, &mut writer).map_err(io)?;
        writer.finish()?;
        fs::remove_file(file).map_err(io)
    }

    fn read(&self, key: &BlobKey, offset: u64, max: usize) -> Result<Vec<u8>, BlobError> {
        let io = |error| BlobError::Io { key: key.clone(), error };
        let file = self.open_file(key)?;
        let left = file.metadata().map_err(io)?.len().saturating_sub(offset);
        let mut bytes = vec![0; max.min(usize::try_from(left).unwrap_or(usize::MAX))];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io(error)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn size(&self, key: &BlobKey) -> Result<u64, BlobError> {
        let found = self.open_file(key)?.metadata();
        found.map(|found| found.len()).map_err(|error| BlobError::Io { key: key.clone(), error })
    }

    fn list(&self, below: &BlobKey) -> Result<Vec<BlobEntry>, BlobError> {
        let segments: Vec<_> = below.as_str().split('/').collect();
        let folder = match folders::walk(self.root.files.as_fd(), &segments) {
            Ok(folder) => folder,
            Err(Stop::Missing | Stop::NotFolder(_)) => return Ok(Vec::new()),
            Err(Stop::Io(errno)) => return Err(of_errno(below, errno)),
        };
        let mut all = Vec::new();
        folders::visit(folder.as_fd(), "", &mut |path, size| all.push(BlobEntry { path, size }))
            .map_err(|errno| of_errno(below, errno))?;
        all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        let (above, name) = split(key);
        match folders::walk(self.root.files.as_fd(), &above) {
            Ok(folder) => folders::remove(folder.as_fd(), name).map_err(|errno| of_errno(key, errno))?,
            Err(Stop::Missing | Stop::NotFolder(_)) => return Ok(()),
            Err(Stop::Io(errno)) => return Err(of_errno(key, errno)),
        }
        self.root.prune(key);
        Ok(())
    }

    fn tasks(&self) -> Result<Vec<String>, BlobError> {
        let key = BlobKey::new(TASKS)?;
        let folder = match folders::walk(self.root.files.as_fd(), &[TASKS]) {
            Ok(folder) => folder,
            Err(Stop::Missing | Stop::NotFolder(_)) => return Ok(Vec::new()),
            Err(Stop::Io(errno)) => return Err(of_errno(&key, errno)),
        };
        let entries = folders::entries(folder.as_fd()).map_err(|errno| of_errno(&key, errno))?;
        let mut uids: Vec<_> = entries.into_iter().map(|(name, _)| name).collect();
        uids.sort_unstable();
        Ok(uids)
    }
}

/// The segments above the last one, and the last one.
fn split(key: &BlobKey) -> (Vec<&str>, &str) {
    let mut segments: Vec<_> = key.as_str().split('/').collect();
    let name = segments.pop().unwrap_or_default();
    (segments, name)
}

fn of_errno(key: &BlobKey, errno: Errno) -> BlobError {
    BlobError::Io { key: key.clone(), error: errno.into() }
}
