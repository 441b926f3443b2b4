//! Logs that nobody writes to any more, to be moved to where logs are kept.
//!
//! A log goes from here in one step: a reader finds all of it or nothing, never a part.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use muster_types::attempt::Handle;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::attempt_dir::{AttemptDirs, DirError};
use crate::log_files::Files;
use crate::log_reader::ReadError;
use crate::log_writer::log_name;
use crate::start_failure::is_file_name;

/// The whole log of one container.
pub struct EndedLog {
    logs: OwnedFd,
    name: String,
    files: Files,
}

impl EndedLog {
    /// The first place that is kept.
    pub fn first(&self) -> u64 {
        self.files.first()
    }

    /// If the log is one file, a path to it that no link leads astray. It leads there as long as this is held.
    pub fn file(&self) -> Option<PathBuf> {
        let name = self.files.only_name(&self.name)?;
        Some(PathBuf::from(format!("/proc/self/fd/{}/{name}", self.logs.as_raw_fd())))
    }

    /// Removes the log, in whatever files it is.
    pub fn discard(self) -> Result<(), ReadError> {
        let name = &self.name;
        let before = format!("{name}.1");
        // From this moment on no reader takes them for a log.
        match rustix::fs::renameat(&self.logs, name, &self.logs, &before) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        for left in [&before, &format!("{name}.times"), &format!("{before}.times"), &format!("{name}.base")] {
            match rustix::fs::unlinkat(&self.logs, left, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

impl AttemptDirs {
    /// The containers of an attempt that have a log. None if the attempt has no directory.
    pub fn logged_containers(&self, handle: &Handle) -> Result<BTreeSet<String>, ReadError> {
        let logs = match self.open_logs(handle, false) {
            Ok(logs) => logs,
            Err(DirError::NotFound) => return Ok(BTreeSet::new()),
            Err(error) => return Err(ReadError::of_directory(error)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(&logs, ".", flags, Mode::empty())?;
        let mut containers = BTreeSet::new();
        for entry in Dir::read_from(listed)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_str();
            let container =
                name.and_then(|name| name.strip_suffix(".1").unwrap_or(name).strip_suffix(".log"));
            containers.extend(container.filter(|name| is_file_name(name)).map(String::from));
        }
        Ok(containers)
    }

    /// The log of a container that writes no more; none if it wrote nothing, or its log was discarded.
    pub fn ended_log(&self, handle: &Handle, container: &str) -> Result<Option<EndedLog>, ReadError> {
        let opened = self.open_files(handle, container)?.filter(|(_, files)| !files.is_empty());
        Ok(opened.map(|(logs, files)| EndedLog { logs, name: log_name(container), files }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use muster_types::Millis;

    use super::*;
    use crate::log_writer::LogWriter;

    fn handle() -> Handle {
        Handle { task: "t".into(), attempt: 1 }
    }

    fn written(root: &Path, max_bytes: u64, texts: &[&str]) -> AttemptDirs {
        let dirs = AttemptDirs::new(root);
        dirs.create(&handle(), &std::sync::Mutex::default()).unwrap();
        let mut log = LogWriter::new(dirs.clone(), handle(), "main".into(), max_bytes);
        for text in texts {
            log.write(text.as_bytes(), Millis(0)).unwrap();
        }
        dirs
    }

    fn read(dirs: &AttemptDirs) -> (u64, String, u64) {
        let part = dirs.read_log(&handle(), "main", 0, 100).unwrap();
        (part.offset, String::from_utf8(part.bytes).unwrap(), part.end)
    }

    fn take(dirs: &AttemptDirs) -> Option<String> {
        let log = dirs.ended_log(&handle(), "main").unwrap().unwrap();
        let file = log.file()?;
        let text = fs::read_to_string(&file).unwrap();
        fs::remove_file(file).unwrap();
        Some(text)
    }

    #[test]
    fn a_plain_log_is_one_file_and_nothing_is_left_when_it_was_taken() {
        let temp = tempfile::tempdir().unwrap();
        let dirs = written(temp.path(), 100, &["hello"]);
        assert_eq!(dirs.logged_containers(&handle()).unwrap(), BTreeSet::from(["main".to_string()]));
        assert_eq!(take(&dirs).as_deref(), Some("hello"));
        assert_eq!(read(&dirs), (0, String::new(), 0));
        assert!(dirs.ended_log(&handle(), "main").unwrap().is_none());
        assert_eq!(dirs.logged_containers(&handle()).unwrap(), BTreeSet::new());
    }

    #[test]
    fn a_rotated_log_is_discarded_in_one_step() {
        let temp = tempfile::tempdir().unwrap();
        let dirs = written(temp.path(), 8, &["0123456789abcd"]);
        let log = dirs.ended_log(&handle(), "main").unwrap().unwrap();
        assert_eq!((log.first(), log.file()), (8, None));
        // As if the machine had stopped after the first step.
        let logs = temp.path().join("t-1/logs");
        fs::rename(logs.join("main.log"), logs.join("main.log.1")).unwrap();
        assert_eq!(read(&dirs), (0, String::new(), 0));
        assert!(dirs.ended_log(&handle(), "main").unwrap().is_none());
        log.discard().unwrap();
        assert_eq!(read(&dirs), (0, String::new(), 0));
        assert_eq!(fs::read_dir(logs).unwrap().count(), 0);
    }

    #[test]
    fn a_log_whose_rotation_was_cut_short_is_one_file_wherever_it_was_cut() {
        let temp = tempfile::tempdir().unwrap();
        let logs = temp.path().join("t-1/logs");
        // The base says what comes, the files are as they were.
        let dirs = written(temp.path(), 8, &["0123", "4567", "89"]);
        fs::rename(logs.join("main.log"), logs.join("main.log.new")).unwrap();
        fs::rename(logs.join("main.log.1"), logs.join("main.log")).unwrap();
        fs::write(logs.join("main.log.1"), "0123").unwrap();
        assert_eq!(read(&dirs), (4, "4567".into(), 8));
        assert_eq!(take(&dirs).as_deref(), Some("4567"));
        assert_eq!(read(&dirs), (0, String::new(), 0));
        // The newest file has been renamed, the new one has not.
        fs::remove_dir_all(temp.path().join("t-1")).unwrap();
        let dirs = written(temp.path(), 8, &["0123", "4567", "89"]);
        fs::rename(logs.join("main.log"), logs.join("main.log.new")).unwrap();
        assert_eq!(read(&dirs), (4, "4567".into(), 8));
        assert_eq!(take(&dirs).as_deref(), Some("4567"));
        assert_eq!(read(&dirs), (0, String::new(), 0));
    }

    #[test]
    fn an_attempt_without_a_directory_has_no_logs() {
        let temp = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::new(temp.path());
        assert_eq!(dirs.logged_containers(&handle()).unwrap(), BTreeSet::new());
    }
}
