//! Walking directories by descriptor, one plain segment at a time: a link is never followed, wherever it stands.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Times a path is made again because somebody removed an empty part of it meanwhile.
const TRIES: usize = 16;

/// Why a path cannot be walked.
pub enum Stop {
    /// Nothing is there.
    Missing,
    /// So many segments are there, and the next one is no directory.
    NotFolder(usize),
    /// The disk refused.
    Io(Errno),
}

/// Opens a directory in another one.
pub fn open_folder(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, name, FOLDER, Mode::empty())
}

/// Opens the directory at the end of some segments.
pub fn walk(root: BorrowedFd<'_>, segments: &[&str]) -> Result<OwnedFd, Stop> {
    let mut at = root.try_clone_to_owned().map_err(|error| Stop::Io(errno_of(&error)))?;
    for (depth, segment) in segments.iter().enumerate() {
        at = open_folder(at.as_fd(), segment).map_err(|errno| match errno {
            Errno::NOENT => Stop::Missing,
            Errno::NOTDIR | Errno::LOOP => Stop::NotFolder(depth),
            errno => Stop::Io(errno),
        })?;
    }
    Ok(at)
}

/// Opens the directory at the end of some segments, making what is missing of it. What is made survives a crash.
pub fn make(root: BorrowedFd<'_>, segments: &[&str]) -> Result<OwnedFd, Stop> {
    for _ in 0..TRIES {
        match make_once(root, segments) {
            Err(Stop::Missing) => {}
            outcome => return outcome,
        }
    }
    Err(Stop::Missing)
}

fn make_once(root: BorrowedFd<'_>, segments: &[&str]) -> Result<OwnedFd, Stop> {
    let mut at = root.try_clone_to_owned().map_err(|error| Stop::Io(errno_of(&error)))?;
    for (depth, segment) in segments.iter().enumerate() {
        let next = match open_folder(at.as_fd(), segment) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&at, *segment, Mode::RWXU) {
                    Ok(()) => rustix::fs::fsync(&at).map_err(Stop::Io)?,
                    Err(Errno::EXIST) => {}
                    Err(Errno::NOENT) => return Err(Stop::Missing),
                    Err(errno) => return Err(Stop::Io(errno)),
                }
                open_folder(at.as_fd(), segment)
            }
            opened => opened,
        };
        at = next.map_err(|errno| match errno {
            Errno::NOENT => Stop::Missing,
            Errno::NOTDIR | Errno::LOOP => Stop::NotFolder(depth),
            errno => Stop::Io(errno),
        })?;
    }
    Ok(at)
}

/// Opens a regular file in a directory; `None` if there is none.
pub fn open_file(folder: BorrowedFd<'_>, name: &str) -> Result<Option<File>, Errno> {
    // Without waiting, because a pipe of that name would never open.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        opened => opened?,
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    Ok((kind == FileType::RegularFile).then(|| File::from(opened)))
}

/// Tells the files below a directory, with their sizes.
pub fn visit(folder: BorrowedFd<'_>, prefix: &str, seen: &mut impl FnMut(String, u64)) -> Result<(), Errno> {
    for (name, kind) in entries(folder)? {
        let path = format!("{prefix}{name}");
        match kind {
            FileType::RegularFile => {
                match rustix::fs::statat(folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) => seen(path, u64::try_from(found.st_size).unwrap_or(0)),
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno),
                }
            }
            FileType::Directory => match open_folder(folder, &name) {
                Ok(inner) => visit(inner.as_fd(), &format!("{path}/"), seen)?,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            },
            _ => {}
        }
    }
    Ok(())
}

/// Removes what has a name in a directory, and everything below it.
pub fn remove(folder: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    let inner = match open_folder(folder, name) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return unlink(folder, name, AtFlags::empty()),
        opened => opened?,
    };
    for (name, _) in entries(inner.as_fd())? {
        remove(inner.as_fd(), &name)?;
    }
    unlink(folder, name, AtFlags::REMOVEDIR)
}

/// Removes a directory if nothing is in it. True if it is gone.
pub fn remove_empty(folder: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// What is in a directory, and what it is. Names that no key can have are left out.
pub fn entries(folder: BorrowedFd<'_>) -> Result<Vec<(String, FileType)>, Errno> {
    let mut all = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let Some(name) = Path::new(name).to_str().filter(|name| !matches!(*name, "." | "..")) else {
            continue;
        };
        let kind = match entry.file_type() {
            FileType::Unknown => match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                Err(_) => continue,
            },
            kind => kind,
        };
        all.push((name.to_owned(), kind));
    }
    Ok(all)
}

fn unlink(folder: BorrowedFd<'_>, name: &str, flags: AtFlags) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        outcome => outcome,
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
