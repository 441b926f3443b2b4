//! How attempts ended, written down beside their logs: for whoever asks after those that saw it are gone.
//!
//! Written in one step, so that a reader finds all of it or nothing. Programs of the same user could write it as well, as they could
//! their logs; what is found is read without following links, and no more of it than it can be.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use muster_types::attempt::{Ending, Handle};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use crate::attempt_dir::{AttemptDirs, DirError};

/// Below the attempt's directory.
const ENDED: &str = "ended";
const DRAFT: &str = "ended.new";
/// No ending is larger: a line or two for each container.
const MAX_BYTES: u64 = 1 << 20;

impl AttemptDirs {
    /// Writes down how an attempt ended; `sync` forces it to the disk.
    pub(crate) fn keep_ending(&self, handle: &Handle, ending: &Ending, sync: bool) -> io::Result<()> {
        let dir = self.open_attempt(handle).map_err(io::Error::other)?;
        let text = serde_json::to_vec(ending)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut draft = File::from(rustix::fs::openat(&dir, DRAFT, flags, Mode::RUSR | Mode::WUSR)?);
        draft.write_all(&text)?;
        if sync {
            draft.sync_data()?;
        }
        Ok(rustix::fs::renameat(&dir, DRAFT, &dir, ENDED)?)
    }

    /// How an attempt ended, if that was written down.
    pub fn kept_ending(&self, handle: &Handle) -> Option<Ending> {
        let dir = self.open_attempt(handle).ok()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&dir, ENDED, flags, Mode::empty()).ok()?);
        let mut text = Vec::new();
        file.metadata().ok().filter(|found| found.is_file() && found.len() <= MAX_BYTES)?;
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn open_attempt(&self, handle: &Handle) -> Result<OwnedFd, DirError> {
        let root = crate::attempt_dir::open_dir(rustix::fs::CWD, self.root())?;
        let name = crate::attempt_dir::checked_name(handle)?;
        Ok(crate::attempt_dir::open_dir(&root, Path::new(&name))?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use muster_types::Millis;
    use muster_types::attempt::Cause;

    use super::*;

    fn handle() -> Handle {
        Handle { task: "t".into(), attempt: 1 }
    }

    #[test]
    fn an_ending_is_read_as_it_was_written_and_goes_with_its_directory() {
        let temp = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::new(temp.path());
        dirs.create(&handle(), &std::sync::Mutex::default()).unwrap();
        assert_eq!(dirs.kept_ending(&handle()), None);
        let ending = Ending::of_leader(7, Cause::Timeout, Millis(5));
        dirs.keep_ending(&handle(), &ending, true).unwrap();
        assert_eq!(dirs.kept_ending(&handle()), Some(ending));
        dirs.remove(&handle()).unwrap();
        dirs.create(&handle(), &std::sync::Mutex::default()).unwrap();
        assert_eq!(dirs.kept_ending(&handle()), None);
    }

    #[test]
    fn what_was_put_in_its_place_is_no_ending() {
        let temp = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::new(temp.path());
        dirs.create(&handle(), &std::sync::Mutex::default()).unwrap();
        let place = temp.path().join("t-1/ended");
        fs::write(&place, "{\"cut").unwrap();
        assert_eq!(dirs.kept_ending(&handle()), None);
        let elsewhere = temp.path().join("elsewhere");
        let ending = Ending::of_leader(0, Cause::Itself, Millis(5));
        fs::write(&elsewhere, serde_json::to_vec(&ending).unwrap()).unwrap();
        fs::remove_file(&place).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
        assert_eq!(dirs.kept_ending(&handle()), None);
        fs::remove_file(&place).unwrap();
        fs::create_dir(&place).unwrap();
        assert_eq!(dirs.kept_ending(&handle()), None);
    }
}
