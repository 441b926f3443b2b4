//! Reads logs by place, while they grow and after, across rotation and without following links.

use std::io;

use muster_types::attempt::Handle;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use crate::attempt_dir::{AttemptDirs, DirError};
use crate::log_writer::Base;
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

impl AttemptDirs {
    /// Reads at most `max` bytes of a container's log from `offset` on. A container that wrote nothing has an empty log.
    pub fn read_log(
        &self,
        handle: &Handle,
        container: &str,
        offset: u64,
        max: usize,
    ) -> Result<LogPart, ReadError> {
        if !is_file_name(container) {
            return Err(ReadError::BadName(container.into()));
        }
        let logs = match self.open_logs(handle, false) {
            Ok(logs) => logs,
            Err(DirError::NotFound) if self.exists(handle) => return Ok(LogPart::default()),
            Err(DirError::NotFound | DirError::Exists) => return Err(ReadError::NoAttempt),
            Err(DirError::BadName(name)) => return Err(ReadError::BadName(name)),
            Err(DirError::Io(error)) => {
                return Err(Errno::from_io_error(&error).map_or(ReadError::Io(error), ReadError::from));
            }
        };
        let name = format!("{container}.log");
        for _ in 0..TRIES {
            if let Some(files) = Files::open(&logs, &name)? {
                return files.read(offset, max);
            }
            std::thread::yield_now();
        }
        Err(ReadError::NotAFile)
    }
}

/// The files of a log at one moment.
struct Files {
    newest: Option<OwnedFd>,
    newest_at: u64,
    newest_len: u64,
    before: Option<(OwnedFd, u64)>,
}

impl Files {
    /// Opens them; `None` if they changed meanwhile.
    fn open(logs: &OwnedFd, name: &str) -> Result<Option<Self>, ReadError> {
        let base_name = format!("{name}.base");
        let newest = open(logs, name)?;
        let Some(base) = read_base(logs, &base_name)? else {
            return Self::only(newest, 0).map(Some);
        };
        let newest_inode = inode_of(newest.as_ref())?;
        if newest_inode == Some(base.old_inode) {
            // A rotation has begun: the file before this one is as good as gone.
            return Self::only(newest, base.old_at).map(Some);
        }
        let before = open(logs, &format!("{name}.1"))?;
        // The same inode can be another file: inodes are used again. Rotation changes the base first.
        let unchanged = read_base(logs, &base_name)? == Some(base);
        if !unchanged || inode_of(before.as_ref())? != Some(base.old_inode) {
            return Ok(None);
        }
        match newest_inode {
            // In the middle of a rotation no file has the name.
            None => Self::only(before, base.old_at).map(Some),
            Some(inode) if inode == base.inode => {
                let files = Self::only(newest, base.at)?;
                Ok(Some(Self { before: before.map(|before| (before, base.old_at)), ..files }))
            }
            Some(_) => Ok(None),
        }
    }

    fn only(newest: Option<OwnedFd>, newest_at: u64) -> Result<Self, ReadError> {
        let newest_len = newest.as_ref().map_or(Ok(0), |file| Ok::<_, ReadError>(inspect(file)?.1))?;
        Ok(Self { newest, newest_at, newest_len, before: None })
    }

    fn read(&self, offset: u64, max: usize) -> Result<LogPart, ReadError> {
        let end = self.newest_at + self.newest_len;
        let first = self.before.as_ref().map_or(self.newest_at, |(_, at)| *at);
        let offset = offset.clamp(first, end);
        let mut part = LogPart { offset, bytes: Vec::new(), end };
        if let Some((before, at)) = &self.before
            && offset < self.newest_at
        {
            read_into(before, offset - at, self.newest_at - offset, max, &mut part.bytes)?;
        }
        let place = offset + part.bytes.len() as u64;
        if let Some(newest) = &self.newest
            && place >= self.newest_at
        {
            read_into(newest, place - self.newest_at, end - place, max - part.bytes.len(), &mut part.bytes)?;
        }
        Ok(part)
    }
}

/// Opens a file if it is there. Does not follow links, nor wait for whoever should open the other side.
fn open(logs: &OwnedFd, name: &str) -> Result<Option<OwnedFd>, ReadError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(logs, name, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn inode_of(file: Option<&OwnedFd>) -> Result<Option<u64>, ReadError> {
    file.map(|file| Ok(inspect(file)?.0)).transpose()
}

/// Inode and size of a regular file.
fn inspect(file: &OwnedFd) -> Result<(u64, u64), ReadError> {
    let stat = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ReadError::NotAFile);
    }
    Ok((stat.st_ino, u64::try_from(stat.st_size).unwrap_or(0)))
}

fn read_base(logs: &OwnedFd, name: &str) -> Result<Option<Base>, ReadError> {
    let Some(file) = open(logs, name)? else { return Ok(None) };
    inspect(&file)?;
    let mut text = Vec::new();
    read_into(&file, 0, 200, 200, &mut text)?;
    let base = std::str::from_utf8(&text).ok().and_then(Base::parse);
    base.map_or(Err(ReadError::NotAFile), |base| Ok(Some(base)))
}

/// Appends at most `available` and `max` bytes from a place in a file.
fn read_into(
    file: &OwnedFd,
    mut offset: u64,
    available: u64,
    max: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let wanted = usize::try_from(available).unwrap_or(usize::MAX).min(max);
    let begin = bytes.len();
    bytes.resize(begin + wanted, 0);
    let mut filled = begin;
    while filled < bytes.len() {
        match rustix::io::pread(file, &mut bytes[filled..], offset) {
            Ok(0) => break,
            Ok(read) => {
                filled += read;
                offset += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    bytes.truncate(filled);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::log_writer::LogWriter;
    use crate::spares::Spares;

    fn handle() -> Handle {
        Handle { task: "t".into(), attempt: 1 }
    }

    fn writer(root: &Path, max_bytes: u64) -> (AttemptDirs, LogWriter) {
        let dirs = AttemptDirs::new(root);
        dirs.create(&handle(), &mut Spares::default()).unwrap();
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
        log.write(b"hello world").unwrap();
        assert_eq!(read(&dirs, 0, 5), (0, "hello".into(), 11));
        assert_eq!(read(&dirs, 6, 100), (6, "world".into(), 11));
        assert_eq!(read(&dirs, 99, 100), (11, String::new(), 11), "past the end is the end");
    }

    #[test]
    fn places_stay_the_same_when_the_log_is_rotated() {
        let temp = tempfile::tempdir().unwrap();
        let (dirs, mut log) = writer(temp.path(), 8);
        log.write(b"0123456789abcd").unwrap();
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
                    log.write(&[(index % 251) as u8]).unwrap();
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
}
