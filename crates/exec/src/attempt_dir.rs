//! The directory of an attempt: made once, read without following links, removed whole.
//!
//! Programs own what is below their directory and may put anything there, also links to files that are none of their
//! business. So everything below the work root is opened part by part and no part may be a link.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use muster_types::attempt::Handle;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, IFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use thiserror::Error;

use crate::remove_tree::remove_tree;
use crate::spares::{Filling, Spares, clean, take_spare};
use crate::start_failure::is_file_name;

/// Below the attempt's directory: where its programs run.
pub(crate) const WORK: &str = "work";
/// Below the work root: directories that were made ready before their attempts.
const STAGED: &str = "staged";
/// Below the attempt's directory: what they wrote. Made with the first byte.
pub(crate) const LOGS: &str = "logs";

/// Why a directory could not be made, read or removed.
#[derive(Debug, Error)]
pub enum DirError {
    /// It is there already: the attempt was started before.
    #[error("the attempt was started before")]
    Exists,
    /// It is not there.
    #[error("the attempt has no directory")]
    NotFound,
    /// The handle is no name for a directory.
    #[error("`{0}` cannot name an attempt's directory")]
    BadName(String),
    /// The file system refused.
    #[error("cannot use the attempt's directory: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for DirError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EXIST => Self::Exists,
            Errno::NOENT => Self::NotFound,
            errno => Self::Io(errno.into()),
        }
    }
}

/// The directories of all attempts.
#[derive(Debug, Clone)]
pub struct AttemptDirs {
    root: Arc<Path>,
    spares: Arc<Filling>,
}

impl AttemptDirs {
    /// Those below a work root.
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self { root: root.as_ref().into(), spares: Arc::default() }
    }

    /// Where all of them are.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where one is, whether it exists or not.
    pub fn path(&self, handle: &Handle) -> PathBuf {
        self.root.join(handle.to_string())
    }

    /// Where whoever starts an attempt may put a directory before, which then becomes the one its programs run in. Below the work
    /// root, where no attempt can be called so.
    pub fn staging(&self, handle: &Handle) -> PathBuf {
        self.root.join(STAGED).join(handle.to_string())
    }

    /// Where a container's log is, once it has written something. For people: programs that do not trust the attempt read
    /// it with [`AttemptDirs::read_log`].
    pub fn log_path(&self, handle: &Handle, container: &str) -> PathBuf {
        self.path(handle).join(LOGS).join(format!("{container}.log"))
    }

    /// The attempts that have a directory, in no order.
    pub fn stored(&self) -> io::Result<Vec<Handle>> {
        let entries = match std::fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut handles = Vec::new();
        for entry in entries {
            handles.extend(entry?.file_name().to_str().and_then(parse_handle));
        }
        Ok(handles)
    }

    /// Removes the directory of an attempt and all that is in it; what is not there is removed already. Blocks.
    ///
    /// The attempt must have ended: its mark goes with the directory, and starting it would start it again.
    pub fn remove(&self, handle: &Handle) -> Result<(), DirError> {
        let name = checked_name(handle)?;
        let root = match open_dir(CWD, &self.root) {
            Ok(root) => root,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let name = Path::new(&name);
        if self.spares.keep(root.as_fd(), name) {
            return Ok(());
        }
        Ok(remove_tree(root.as_fd(), name)?)
    }

    /// Makes the work root, if need be, and tells the file system that attempts have nothing to do with each other.
    ///
    /// ext4 then spreads their directories. Otherwise all of them and their logs share one group of inodes, and since it does
    /// not use an inode again for some seconds, each new file is searched for past all that were removed meanwhile: with a
    /// thousand attempts a second that takes longer than starting a program.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.root)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&*self.root, flags, Mode::empty())?;
        // Other file systems know no such flag and do well without.
        if let Ok(flags) = rustix::fs::ioctl_getflags(&root) {
            rustix::fs::ioctl_setflags(&root, flags | IFlags::TOPDIR).ok();
        }
        Ok(())
    }

    /// Makes the directory of an attempt that starts and answers where its programs run.
    pub(crate) fn create(&self, handle: &Handle, spares: &Mutex<Spares>) -> Result<PathBuf, DirError> {
        let path = self.root.join(checked_name(handle)?);
        let work = path.join(WORK);
        if take_spare(spares, &self.root, &path)? {
            return Ok(work);
        }
        let private = Mode::RWXU;
        match rustix::fs::mkdir(&path, private) {
            Err(Errno::NOENT) => {
                self.prepare()?;
                rustix::fs::mkdir(&path, private)?;
            }
            made => made?,
        }
        if let Err(errno) = rustix::fs::mkdir(&work, private) {
            // Half a directory would be the mark of an attempt that was started.
            rustix::fs::rmdir(&path).ok();
            return Err(errno.into());
        }
        Ok(work)
    }

    /// Whether an attempt that has ended left nothing in its directory.
    pub(crate) fn is_as_good_as_new(&self, ended: &Handle) -> bool {
        let is_clean = |name: String| Ok(clean(open_dir(CWD, &self.root)?.as_fd(), Path::new(&name))?);
        checked_name(ended).and_then(is_clean).unwrap_or(false)
    }

    /// The same as [`AttemptDirs::create`], with a directory that is not needed any more and is as good as new. None if it is gone.
    pub(crate) fn reuse(&self, ended: &Handle, handle: &Handle) -> Result<Option<PathBuf>, DirError> {
        let (from, to) = (self.root.join(checked_name(ended)?), self.root.join(checked_name(handle)?));
        match rustix::fs::renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Some(to.join(WORK))),
            Err(Errno::EXIST) => Err(DirError::Exists),
            // Somebody tidied up, or this file system cannot do it.
            Err(_) => Ok(None),
        }
    }

    /// The same, with a directory that was made ready: see [`AttemptDirs::staging`].
    pub(crate) fn create_staged(&self, handle: &Handle) -> Result<PathBuf, DirError> {
        let path = self.root.join(checked_name(handle)?);
        rustix::fs::mkdir(&path, Mode::RWXU)?;
        let work = path.join(WORK);
        if let Err(errno) = rustix::fs::rename(self.staging(handle), &work) {
            rustix::fs::rmdir(&path).ok();
            return Err(errno.into());
        }
        Ok(work)
    }

    /// Opens the directory of logs; `make` makes it.
    pub(crate) fn open_logs(&self, handle: &Handle, make: bool) -> Result<OwnedFd, DirError> {
        let root = open_dir(CWD, &self.root)?;
        let attempt = open_dir(&root, Path::new(&checked_name(handle)?))?;
        if make {
            match rustix::fs::mkdirat(&attempt, LOGS, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(open_dir(&attempt, Path::new(LOGS))?)
    }

    /// Whether an attempt has a directory.
    pub(crate) fn exists(&self, handle: &Handle) -> bool {
        self.path(handle).symlink_metadata().is_ok()
    }
}

pub(crate) fn checked_name(handle: &Handle) -> Result<String, DirError> {
    let name = handle.to_string();
    if is_file_name(&name) { Ok(name) } else { Err(DirError::BadName(name)) }
}

/// The handle a directory is named after.
fn parse_handle(name: &str) -> Option<Handle> {
    let (task, attempt) = name.rsplit_once('-')?;
    let handle = Handle { task: task.into(), attempt: attempt.parse().ok()? };
    (is_file_name(name) && handle.to_string() == name).then_some(handle)
}

pub(crate) fn open_dir(at: impl AsFd, name: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        at,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn handle(task: &str) -> Handle {
        Handle { task: task.into(), attempt: 2 }
    }

    fn dirs() -> (tempfile::TempDir, AttemptDirs) {
        let temp = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::new(temp.path().join("deep/root"));
        (temp, dirs)
    }

    #[test]
    fn a_directory_is_made_once() {
        let (_temp, dirs) = dirs();
        let work = dirs.create(&handle("a"), &Mutex::default()).unwrap();
        assert_eq!(work, dirs.root().join("a-2/work"));
        assert!(work.is_dir());
        assert_eq!(fs::metadata(dirs.path(&handle("a"))).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(matches!(dirs.create(&handle("a"), &Mutex::default()), Err(DirError::Exists)));
    }

    #[test]
    fn a_directory_that_is_as_good_as_new_is_that_of_the_next() {
        let (_temp, dirs) = dirs();
        let spares = Mutex::default();
        dirs.create(&handle("a"), &spares).unwrap();
        let work = dirs.reuse(&handle("a"), &handle("b")).unwrap();
        assert_eq!(work, Some(dirs.root().join("b-2/work")));
        assert_eq!(dirs.stored().unwrap(), [handle("b")]);
        dirs.create(&handle("c"), &spares).unwrap();
        assert!(matches!(dirs.reuse(&handle("b"), &handle("c")), Err(DirError::Exists)));
        assert!(dirs.is_as_good_as_new(&handle("b")));
        fs::write(dirs.root().join("b-2/work/file"), "x").unwrap();
        assert!(!dirs.is_as_good_as_new(&handle("b")) && !dirs.is_as_good_as_new(&handle("gone")));
        assert_eq!(dirs.reuse(&handle("gone"), &handle("d")).unwrap(), None);
        assert!(dirs.exists(&handle("b")) && dirs.exists(&handle("c")) && !dirs.exists(&handle("d")));
    }

    #[test]
    fn a_directory_that_was_made_ready_becomes_the_one_of_the_attempt() {
        let (_temp, dirs) = dirs();
        assert!(matches!(dirs.create_staged(&handle("a")), Err(DirError::NotFound)));
        let staging = dirs.staging(&handle("a"));
        fs::create_dir_all(&staging).unwrap();
        assert!(!dirs.exists(&handle("a")), "a start that failed leaves no mark");
        fs::write(staging.join("file"), "x").unwrap();
        let work = dirs.create_staged(&handle("a")).unwrap();
        assert_eq!(fs::read_to_string(work.join("file")).unwrap(), "x");
        assert_eq!(dirs.stored().unwrap(), [handle("a")]);
        assert!(matches!(dirs.create_staged(&handle("a")), Err(DirError::Exists)));
    }

    #[test]
    fn stored_attempts_are_listed_by_their_directories() {
        let (_temp, dirs) = dirs();
        assert_eq!(dirs.stored().unwrap(), []);
        dirs.create(&handle("a-b"), &Mutex::default()).unwrap();
        for other in ["lost+found", "x", "y-", "z-01", ".hidden-1"] {
            fs::create_dir(dirs.root().join(other)).unwrap();
        }
        assert_eq!(dirs.stored().unwrap(), [handle("a-b")]);
    }

    #[test]
    fn removing_takes_everything_and_nothing_behind_links() {
        let (temp, dirs) = dirs();
        let kept = temp.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "precious").unwrap();
        let work = dirs.create(&handle("a"), &Mutex::default()).unwrap();
        fs::create_dir_all(work.join("closed/inner")).unwrap();
        fs::write(work.join("closed/inner/file"), "x").unwrap();
        symlink(&kept, work.join("closed/link")).unwrap();
        symlink("/nonexistent", work.join("dangling")).unwrap();
        fs::write(work.join("odd\nname"), "x").unwrap();
        fs::set_permissions(work.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
        dirs.remove(&handle("a")).unwrap();
        assert!(!dirs.exists(&handle("a")));
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "precious");
        dirs.remove(&handle("a")).unwrap();
    }

    #[test]
    fn a_link_in_place_of_an_attempt_is_neither_followed_nor_emptied() {
        let (temp, dirs) = dirs();
        let kept = temp.path().join("kept");
        fs::create_dir_all(kept.join("logs")).unwrap();
        fs::create_dir_all(kept.join("work")).unwrap();
        fs::create_dir_all(dirs.root()).unwrap();
        symlink(&kept, dirs.path(&handle("a"))).unwrap();
        assert!(dirs.open_logs(&handle("a"), false).is_err());
        dirs.remove(&handle("a")).unwrap();
        assert!(kept.join("logs").is_dir() && kept.join("work").is_dir());
        assert!(!dirs.exists(&handle("a")));
    }

    #[test]
    fn names_that_leave_the_root_are_refused() {
        let (temp, dirs) = dirs();
        fs::create_dir_all(temp.path().join("x-2/work")).unwrap();
        for task in ["../../x", "/x", ".."] {
            assert!(matches!(dirs.remove(&handle(task)), Err(DirError::BadName(_))), "{task}");
            assert!(
                matches!(dirs.create(&handle(task), &Mutex::default()), Err(DirError::BadName(_))),
                "{task}"
            );
        }
        assert!(temp.path().join("x-2/work").is_dir());
    }
}
