//! Reads logs by place, while they grow and after, across rotation and without following links.

use std::io;

use muster_types::attempt::Handle;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use thiserror::Error;

use crate::attempt_dir::{AttemptDirs, DirError};
use crate::log_files::{Files, read_times};
use crate::log_times::TimedPlace;
use crate::log_writer::log_name;
use crate::start_failure::is_file_name;

/// A rotation takes microseconds; a reader that meets this many looks at something else.
const TRIES: usize = 50;

/// Part of a log. Places are counted from the first byte the container ever wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPart {
    /// Where `bytes` begin: later than asked for if that part is no longer kept.
    pub offset: u64,
    /// What was written there.
    pub bytes: Vec<u8>,
    /// Where the log ended when it was read.
    pub end: u64,
}

/// Why a log could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The attempt has no directory: it never started, or was removed.
    #[error("the attempt has no directory")]
    NoAttempt,
    /// The container's name cannot name a log.
    #[error("`{0}` cannot name a container")]
    BadName(String),
    /// Something that is not a log stands in its place.
    #[error("the log is not a regular file")]
    NotAFile,
    /// The file system refused.
    #[error("cannot read the log: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for ReadError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::LOOP | Errno::NOTDIR => Self::NotAFile,
            errno => Self::Io(errno.into()),
        }
    }
}

impl ReadError {
    pub(crate) fn of_directory(error: DirError) -> Self {
        match error {
            DirError::NotFound | DirError::Exists => Self::NoAttempt,
            DirError::BadName(name) => Self::BadName(name),
            DirError::Io(error) => Errno::from_io_error(&error).map_or(Self::Io(error), Self::from),
        }
    }
}

impl AttemptDirs {
    /// Reads at most `max` bytes of a container's log from `offset` on. A container that wrote nothing has an empty log.
    pub fn read_log(
        &self,
        handle: &Handle,
        container: &str,
        offset: u64,
        max: usize,
    ) -> Result<LogPart, ReadError> {
        match self.open_files(handle, container)? {
            None => Ok(LogPart::default()),
            Some((_, files)) => files.read(offset, max),
        }
    }

    /// When which part of a container's log was written, oldest first. The first place is the first that is kept, unless
    /// nothing is.
    pub fn read_times(&self, handle: &Handle, container: &str) -> Result<Vec<TimedPlace>, ReadError> {
        let Some((logs, files)) = self.open_files(handle, container)? else { return Ok(Vec::new()) };
        let name = log_name(container);
        // The newest first: should they be rotated now, they are met again.
        let mut places = files.newest_times(read_times(&logs, &format!("{name}.times"))?)?;
        places.extend(files.times_before(read_times(&logs, &format!("{name}.1.times"))?)?);
        places.sort_by_key(|place| (place.offset, place.second));
        let first = files.first();
        // What is no longer kept, but for the second in which the first kept byte was written.
        let kept = places.iter().rposition(|place| place.offset <= first).unwrap_or(0);
        places.drain(..kept);
        if let Some(place) = places.first_mut() {
            place.offset = place.offset.max(first);
        }
        places.dedup_by_key(|place| place.second);
        Ok(places)
    }

    /// Opens the files of a log, with the directory they are in; none if nothing was written.
    pub(crate) fn open_files(
        &self,
        handle: &Handle,
        container: &str,
    ) -> Result<Option<(OwnedFd, Files)>, ReadError> {
        if !is_file_name(container) {
            return Err(ReadError::BadName(container.into()));
        }
        let logs = match self.open_logs(handle, false) {
            Ok(logs) => logs,
            Err(DirError::NotFound) if self.exists(handle) => return Ok(None),
            Err(error) => return Err(ReadError::of_directory(error)),
        };
        let name = log_name(container);
        for _ in 0..TRIES {
            if let Some(files) = Files::open(&logs, &name)? {
                return Ok(Some((logs, files)));
            }
            std::thread::yield_now();
        }
        Err(ReadError::NotAFile)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use muster_types::Millis;
    use rustix::fs::{FileType, Mode};

    use super::*;
    use crate::log_writer::LogWriter;

    const NOON: Millis = Millis(1_763_200_000_500);

    fn handle() -> Handle {
        Handle { task: "t".into(), attempt: 1 }
    }

    fn writer(root: &Path, max_bytes: u64) -> (AttemptDirs, LogWriter) {
        let dirs = AttemptDirs::new(root);
        dirs.create(&handle(), &std::sync::Mutex::default()).unwrap();
        (dirs.clone(), LogWriter::new(dirs, handle(), "main".into(), max_bytes))
    }

    fn read(dirs: &AttemptDirs, offset: u64, max: usize) -> (u64, String, u64) {
        let part = dirs.read_log(&handle(), "main", offset, max).unwrap();
        (part.offset, String::from_utf8(part.bytes).unwrap(), part.end)
    }

    #[test]
    fn a_log_is_read_by_place() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, mut log) = writer(temp.path(), 1000);
        assert_eq!(read(&dirs, 0, 10), (0, String::new(), 0), "nothing written is an empty log");
        log.write(b"hello world", NOON).unwrap();
        assert_eq!(read(&dirs, 0, 5), (0, "hello".into(), 11));
        assert_eq!(read(&dirs, 6, 100), (6, "world".into(), 11));
        assert_eq!(read(&dirs, 99, 100), (11, String::new(), 11), "past the end is the end");
    }

    #[test]
    fn places_stay_the_same_when_the_log_is_rotated() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, mut log) = writer(temp.path(), 8);
        log.write(b"0123456789abcd", NOON).unwrap();
        assert_eq!(read(&dirs, 0, 100), (8, "89abcd".into(), 14), "the oldest part is gone");
        assert_eq!(read(&dirs, 9, 2), (9, "9a".into(), 14));
        assert_eq!(read(&dirs, 10, 4), (10, "abcd".into(), 14));
        assert_eq!(read(&dirs, 13, 4), (13, "d".into(), 14));
    }

    #[test]
    fn a_reader_beside_a_writer_never_sees_a_byte_in_the_wrong_place() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, mut log) = writer(temp.path(), 64);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for index in 0..20_000_u32 {
                    log.write(&[(index % 251) as u8], NOON).unwrap();
                }
                done.store(true, Ordering::SeqCst);
            });
            let mut place = 0;
            while !done.load(Ordering::SeqCst) {
                let part = dirs.read_log(&handle(), "main", place, 7).unwrap();
                assert!(part.offset >= place);
                for (index, byte) in part.bytes.iter().enumerate() {
                    assert_eq!(u64::from(*byte), (part.offset + index as u64) % 251);
                }
                place = part.offset + part.bytes.len() as u64;
            }
        });
        assert_eq!(read_end(&dirs), 20_000);
    }

    fn read_end(dirs: &AttemptDirs) -> u64 {
        dirs.read_log(&handle(), "main", 0, 0).unwrap().end
    }

    #[test]
    fn links_and_pipes_in_place_of_a_log_are_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, _log) = writer(temp.path(), 100);
        fs::write(temp.path().join("secret"), "secret").unwrap();
        let logs = temp.path().join("t-1/logs");
        fs::create_dir(&logs).unwrap();
        symlink(temp.path().join("secret"), logs.join("main.log")).unwrap();
        assert!(matches!(dirs.read_log(&handle(), "main", 0, 10), Err(ReadError::NotAFile)));
        fs::remove_file(logs.join("main.log")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            logs.join("main.log"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(matches!(dirs.read_log(&handle(), "main", 0, 10), Err(ReadError::NotAFile)));
        fs::remove_dir_all(&logs).unwrap();
        symlink(temp.path(), &logs).unwrap();
        fs::write(temp.path().join("main.log"), "secret").unwrap();
        assert!(matches!(dirs.read_log(&handle(), "main", 0, 10), Err(ReadError::NotAFile)));
    }

    #[test]
    fn an_unknown_attempt_is_said_to_be_unknown() {
        let temp = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::new(temp.path());
        assert!(matches!(dirs.read_log(&handle(), "main", 0, 10), Err(ReadError::NoAttempt)));
        assert!(matches!(dirs.read_log(&handle(), "../x", 0, 10), Err(ReadError::BadName(_))));
    }

    fn times(dirs: &AttemptDirs) -> Vec<(i64, u64)> {
        let places = dirs.read_times(&handle(), "main").unwrap();
        places.iter().map(|place| (place.second, place.offset)).collect()
    }

    #[test]
    fn the_time_of_each_second_of_output_is_known_across_rotation() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, mut log) = writer(temp.path(), 400);
        assert_eq!(times(&dirs), []);
        for second in 0..100 {
            log.write(b"abc", Millis(NOON.0 + second * 1000)).unwrap();
        }
        // As the kernel would have, had it been then: the newest file may hold one second alone.
        let newest = fs::File::options().append(true).open(temp.path().join("t-1/logs/main.log")).unwrap();
        newest.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_763_200_099)).unwrap();
        let (times, part) = (times(&dirs), dirs.read_log(&handle(), "main", 0, usize::MAX).unwrap());
        assert_eq!((times[0].1, part.end), (part.offset, 300));
        let expected: Vec<_> = (part.offset..300)
            .step_by(3)
            .map(|offset| (1_763_200_000 + i64::try_from(offset / 3).unwrap(), offset))
            .collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn output_of_one_second_has_the_time_of_its_file() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, mut log) = writer(temp.path(), 100);
        log.write(b"abc", NOON).unwrap();
        let file = fs::File::open(temp.path().join("t-1/logs/main.log")).unwrap();
        let changed = rustix::fs::fstat(&file).unwrap().st_mtime;
        assert_eq!(times(&dirs), [(changed, 0)]);
    }

    #[test]
    fn times_that_make_no_sense_harm_nobody() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, mut log) = writer(temp.path(), 100);
        log.write(b"abc", NOON).unwrap();
        fs::write(temp.path().join("t-1/logs/main.log.times"), [0xff; 50]).unwrap();
        assert_eq!(times(&dirs), [(-1, u64::MAX)]);
    }
}
