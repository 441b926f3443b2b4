//! From an object to the draft that the store takes.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use muster_ports::store::{Draft, Revision};

use crate::kind::AnyObject;
use crate::refusal::Refusal;

/// Largest object that is stored.
pub const MAX_OBJECT: usize = 1_572_864;

static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""resourceVersion":""#));

/// An encoded object without its revision.
pub struct Encoded {
    json: Vec<u8>,
    splice: usize,
}

impl Encoded {
    /// Encodes an object, leaving its revision open.
    pub fn new(object: &mut dyn AnyObject) -> Result<Self, Refusal> {
        let metadata = object.metadata_mut();
        metadata.resource_version.clear();
        metadata.self_link = None;
        let json = object.encode().map_err(|error| Refusal::internal(error.to_string()))?;
        if json.len() > MAX_OBJECT {
            let message = format!("the object is {} bytes long; at most {MAX_OBJECT} are stored", json.len());
            return Err(Refusal::too_large(message));
        }
        // Everything the encoder writes before the mark is a validated name, so the first match is the right one.
        let at = MARK
            .find(&json)
            .ok_or_else(|| Refusal::internal("the object was encoded without a place for its revision"))?;
        Ok(Self { json, splice: at + MARK.needle().len() })
    }

    /// True if the stored JSON differs only in its revision.
    pub fn same_as(&self, stored: &muster_ports::store::Stored) -> bool {
        let json = stored.json();
        let at = stored.splice() as usize;
        let rest = json
            .get(at..)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'"').map(|end| &rest[end..]));
        at == self.splice && json.get(..at) == self.json.get(..at) && rest == self.json.get(at..)
    }

    /// The draft for the store.
    pub fn into_draft(self) -> Result<Draft, Refusal> {
        Draft::new(self.json, self.splice)
            .ok_or_else(|| Refusal::internal("the object is too large to store"))
    }

    /// The JSON as it would look at a revision, for dry runs.
    pub fn at(&self, revision: Option<Revision>) -> Vec<u8> {
        let digits = revision.map(|revision| revision.to_string()).unwrap_or_default();
        let (head, tail) = self.json.split_at(self.splice.min(self.json.len()));
        [head, digits.as_bytes(), tail].concat()
    }
}
