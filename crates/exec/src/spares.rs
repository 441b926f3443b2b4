//! Directories of removed attempts, kept for the next ones.
//!
//! Most attempts are short and leave nothing in their work directory. Making and removing directories for thousands of them
//! a second is what costs most, on ext4 above all: it does not use an inode again for some seconds and searches past all
//! such inodes each time. A directory that nobody ever touched is as good as new, so it is moved aside and then to where it
//! is needed.
//!
//! Whoever removes attempts fills the room and the executor empties it, each in a process of its own; moving is atomic, so
//! they need not know of each other.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, RenameFlags, StatxFlags};
use rustix::io::Errno;

use crate::attempt_dir::{LOGS, WORK};
use crate::remove_tree::remove_entries;

/// Below the work root. No attempt can have this name.
const ROOM: &str = ".spare";
/// More are removed.
const MAX_SPARES: usize = 4096;
/// The room is counted after this many moves into it.
const COUNT_EVERY: usize = 256;
/// Before the next look into a room that was empty.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Bytes of entries that are read at once; more than the longest one takes.
const READ_AT_ONCE: usize = 2048;
const PRIVATE_DIRECTORY: u32 = 0o40_700;

/// Where an executor finds directories that can be used again.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    names: Vec<PathBuf>,
    /// When it was looked for more in vain.
    found_none: Option<Instant>,
}

impl Spares {
    fn next(&mut self, root: &Path) -> Option<PathBuf> {
        if self.names.is_empty() && self.found_none.is_none_or(|at| at.elapsed() >= LOOK_AGAIN) {
            self.names = list(&root.join(ROOM)).unwrap_or_default();
            self.found_none = self.names.is_empty().then(Instant::now);
        }
        self.names.pop()
    }
}

/// Moves one to `to`. False if there is none; `EXIST` if something is there.
pub(crate) fn take_spare(spares: &Mutex<Spares>, root: &Path, to: &Path) -> Result<bool, Errno> {
    let lock = || spares.lock().unwrap_or_else(PoisonError::into_inner);
    // Not locked while it is moved: others move others.
    while let Some(name) = { lock().next(root) } {
        match rustix::fs::renameat_with(CWD, &name, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => {
                lock().names.push(name);
                return Err(Errno::EXIST);
            }
            // Somebody tidied up, or this file system cannot do it.
            Err(_) => {}
        }
    }
    Ok(false)
}

/// How full the room is, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    moves: AtomicUsize,
    found: AtomicUsize,
}

impl Filling {
    /// Moves the directory of an attempt to the spares if it is as good as new, but for its logs, which are removed.
    pub(crate) fn keep(&self, root: BorrowedFd<'_>, name: &Path) -> bool {
        let moves = self.moves.fetch_add(1, Ordering::Relaxed);
        if moves.is_multiple_of(COUNT_EVERY) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let spares = rustix::fs::openat(root, ROOM, flags, Mode::empty());
            let mut count = 0;
            // Without a room, nothing is in it.
            spares.and_then(|spares| each_entry(&spares, |_| count += 1)).ok();
            self.found.store(count, Ordering::Relaxed);
        }
        if self.found.load(Ordering::Relaxed) + moves % COUNT_EVERY >= MAX_SPARES {
            return false;
        }
        matches!(clean(root, name), Ok(true)) && move_aside(root, name).is_ok()
    }
}

/// Whether a directory is as good as new; its logs are removed in passing.
pub(crate) fn clean(root: BorrowedFd<'_>, name: &Path) -> Result<bool, Errno> {
    // Looking is not to be written down: each time would be one more change for the file system to keep.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
    let attempt = rustix::fs::openat(root, name, flags, Mode::empty())?;
    let (mut has_logs, mut only_ours) = (false, true);
    each_entry(&attempt, |part| {
        has_logs |= part == LOGS;
        only_ours &= part == WORK || part == LOGS;
    })?;
    if !only_ours || !is_private(&attempt)? || !is_untouched(attempt.as_fd(), Path::new(WORK))? {
        return Ok(false);
    }
    let work = rustix::fs::openat(&attempt, WORK, flags, Mode::empty())?;
    let mut is_empty = true;
    each_entry(&work, |_| is_empty = false)?;
    if !is_empty {
        return Ok(false);
    }
    if has_logs {
        let logs = rustix::fs::openat(&attempt, LOGS, flags, Mode::empty())?;
        if !is_private(&logs)? {
            return Ok(false);
        }
        remove_entries(&logs)?;
    }
    Ok(true)
}

fn move_aside(root: BorrowedFd<'_>, name: &Path) -> Result<(), Errno> {
    let to = Path::new(ROOM).join(name);
    let moved = || rustix::fs::renameat_with(root, name, root, &to, RenameFlags::NOREPLACE);
    match moved() {
        Err(Errno::NOENT) => {
            rustix::fs::mkdirat(root, ROOM, Mode::RWXU)?;
            moved()
        }
        moved => moved,
    }
}

/// Neither its content nor its attributes were changed since it was made. File systems that do not know when that was have
/// no spares.
fn is_untouched(parent: BorrowedFd<'_>, name: &Path) -> Result<bool, Errno> {
    let wanted = StatxFlags::BTIME | StatxFlags::CTIME | StatxFlags::MODE | StatxFlags::TYPE;
    let stat = rustix::fs::statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(wanted);
    let (born, changed) = (stat.stx_btime, stat.stx_ctime);
    let unchanged = (born.tv_sec, born.tv_nsec) == (changed.tv_sec, changed.tv_nsec);
    Ok(known && unchanged && u32::from(stat.stx_mode) == PRIVATE_DIRECTORY)
}

fn is_private(directory: &OwnedFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstat(directory)?.st_mode == PRIVATE_DIRECTORY)
}

fn list(room: &Path) -> Result<Vec<PathBuf>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(room, flags, Mode::empty())?;
    let mut names = Vec::new();
    each_entry(&directory, |name| names.push(room.join(name)))?;
    Ok(names)
}

/// Tells the names in a directory that was just opened.
fn each_entry(directory: &OwnedFd, mut tell: impl FnMut(&OsStr)) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::uninit(); READ_AT_ONCE];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            tell(OsStr::from_bytes(name.to_bytes()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use muster_types::attempt::Handle;

    use super::*;
    use crate::attempt_dir::{AttemptDirs, DirError};
    use crate::log_writer::LogWriter;

    fn handle(task: &str) -> Handle {
        Handle { task: task.into(), attempt: 1 }
    }

    fn spares_in(root: &Path) -> usize {
        fs::read_dir(root.join(ROOM)).map_or(0, Iterator::count)
    }

    #[test]
    fn an_untouched_directory_is_used_again_without_its_logs() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, spares) = (AttemptDirs::new(temp.path()), Mutex::default());
        dirs.create(&handle("a"), &spares).unwrap();
        LogWriter::new(dirs.clone(), handle("a"), "main".into(), 100)
            .write(b"of a", muster_types::Millis(0))
            .unwrap();
        dirs.remove(&handle("a")).unwrap();
        assert_eq!((spares_in(temp.path()), dirs.stored().unwrap()), (1, vec![]));
        let spares = Mutex::default();
        let work = dirs.create(&handle("b"), &spares).unwrap();
        assert_eq!(work, temp.path().join("b-1/work"));
        assert_eq!((spares_in(temp.path()), fs::read_dir(&work).unwrap().count()), (0, 0));
        assert_eq!(dirs.read_log(&handle("b"), "main", 0, 100).unwrap().bytes, b"");
        dirs.create(&handle("c"), &spares).unwrap();
    }

    #[test]
    fn a_touched_directory_is_not_used_again() {
        let temp = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::new(temp.path());
        let touches: [&dyn Fn(&Path); 4] = [
            &|attempt| fs::write(attempt.join("work/file"), "").unwrap(),
            &|attempt| fs::write(attempt.join("file"), "").unwrap(),
            &|attempt| fs::set_permissions(attempt.join("work"), fs::Permissions::from_mode(0o777)).unwrap(),
            &|attempt| fs::set_permissions(attempt, fs::Permissions::from_mode(0o777)).unwrap(),
        ];
        for (index, touch) in touches.iter().enumerate() {
            let handle = handle(&format!("t{index}"));
            dirs.create(&handle, &Mutex::default()).unwrap();
            touch(&dirs.path(&handle));
            dirs.remove(&handle).unwrap();
            assert_eq!((spares_in(temp.path()), dirs.exists(&handle)), (0, false), "touch {index}");
        }
    }

    #[test]
    fn a_spare_never_takes_the_place_of_an_attempt() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, spares) = (AttemptDirs::new(temp.path()), Mutex::default());
        dirs.create(&handle("a"), &spares).unwrap();
        dirs.remove(&handle("a")).unwrap();
        fs::create_dir(temp.path().join("b-1")).unwrap();
        let spares = Mutex::default();
        assert!(matches!(dirs.create(&handle("b"), &spares), Err(DirError::Exists)));
        assert_eq!(spares_in(temp.path()), 1);
    }
}
