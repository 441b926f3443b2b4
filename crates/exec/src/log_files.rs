//! The files that make up a log at one moment, opened so that no byte is ever taken for another.

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::log_reader::{LogPart, ReadError};
use crate::log_times::TimedPlace;
use crate::log_writer::Base;

/// No file of times that was written here is larger.
const MAX_TIMES: u64 = 64 << 20;

/// The files of a log at one moment.
pub(crate) struct Files {
    newest: Option<OwnedFd>,
    newest_at: u64,
    newest_len: u64,
    before: Option<(OwnedFd, u64)>,
    /// The newest has the name of the one before it.
    renamed: bool,
}

impl Files {
    /// Opens them; `None` if they changed meanwhile.
    pub(crate) fn open(logs: &OwnedFd, name: &str) -> Result<Option<Self>, ReadError> {
        let base_name = format!("{name}.base");
        let base = read_base(logs, &base_name)?;
        let newest = open(logs, name)?;
        let before = if base.is_some() { open(logs, &format!("{name}.1"))? } else { None };
        // Rotation changes the base first: as long as it is the same, these are the files it speaks of, in one of the states
        // that a rotation goes through. Inodes alone would not do, they are used again.
        if read_base(logs, &base_name)? != base {
            return Ok(None);
        }
        let Some(base) = base else { return Self::only(newest, 0).map(Some) };
        let is_before = inode_of(before.as_ref())? == Some(base.old_inode);
        match inode_of(newest.as_ref())? {
            // It has begun: the file before this one is as good as gone.
            Some(inode) if inode == base.old_inode => Self::only(newest, base.old_at).map(Some),
            // In the middle of it no file has the name.
            None if is_before => {
                let files = Self::only(before, base.old_at)?;
                Ok(Some(Self { renamed: true, ..files }))
            }
            // The log has gone elsewhere.
            None => Self::only(None, 0).map(Some),
            Some(inode) if inode == base.inode && is_before => {
                let files = Self::only(newest, base.at)?;
                Ok(Some(Self { before: before.map(|before| (before, base.old_at)), ..files }))
            }
            Some(_) => Ok(None),
        }
    }

    fn only(newest: Option<OwnedFd>, newest_at: u64) -> Result<Self, ReadError> {
        let newest_len = newest.as_ref().map_or(Ok(0), |file| Ok::<_, ReadError>(inspect(file)?.1))?;
        Ok(Self { newest, newest_at, newest_len, before: None, renamed: false })
    }

    /// Whether they hold nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_none() && self.newest_len == 0
    }

    /// The name of the file if the log is one, given the name of the log.
    pub(crate) fn only_name(&self, name: &str) -> Option<String> {
        let only = self.before.is_none() && self.newest.is_some();
        only.then(|| if self.renamed { format!("{name}.1") } else { name.to_string() })
    }

    /// The first place that is kept.
    pub(crate) fn first(&self) -> u64 {
        self.before.as_ref().map_or(self.newest_at, |(_, at)| *at)
    }

    /// The times of the newest file: as they were kept or, if they were not, when it was changed.
    pub(crate) fn newest_times(&self, kept: Vec<TimedPlace>) -> Result<Vec<TimedPlace>, ReadError> {
        times_of(self.newest.as_ref(), self.newest_at, kept)
    }

    /// The times of the file before.
    pub(crate) fn times_before(&self, kept: Vec<TimedPlace>) -> Result<Vec<TimedPlace>, ReadError> {
        let Some((before, at)) = &self.before else { return Ok(Vec::new()) };
        times_of(Some(before), *at, kept)
    }

    pub(crate) fn read(&self, offset: u64, max: usize) -> Result<LogPart, ReadError> {
        let end = self.newest_at + self.newest_len;
        let offset = offset.clamp(self.first(), end);
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

fn times_of(file: Option<&OwnedFd>, at: u64, kept: Vec<TimedPlace>) -> Result<Vec<TimedPlace>, ReadError> {
    let Some(file) = file.filter(|_| kept.is_empty()) else { return Ok(kept) };
    let stat = rustix::fs::fstat(file)?;
    let empty = stat.st_size == 0;
    Ok(if empty { Vec::new() } else { vec![TimedPlace { second: stat.st_mtime, offset: at }] })
}

pub(crate) fn read_times(logs: &OwnedFd, name: &str) -> Result<Vec<TimedPlace>, ReadError> {
    let Some(file) = open(logs, name)? else { return Ok(Vec::new()) };
    let (_, length) = inspect(&file)?;
    let mut bytes = Vec::new();
    read_into(&file, 0, length.min(MAX_TIMES), usize::MAX, &mut bytes)?;
    Ok(TimedPlace::parse(&bytes))
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
