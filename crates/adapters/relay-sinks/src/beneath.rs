//! A file beneath a directory, reached by handles alone: nothing outside of the directory is opened, renamed or removed, whatever
//! links are placed in it, and whenever.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Where a file is.
pub struct Place {
    folder: OwnedFd,
    name: String,
}

impl Place {
    /// The place at the end of a path below a directory. Folders that are missing are made.
    pub fn find(directory: &Path, path: &str) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let mut folder = rustix::fs::open(directory, FOLDER, Mode::empty())?;
        let mut parts: Vec<_> = path.split('/').collect();
        let name = parts.pop().unwrap_or_default().to_owned();
        for part in parts {
            match rustix::fs::mkdirat(&folder, part, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            folder = open_beneath(folder.as_fd(), part, FOLDER, Mode::empty())?;
        }
        Ok(Self { folder, name })
    }

    /// Opens the file for appending, and makes it if it is not there.
    pub fn open(&self) -> io::Result<File> {
        // Without waiting, because a pipe of that name would never open.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = open_beneath(self.folder.as_fd(), &self.name, flags, Mode::RUSR | Mode::WUSR)?;
        let file = File::from(opened);
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file; remove it or name another path",
        ))
    }

    /// Gives the file that was put aside under a number another number; 0 is the file itself.
    pub fn renumber(&self, from: u32, to: u32) -> io::Result<()> {
        let (from, to) = (self.numbered(from), self.numbered(to));
        Ok(rustix::fs::renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Removes the file.
    pub fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?)
    }

    fn numbered(&self, number: u32) -> String {
        if number == 0 { self.name.clone() } else { format!("{}.{number}", self.name) }
    }
}

/// Opens one part of a path. The kernel refuses what leads out of the folder, also if it is no plain name.
fn open_beneath(folder: BorrowedFd<'_>, part: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(folder, part, flags, mode, resolve) {
        // Kernels before 5.6, and containers whose system calls are filtered by an older list.
        Err(Errno::NOSYS | Errno::PERM) => open_name(folder, part, flags, mode),
        opened => opened,
    }
}

/// Opens one plain name, which leads nowhere else as long as it is no link.
fn open_name(folder: BorrowedFd<'_>, name: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW, mode)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_kernel_without_openat2_follows_no_link_either() {
        let temp = tempfile::tempdir().unwrap();
        symlink("..", temp.path().join("up")).unwrap();
        symlink("made", temp.path().join("dangling")).unwrap();
        let folder = rustix::fs::open(temp.path(), FOLDER, Mode::empty()).unwrap();
        let open = |name, flags| open_name(folder.as_fd(), name, flags, Mode::RUSR | Mode::WUSR);
        let file = OFlags::RDWR | OFlags::CREATE;
        assert!(open("up", FOLDER).is_err() && open("dangling", file).is_err());
        assert!(!temp.path().join("made").exists());
        assert!(open("plain", file).is_ok() && temp.path().join("plain").is_file());
    }
}
