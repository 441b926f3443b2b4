//! Messages on a stream: a length of four bytes, little end first, then JSON. Many may be written at once.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// No message is larger. More than any program can be given as arguments and environment.
pub const MAX_FRAME: usize = 16 << 20;
const LENGTH: usize = 4;

/// Why a message could not be written or read.
#[derive(Debug, Error)]
pub enum FrameError {
    /// It is larger than [`MAX_FRAME`].
    #[error("a message of {0} bytes is too large")]
    TooLarge(usize),
    /// It is not what was expected.
    #[error("a message cannot be read or written: {0}")]
    Json(#[from] serde_json::Error),
}

/// Appends a message. Nothing is appended if it fails.
pub fn encode<T: Serialize>(message: &T, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let begin = out.len();
    out.extend([0; LENGTH]);
    let written = match serde_json::to_writer(&mut *out, message) {
        Ok(()) => {
            let length = out.len() - begin - LENGTH;
            u32::try_from(length).ok().filter(|_| length <= MAX_FRAME).ok_or(FrameError::TooLarge(length))
        }
        Err(error) => Err(error.into()),
    };
    match written {
        Ok(length) => {
            out[begin..begin + LENGTH].copy_from_slice(&length.to_le_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(begin);
            Err(error)
        }
    }
}

/// Takes messages out of a stream.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// More of the stream has come.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message, if all of it has come.
    pub fn next_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let rest = &self.buffer[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_FRAME {
            return Err(FrameError::TooLarge(length));
        }
        let Some(message) = rest.get(..length) else {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            return Ok(None);
        };
        self.taken += LENGTH + length;
        Ok(Some(serde_json::from_slice(message)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_however_the_stream_is_cut() {
        let messages = ["", "one", &"long ".repeat(1000), "last"];
        let mut stream = Vec::new();
        for message in &messages {
            encode(message, &mut stream).unwrap();
        }
        for size in [1, 3, 7, 1000, stream.len()] {
            let (mut decoder, mut seen) = (Decoder::default(), Vec::<String>::new());
            for piece in stream.chunks(size) {
                decoder.extend(piece);
                while let Some(message) = decoder.next_message().unwrap() {
                    seen.push(message);
                }
            }
            assert_eq!(seen, messages, "in pieces of {size}");
        }
    }

    #[test]
    fn a_message_that_is_too_large_is_refused_and_leaves_nothing() {
        let mut stream = vec![1, 2];
        let error = encode(&"x".repeat(MAX_FRAME), &mut stream).unwrap_err();
        assert!(matches!(error, FrameError::TooLarge(_)));
        assert_eq!(stream, [1, 2]);
        let mut decoder = Decoder::default();
        decoder.extend(&u32::MAX.to_le_bytes());
        assert!(matches!(decoder.next_message::<String>(), Err(FrameError::TooLarge(_))));
    }

    #[test]
    fn a_message_of_another_sort_is_refused() {
        let mut stream = Vec::new();
        encode(&7, &mut stream).unwrap();
        let mut decoder = Decoder::default();
        decoder.extend(&stream);
        assert!(matches!(decoder.next_message::<String>(), Err(FrameError::Json(_))));
    }
}
