//! Random identities: uids, name suffixes, secrets.

use crate::refusal::Refusal;

/// Letters and digits of generated names; no vowels, so no words.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A random (version 4) uuid.
pub fn uid() -> Result<String, Refusal> {
    let mut bytes: [u8; 16] = random()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        push_hex(&mut text, *byte);
    }
    Ok(text)
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
    bytes.iter().for_each(|byte| push_hex(&mut text, *byte));
    text
}

fn push_hex(text: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    }
}
