//! Tells a write-ahead log that a crash cut short from one that was damaged afterwards.
//!
//! SQLite reads the log up to the first frame that is not what was written, and takes everything behind it for what
//! a crash left of the last transaction. That is right at the end of the log. In the middle it would silently undo
//! transactions that were acknowledged. The end of one is on disk before the next one begins, so a transaction behind
//! which another one stands was whole once: if a frame up to it is not what was written, that is damage.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use muster_ports::store::LogError;

use super::errors::Words;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Pages that SQLite can have.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 512..=65_536;

/// Refuses a log that was damaged where no crash does damage.
pub(super) fn check(log: &Path, words: &Words) -> Result<(), LogError> {
    let file = match File::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(words.io("open the write-ahead log of", &error)),
    };
    match find_damage(BufReader::with_capacity(1 << 20, file)) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => {
            Err(words.corrupt(&format!("{what} of its write-ahead log is not what was written")))
        }
        Err(error) => Err(words.io("read the write-ahead log of", &error)),
    }
}

/// What of the log is damaged, if anything is.
fn find_damage(mut log: impl Read) -> io::Result<Option<String>> {
    let mut header = [0; HEADER];
    if !read_whole(&mut log, &mut header)? || header == [0; HEADER] {
        // Not even begun.
        return Ok(None);
    }
    let Some(mut sum) = Sum::begin(&header) else { return Ok(Some("the beginning".to_owned())) };
    let page_size = number(&header, 8) as usize;
    if !PAGE_SIZES.contains(&page_size) {
        return Ok(Some("the beginning".to_owned()));
    }
    let mut frame = vec![0; FRAME_HEADER + page_size];
    let mut bad = None;
    let mut ends_behind_bad = false;
    for index in 1_u64.. {
        if !read_whole(&mut log, &mut frame)? {
            // A last one that is not whole was never finished.
            break;
        }
        // The frames of earlier rounds carry other salts.
        let ours = frame[8..16] == header[16..24];
        if ours && ends_behind_bad {
            return Ok(bad.map(|index: u64| format!("frame {index}")));
        }
        if bad.is_none() && !(ours && sum.takes(&frame)) {
            bad = Some(index);
        }
        let ends_transaction = number(&frame, 4) != 0;
        ends_behind_bad |= bad.is_some() && ours && ends_transaction;
    }
    Ok(None)
}

/// The checksum that runs through all frames.
struct Sum {
    big_endian: bool,
    state: (u32, u32),
}

impl Sum {
    /// `None` if the header is not what was written.
    fn begin(header: &[u8; HEADER]) -> Option<Self> {
        let big_endian = match number(header, 0) {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => return None,
        };
        let mut sum = Self { big_endian, state: (0, 0) };
        sum.add(&header[..24]);
        (sum.state == (number(header, 24), number(header, 28))).then_some(sum)
    }

    /// True if the frame is what was written.
    fn takes(&mut self, frame: &[u8]) -> bool {
        self.add(&frame[..8]);
        self.add(&frame[FRAME_HEADER..]);
        self.state == (number(frame, 16), number(frame, 20))
    }

    fn add(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| {
            let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
            if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (mut first, mut second) = self.state;
        for pair in bytes.chunks_exact(8) {
            first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
            second = second.wrapping_add(word(&pair[4..])).wrapping_add(first);
        }
        self.state = (first, second);
    }
}

/// The number at an offset, as headers have it.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// False if the stream ends before the buffer is full.
fn read_whole(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match stream.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::*;

    /// The log of ten transactions of one row each, as a crash leaves it, and the size of its frames.
    fn log() -> (Vec<u8>, usize) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch("CREATE TABLE a (b TEXT)").unwrap();
        for _ in 0..10 {
            connection.execute("INSERT INTO a VALUES ('text')", []).unwrap();
        }
        let log = fs::read(directory.path().join("a.db-wal")).unwrap();
        let frame = FRAME_HEADER + number(&log, 8) as usize;
        (log, frame)
    }

    fn damage(log: &[u8]) -> Option<String> {
        find_damage(log).unwrap()
    }

    #[test]
    fn a_log_is_sound_wherever_it_is_cut() {
        let (log, frame) = log();
        for length in (0..log.len()).step_by(997).chain([HEADER, HEADER + frame, log.len()]) {
            assert_eq!(damage(&log[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn a_flipped_byte_before_the_last_transaction_is_damage() {
        let (log, frame) = log();
        // A frame that is no longer recognised ends no transaction, so two must follow it.
        let header_of_last_but_one = log.len() - 2 * frame..log.len() - 2 * frame + FRAME_HEADER;
        for at in (0..log.len() - frame).filter(|at| at % 127 == 0 || at % frame < HEADER + FRAME_HEADER) {
            let mut flipped = log.clone();
            flipped[at] ^= 0x40;
            assert!(header_of_last_but_one.contains(&at) || damage(&flipped).is_some(), "byte {at}");
        }
    }

    #[test]
    fn the_last_transaction_may_be_torn() {
        let (log, frame) = log();
        let mut torn = log.clone();
        let end = torn.len();
        torn[end - frame / 2..].fill(0);
        assert_eq!(damage(&torn), None);
    }

    #[test]
    fn frames_of_an_earlier_round_are_not_looked_at() {
        let (log, frame) = log();
        let mut old = log.clone();
        for start in (HEADER + 3 * frame..log.len()).step_by(frame) {
            old[start + 8] ^= 1;
            old[start + 100] ^= 1;
        }
        assert_eq!(damage(&old), None);
    }
}
