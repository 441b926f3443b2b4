//! Messages on the socket between the server and its shepherd.

use muster_exec::{Command, Decoder, MAX_FRAME, Report, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Target;
use crate::json_reference::is_exact;

pub const FRAMES: Target = Target {
    name: "frames",
    property: "a stream gives the same messages however it is cut, and each is written and read back as the same",
    run: frames,
};

/// Messages of one input.
const MAX_MESSAGES: usize = 64;

fn frames(input: &[u8]) {
    let whole = decode::<Value>(input, input.len());
    for size in [1, 3, 64] {
        assert_eq!(decode::<Value>(input, size), whole, "in pieces of {size}");
    }
    let (mut messages, _) = whole;
    messages.retain(is_exact);
    let mut stream = Vec::new();
    for message in &messages {
        encode(message, &mut stream).expect("it came in a frame");
        reads_back::<Command>(message);
        reads_back::<Report>(message);
    }
    assert_eq!(decode::<Value>(&stream, 7), (messages, false), "written and read back");
}

/// The messages of a stream, and whether it broke.
fn decode<T: DeserializeOwned>(input: &[u8], size: usize) -> (Vec<T>, bool) {
    assert!(input.len() < MAX_FRAME);
    let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
    for piece in input.chunks(size.max(1)) {
        decoder.extend(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => return (messages, true),
            }
            if messages.len() >= MAX_MESSAGES {
                return (messages, false);
            }
        }
    }
    (messages, false)
}

fn reads_back<T: DeserializeOwned + Serialize + PartialEq>(message: &Value) {
    let Ok(read) = serde_json::from_value::<T>(message.clone()) else { return };
    let written = serde_json::to_value(&read).expect("what was read can be written");
    let again: T =
        serde_json::from_value(written.clone()).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert!(again == read, "it reads back otherwise: {written}");
}
