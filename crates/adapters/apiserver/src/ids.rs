//! Random identities: uids, name suffixes, secrets.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use muster_ports::clock::Millis;

use crate::refusal::Refusal;

/// Letters and digits of generated names; no vowels, so no words.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A time-ordered (version 7) uuid. Those made by one server grow strictly, so a uid also tells who came first.
pub fn uid(now: Millis) -> String {
    /// Milliseconds and a counter within them, 48 and 12 bits, of the last uid.
    static LAST: AtomicU64 = AtomicU64::new(0);
    let first_of_now = u64::try_from(now.0.max(0)).unwrap_or(0) << 12;
    // More than 4096 in a millisecond run ahead of the clock; a clock that goes back is not followed.
    let next = |last: u64| Some(first_of_now.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_else(|last| last);
    let stamp = first_of_now.max(last + 1);
    // Seeded by the operating system once for each thread. A uid is no secret.
    let random = RandomState::new().hash_one(stamp).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&(stamp >> 12).to_be_bytes()[2..]);
    bytes[6..8].copy_from_slice(&(stamp & 0xfff | 0x7000).to_be_bytes()[6..]);
    bytes[8..].copy_from_slice(&random);
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        push_hex(&mut text, *byte);
    }
    text
}

/// Five characters that make a generated name unique enough.
pub fn name_suffix() -> Result<String, Refusal> {
    let bytes: [u8; 5] = random()?;
    Ok(bytes.iter().map(|byte| char::from(SUFFIX[usize::from(*byte) % SUFFIX.len()])).collect())
}

/// Random bytes from the operating system.
pub fn random<const N: usize>() -> Result<[u8; N], Refusal> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Refusal::internal(format!("no random numbers to be had: {error}")))?;
    Ok(bytes)
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        push_hex(&mut text, *byte);
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for digit in [byte >> 4, byte & 15] {
        text.push(char::from(DIGITS[usize::from(digit)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_grow_even_within_a_millisecond_and_when_the_clock_goes_back() {
        let now = Millis(1_800_000_000_000);
        let uids: Vec<_> = (0..10_000).map(|round| uid(Millis(now.0 - round / 100))).collect();
        assert!(uids.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_uid_is_a_version_7_uuid() {
        let uid = uid(Millis(1));
        let dashes: Vec<_> = uid.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((dashes.as_slice(), uid.len()), ([8, 13, 18, 23].as_slice(), 36));
        assert_eq!(&uid[14..15], "7");
        assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"), "{uid}");
    }
}
