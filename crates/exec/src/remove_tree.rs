//! Removes a directory and all below it, without following links.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Removes `name` in `parent`, also where a program took away the right to.
pub(crate) fn remove_tree(parent: BorrowedFd<'_>, name: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(parent, name, flags, Mode::empty());
    let allow = || rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty());
    let directory = match open() {
        Err(Errno::NOENT) => return Ok(()),
        // Not a directory, or a link to one.
        Err(Errno::NOTDIR | Errno::LOOP) => return unlink(parent, name, AtFlags::empty()),
        Err(Errno::ACCESS) => {
            allow()?;
            open()?
        }
        opened => opened?,
    };
    let removed = remove_entries(&directory);
    if removed == Err(Errno::ACCESS) {
        allow()?;
        remove_entries(&directory)?;
    } else {
        removed?;
    }
    unlink(parent, name, AtFlags::REMOVEDIR)
}

/// Removes what is in a directory.
pub(crate) fn remove_entries(directory: &OwnedFd) -> Result<(), Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        match entry.file_type() {
            FileType::Directory | FileType::Unknown => remove_tree(directory.as_fd(), path)?,
            _ => unlink(directory.as_fd(), path, AtFlags::empty())?,
        }
    }
    Ok(())
}

/// What is not there is removed already.
fn unlink(parent: BorrowedFd<'_>, name: &Path, flags: AtFlags) -> Result<(), Errno> {
    match rustix::fs::unlinkat(parent, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}
