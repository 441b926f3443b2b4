//! Keeps what a container writes: live, in order, and never more than its cap.
//!
//! `<container>.log` holds the newest output. When it reaches half the cap it becomes `<container>.log.1`, replacing the one
//! before, and a new file begins; so at least the newest half of the cap is kept, and at most the cap. Places in a log are
//! counted from the first byte the container ever wrote, and `<container>.log.base` tells readers where the files begin:
//! it names the newest file and the one before by inode, so that a reader in the middle of a rotation is never wrong.
//!
//! When it was written is kept beside it, see `log_times.rs`, and counts towards the cap.
//!
//! Nothing is buffered here: what was read from the container is in the file when `write` returns.

use std::io;

use muster_types::Millis;
use muster_types::attempt::Handle;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use crate::attempt_dir::{AttemptDirs, DirError};
use crate::log_times::{TimedPlace, TimesWriter};

/// Why output could not be kept.
#[derive(Debug, Error)]
#[error("cannot write the log of container `{container}`: {source}")]
pub(crate) struct LogError {
    container: String,
    source: io::Error,
}

/// Where output goes.
#[derive(Debug)]
enum Target {
    /// Nothing was written yet, so nothing is there.
    Untouched,
    /// The files, and how much is in the newest.
    Open { logs: OwnedFd, file: OwnedFd, filled: u64 },
    /// A write failed; what comes now is dropped.
    Failed,
}

/// The log of one container.
#[derive(Debug)]
pub(crate) struct LogWriter {
    dirs: AttemptDirs,
    handle: Handle,
    container: String,
    file_cap: u64,
    total: u64,
    target: Target,
    times: TimesWriter,
}

impl LogWriter {
    /// A log of which at most `max_bytes` are kept.
    pub(crate) fn new(dirs: AttemptDirs, handle: Handle, container: String, max_bytes: u64) -> Self {
        let file_cap = (max_bytes / 2).max(1);
        let (target, times) = (Target::Untouched, TimesWriter::default());
        Self { dirs, handle, container, file_cap, total: 0, target, times }
    }

    /// How much was written since the beginning.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Keeps some output that came just now. Fails once; after that output is dropped without words.
    pub(crate) fn write(&mut self, bytes: &[u8], now: Millis) -> Result<(), LogError> {
        let written = self.try_write(bytes, now.0.div_euclid(1000));
        self.checked(written)
    }

    /// Everything was written; `sync` forces it to the disk.
    pub(crate) fn finish(&mut self, sync: bool) -> Result<(), LogError> {
        let finished = match &self.target {
            Target::Open { file, .. } if sync => rustix::fs::fdatasync(file).map_err(io::Error::from),
            Target::Open { .. } | Target::Untouched | Target::Failed => Ok(()),
        };
        self.checked(finished)
    }

    fn checked(&mut self, done: io::Result<()>) -> Result<(), LogError> {
        done.map_err(|source| {
            self.target = Target::Failed;
            LogError { container: self.container.clone(), source }
        })
    }

    fn try_write(&mut self, mut bytes: &[u8], second: i64) -> io::Result<()> {
        while !bytes.is_empty() {
            match &mut self.target {
                Target::Failed => return Ok(()),
                Target::Untouched => self.open()?,
                // A file that holds nothing but times would hold nothing after the next rotation either.
                Target::Open { filled, .. }
                    if *filled > 0 && *filled + self.times.written() >= self.file_cap =>
                {
                    self.rotate()?;
                }
                Target::Open { logs, file, filled } => {
                    let place = TimedPlace { second, offset: self.total };
                    self.times.observe(place, logs, &log_name(&self.container))?;
                    let room =
                        usize::try_from(self.file_cap.saturating_sub(*filled)).unwrap_or(usize::MAX).max(1);
                    let written = write_some(file, &bytes[..bytes.len().min(room)])?;
                    *filled += written as u64;
                    self.total += written as u64;
                    bytes = &bytes[written..];
                }
            }
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        let logs = self.dirs.open_logs(&self.handle, true).map_err(|error| match error {
            DirError::Io(error) => error,
            other => io::Error::other(other),
        })?;
        let file = create(&logs, &log_name(&self.container))?;
        self.target = Target::Open { logs, file, filled: 0 };
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let Target::Open { logs, file, filled } = &mut self.target else { return Ok(()) };
        let name = log_name(&self.container);
        let (new_name, base_name) = (format!("{name}.new"), format!("{name}.base"));
        let new = create(logs, &new_name)?;
        let (new_inode, old_inode) = (rustix::fs::fstat(&new)?.st_ino, rustix::fs::fstat(&*file)?.st_ino);
        let base = Base { inode: new_inode, at: self.total, old_inode, old_at: self.total - *filled };
        base.store(logs, &base_name)?;
        let (times, old_times) = (format!("{name}.times"), format!("{name}.1.times"));
        rustix::fs::renameat(&*logs, &name, &*logs, format!("{name}.1"))?;
        if self.times.rotate() {
            rustix::fs::renameat(&*logs, &times, &*logs, &old_times)?;
        } else {
            rustix::fs::unlinkat(&*logs, &old_times, AtFlags::empty()).ok();
        }
        rustix::fs::renameat(&*logs, &new_name, &*logs, &name)?;
        (*file, *filled) = (new, 0);
        Ok(())
    }
}

/// Where the newest two files of a log begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) inode: u64,
    pub(crate) at: u64,
    pub(crate) old_inode: u64,
    pub(crate) old_at: u64,
}

impl Base {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        let mut number = || numbers.next()?.ok();
        Some(Self { inode: number()?, at: number()?, old_inode: number()?, old_at: number()? })
    }

    fn store(self, logs: &OwnedFd, name: &str) -> io::Result<()> {
        let Self { inode, at, old_inode, old_at } = self;
        let temporary = format!("{name}.new");
        let file = create(logs, &temporary)?;
        write_all(&file, format!("{inode} {at} {old_inode} {old_at}\n").as_bytes())?;
        Ok(rustix::fs::renameat(logs, &temporary, logs, name)?)
    }
}

/// Makes a file that was not there, so that nothing put in its place is written to.
fn create(logs: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(logs, name, flags, Mode::RUSR | Mode::WUSR)?)
}

/// The newest file of a container's log.
pub(crate) fn log_name(container: &str) -> String {
    format!("{container}.log")
}

pub(crate) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[write_some(file, bytes)?..];
    }
    Ok(())
}

fn write_some(file: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::io::write(file, bytes) {
            Err(Errno::INTR) => {}
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            written => return Ok(written?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    const NOON: Millis = Millis(1_763_200_000_500);

    fn writer(root: &std::path::Path, max_bytes: u64) -> LogWriter {
        let (dirs, handle) = (AttemptDirs::new(root), Handle { task: "t".into(), attempt: 1 });
        dirs.create(&handle, &std::sync::Mutex::default()).unwrap();
        LogWriter::new(dirs, handle, "main".into(), max_bytes)
    }

    #[test]
    fn a_silent_container_has_no_log_file() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 100);
        log.finish(true).unwrap();
        assert!(!temp.path().join("t-1/logs").exists());
    }

    #[test]
    fn output_is_in_the_file_when_write_returns() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 100);
        log.write(b"one ", NOON).unwrap();
        log.write(b"two", NOON).unwrap();
        assert_eq!(fs::read_to_string(temp.path().join("t-1/logs/main.log")).unwrap(), "one two");
        assert_eq!(log.total(), 7);
    }

    #[test]
    fn the_newest_output_is_kept_in_two_files_of_half_the_cap() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 8);
        log.write(b"aaaabbbbccccdd", NOON).unwrap();
        log.finish(true).unwrap();
        let logs = temp.path().join("t-1/logs");
        assert_eq!(fs::read_to_string(logs.join("main.log")).unwrap(), "dd");
        assert_eq!(fs::read_to_string(logs.join("main.log.1")).unwrap(), "cccc");
        let base = Base::parse(&fs::read_to_string(logs.join("main.log.base")).unwrap()).unwrap();
        assert_eq!((base.at, base.old_at, log.total()), (12, 8, 14));
        assert_eq!(fs::read_dir(&logs).unwrap().count(), 3, "nothing else stays");
    }

    #[test]
    fn a_full_disk_fails_once_with_words_and_then_drops() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 100);
        let full = || File::options().write(true).open("/dev/full").unwrap().into();
        log.target = Target::Open { logs: full(), file: full(), filled: 0 };
        let error = log.write(b"lost", NOON).unwrap_err().to_string();
        assert_eq!(error, "cannot write the log of container `main`: No space left on device (os error 28)");
        log.write(b"dropped", NOON).unwrap();
        log.finish(true).unwrap();
        assert_eq!(log.total(), 0);
    }

    #[test]
    fn nothing_put_in_place_of_the_log_is_written_to() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 100);
        let logs = temp.path().join("t-1/logs");
        fs::create_dir(&logs).unwrap();
        fs::write(temp.path().join("precious"), "x").unwrap();
        std::os::unix::fs::symlink(temp.path().join("precious"), logs.join("main.log")).unwrap();
        assert!(log.write(b"y", NOON).is_err());
        assert_eq!(fs::read_to_string(temp.path().join("precious")).unwrap(), "x");
    }

    #[test]
    fn the_times_of_output_are_kept_once_a_second() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 1000);
        for (after, text) in [(0, "a"), (400, "b"), (600, "c"), (700, "d"), (-5000, "e"), (9000, "f")] {
            log.write(text.as_bytes(), Millis(NOON.0 + after)).unwrap();
        }
        let bytes = fs::read(temp.path().join("t-1/logs/main.log.times")).unwrap();
        let places = TimedPlace::parse(&bytes).into_iter().map(|place| (place.second, place.offset));
        let second = 1_763_200_000;
        assert_eq!(places.collect::<Vec<_>>(), [(second, 0), (second + 1, 2), (second + 9, 5)]);
    }

    #[test]
    fn output_of_one_second_needs_no_times() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 1000);
        log.write(b"one", NOON).unwrap();
        log.write(b"two", NOON).unwrap();
        assert_eq!(fs::read_dir(temp.path().join("t-1/logs")).unwrap().count(), 1);
    }

    #[test]
    fn times_count_towards_the_cap_and_go_with_their_output() {
        let temp = tempfile::tempdir().unwrap();
        let mut log = writer(temp.path(), 400);
        for second in 0..1000 {
            log.write(b".", Millis(NOON.0 + second * 1000)).unwrap();
            let logs = fs::read_dir(temp.path().join("t-1/logs")).unwrap();
            let entries = logs.map(|entry| entry.unwrap());
            let sizes = entries.filter(|entry| entry.file_name() != "main.log.base");
            let kept: u64 = sizes.map(|entry| entry.metadata().unwrap().len()).sum();
            assert!(kept <= 400 + 2 * 32, "{kept} bytes are kept after {second} seconds");
        }
        assert_eq!(log.total(), 1000);
    }
}
