//! Frames: methods, headers, bodies and heartbeats.

use super::wire::{Decoder, Encoder};

/// A method is named by its class and its number.
pub type MethodId = (u16, u16);

pub const METHOD: u8 = 1;
pub const HEADER: u8 = 2;
pub const BODY: u8 = 3;
pub const HEARTBEAT: u8 = 8;
/// What every frame ends with.
const END: u8 = 0xCE;
/// Head and end of a frame.
const AROUND: usize = 8;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub sort: u8,
    pub channel: u16,
    pub payload: Vec<u8>,
}

/// The bytes are no frames.
#[derive(Debug, PartialEq, Eq)]
pub struct Garbled;

/// Takes the first frame out of a buffer, if it is whole.
pub fn take_frame(buffer: &mut bytes::BytesMut, largest: usize) -> Result<Option<Frame>, Garbled> {
    let mut head = Decoder(buffer);
    let (Some(sort), Some(channel), Some(size)) = (head.octet(), head.short(), head.long()) else {
        return Ok(None);
    };
    let size = size as usize;
    if size > largest || ![METHOD, HEADER, BODY, HEARTBEAT].contains(&sort) {
        return Err(Garbled);
    }
    if buffer.len() < size + AROUND {
        return Ok(None);
    }
    let whole = buffer.split_to(size + AROUND);
    if whole.last() != Some(&END) {
        return Err(Garbled);
    }
    Ok(Some(Frame { sort, channel, payload: whole[7..7 + size].to_vec() }))
}

/// Appends a frame.
pub fn put_frame(out: &mut Vec<u8>, sort: u8, channel: u16, payload: &[u8]) {
    out.push(sort);
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(payload);
    out.push(END);
}

/// The bytes of a method.
pub fn method(id: MethodId, arguments: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.short(id.0).short(id.1);
    arguments(&mut encoder);
    encoder.0
}

impl Frame {
    /// Which method it is, and its arguments.
    pub fn as_method(&self) -> Option<(MethodId, Decoder<'_>)> {
        if self.sort != METHOD {
            return None;
        }
        let mut decoder = Decoder(&self.payload);
        let id = (decoder.short()?, decoder.short()?);
        Some((id, decoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_one_by_one_when_they_are_whole() {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, METHOD, 1, b"abc");
        put_frame(&mut bytes, HEARTBEAT, 0, b"");
        let mut buffer = bytes::BytesMut::new();
        for byte in &bytes[..10] {
            buffer.extend_from_slice(&[*byte]);
            assert_eq!(take_frame(&mut buffer, 100), Ok(None));
        }
        buffer.extend_from_slice(&bytes[10..]);
        let first = take_frame(&mut buffer, 100).unwrap().unwrap();
        assert_eq!((first.sort, first.channel, first.payload.as_slice()), (METHOD, 1, &b"abc"[..]));
        assert_eq!(take_frame(&mut buffer, 100).unwrap().map(|frame| frame.sort), Some(HEARTBEAT));
        assert_eq!(take_frame(&mut buffer, 100), Ok(None));
    }

    #[test]
    fn what_is_no_frame_is_noticed_at_once() {
        let mut buffer = bytes::BytesMut::from(&b"HTTP/1.1 400"[..]);
        assert_eq!(take_frame(&mut buffer, 100), Err(Garbled));
        let mut buffer = bytes::BytesMut::from(&[1, 0, 0, 255, 0, 0, 0][..]);
        assert_eq!(take_frame(&mut buffer, 100), Err(Garbled), "too large");
    }
}
