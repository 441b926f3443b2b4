//! The bridge: what robots say goes to the store and to the engine, what the engine orders goes to robots.
//!
//! It has two parts. The reception hears what robots say of themselves, on every server; the desk hears and says what is about
//! attempts, on the server whose engine runs.

mod departures;
mod desk;
mod joining;
mod pulse;
mod pulses;
mod reception;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use desk::{Desk, Order};
pub use reception::{Reception, ReceptionSettings};

use crate::messages::MAX_PAYLOAD;
use crate::topics::{Inbound, Topics};

/// What a message is about; nothing if it is none of ours, or too large for any.
fn about<'a>(topics: &Topics, topic: &'a str, payload: &[u8]) -> Option<Inbound<'a>> {
    let about = topics.parse(topic)?;
    if payload.len() > MAX_PAYLOAD {
        tracing::debug!(topic, "a message is too large and is ignored");
        return None;
    }
    Some(about)
}

fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// Reads a message; whatever is none is nobody's business.
fn decode<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload)
        .inspect_err(|error| tracing::debug!(%error, "a message cannot be read"))
        .ok()
}
