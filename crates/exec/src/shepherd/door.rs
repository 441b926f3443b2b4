//! Where the next master comes in when the one before is gone: a socket in the work root that only its owner reaches.
//!
//! The socket has a directory of its own, because those above may have to be passable for programs of other users. It is named
//! through a descriptor of that directory, so that a long path does not matter.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd};

/// Below the work root. No attempt can have this name.
const ROOM: &str = ".door";
const SOCKET: &str = "socket";
const OWNER_ONLY: u32 = 0o700;

/// The way in.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Opens it in a work root, in place of one that a former shepherd left. Nobody else may have a shepherd there.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let own = root.join(ROOM);
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(&own)?;
        fs::set_permissions(&own, Permissions::from_mode(OWNER_ONLY))?;
        let path = own.join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = through(&own, |short| UnixListener::bind(short))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path })
    }

    /// Whoever stands before it, if anybody does.
    pub(crate) fn let_in(&self) -> Option<UnixStream> {
        self.listener.accept().ok().map(|(socket, _)| socket)
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// The socket of the shepherd of a work root, if one is there that lets others in. Blocks.
pub fn knock(root: &Path) -> io::Result<UnixStream> {
    through(&root.join(ROOM), |short| UnixStream::connect(short))
}

/// The name of the socket may have a hundred bytes; that of the directory has as many as it has.
fn through<T>(room: &Path, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let room = File::open(room)?;
    with(&PathBuf::from(format!("/proc/self/fd/{}", room.as_raw_fd())).join(SOCKET))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_found_however_long_its_path_is_and_gone_when_it_was_closed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("a-long-name-".repeat(15));
        assert!(knock(&root).is_err());
        let door = Door::open(&root).unwrap();
        assert!(door.let_in().is_none());
        let _outside = knock(&root).unwrap();
        assert!(door.let_in().is_some());
        let mode = fs::metadata(root.join(ROOM)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY, "only its owner reaches it");
        drop(door);
        assert!(knock(&root).is_err());
    }

    #[test]
    fn a_door_that_was_left_behind_is_replaced() {
        let temp = tempfile::tempdir().unwrap();
        std::mem::forget(Door::open(temp.path()).unwrap());
        let door = Door::open(temp.path()).unwrap();
        let _outside = knock(temp.path()).unwrap();
        assert!(door.let_in().is_some());
    }
}
