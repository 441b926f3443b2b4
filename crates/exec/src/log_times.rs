//! Remembers when which part of a log was written, to the second.
//!
//! `<container>.log.times` beside a log file holds one entry for each second in which something was written to it: the second
//! and the place in the log where its output begins, both as eight bytes with the little end first. A file that was written
//! within one second has none; its own time of change says as much.

use std::io;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use crate::log_writer::write_all;

/// Bytes of an entry.
const ENTRY: usize = 16;

/// A second and the place in the log where its output begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedPlace {
    /// Since 1970.
    pub second: i64,
    /// Counted from the first byte the container ever wrote.
    pub offset: u64,
}

impl TimedPlace {
    fn bytes(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&self.second.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// All whole entries. Programs can write anything there, so nothing is taken for granted.
    pub(crate) fn parse(bytes: &[u8]) -> Vec<Self> {
        let entries = bytes.as_chunks::<ENTRY>().0.iter();
        let number = |bytes: &[u8]| bytes.try_into().ok();
        let parse = |entry: &[u8; ENTRY]| {
            Some(Self {
                second: i64::from_le_bytes(number(&entry[..8])?),
                offset: u64::from_le_bytes(number(&entry[8..])?),
            })
        };
        entries.filter_map(parse).collect()
    }
}

/// The times of the newest file of a log.
#[derive(Debug, Default)]
pub(crate) struct TimesWriter {
    newest: Option<TimedPlace>,
    file: Option<OwnedFd>,
    written: u64,
}

impl TimesWriter {
    /// How much room they take.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Output that begins at this place is about to be written. Clocks that went back are waited for.
    pub(crate) fn observe(&mut self, place: TimedPlace, logs: &OwnedFd, name: &str) -> io::Result<()> {
        let Some(newest) = self.newest else {
            self.newest = Some(place);
            return Ok(());
        };
        if place.second <= newest.second {
            return Ok(());
        }
        let mut entries = Vec::with_capacity(2 * ENTRY);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                entries.extend(newest.bytes());
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::CLOEXEC;
                let name = format!("{name}.times");
                none.insert(rustix::fs::openat(logs, name, flags, Mode::RUSR | Mode::WUSR)?)
            }
        };
        entries.extend(place.bytes());
        write_all(file, &entries)?;
        self.written += entries.len() as u64;
        self.newest = Some(place);
        Ok(())
    }

    /// A new file begins: the times go with the one before. Answers whether there are any.
    pub(crate) fn rotate(&mut self) -> bool {
        std::mem::take(self).file.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_went_and_rests_are_dropped() {
        let places = [(0, 0), (1_763_230_000, 17), (i64::MIN, u64::MAX)]
            .map(|(second, offset)| TimedPlace { second, offset });
        let mut bytes: Vec<u8> = places.iter().flat_map(|place| place.bytes()).collect();
        bytes.extend([1, 2, 3]);
        assert_eq!(TimedPlace::parse(&bytes), places);
        assert_eq!(TimedPlace::parse(&[]), []);
    }
}
