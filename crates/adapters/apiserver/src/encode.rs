//! From an object to the draft that the store takes.

use muster_ports::store::{Draft, Revision, Stored};
use serde_json::Value;

use crate::kind::AnyObject;
use crate::refusal::Refusal;

/// Largest object that is stored.
pub const MAX_OBJECT: usize = 1_572_864;
/// Maps and lists inside each other in what is stored, the books of who owns which field not counted. What is nested
/// deeper could be stored, but neither be read nor applied to again.
const MAX_DEPTH: usize = 120;

/// An encoded object without its revision.
pub struct Encoded(Draft);

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
        if is_too_deep(&json) {
            return Err(Refusal::bad_request(format!(
                "the object is nested too deep: at most {MAX_DEPTH} levels are allowed"
            )));
        }
        let draft = Draft::of_object(json);
        draft
            .map(Self)
            .ok_or_else(|| Refusal::internal("the object was encoded without a place for its revision"))
    }

    /// True if the stored JSON differs only in its revision.
    pub fn same_as(&self, stored: &Stored) -> bool {
        let (head, tail) = self.0.around_revision();
        let json = stored.json();
        let at = stored.splice() as usize;
        let rest = json
            .get(at..)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'"').map(|end| &rest[end..]));
        json.get(..at) == Some(head) && rest == Some(tail)
    }

    /// The draft for the store.
    pub fn into_draft(self) -> Draft {
        self.0
    }

    /// The JSON as it would look at a revision, for dry runs.
    pub fn at(&self, revision: Option<Revision>) -> Vec<u8> {
        let digits = revision.map(|revision| revision.to_string()).unwrap_or_default();
        let (head, tail) = self.0.around_revision();
        [head, digits.as_bytes(), tail].concat()
    }
}

/// Most objects have fewer maps and lists than may be inside each other, which is seen at a glance.
fn is_too_deep(json: &[u8]) -> bool {
    memchr::memchr2_iter(b'{', b'[', json).nth(MAX_DEPTH).is_some()
        && depth(json) > MAX_DEPTH
        && own_depth(json).is_none_or(|depth| depth > MAX_DEPTH)
}

/// How many maps and lists are inside each other in valid JSON.
fn depth(json: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            b'"' => {
                while let Some(inside) = bytes.next() {
                    match inside {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    most
}

/// The depth of an object without the books of who owns which field; `None` if it is too deep to be read.
fn own_depth(json: &[u8]) -> Option<usize> {
    let mut object: Value = serde_json::from_slice(json).ok()?;
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.map(|metadata| metadata.remove("managedFields"));
    Some(depth(object.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_counts_what_is_inside_each_other_and_not_what_is_text() {
        assert_eq!(depth(json!({"a": [[], {"b": 1}], "c": {}}).to_string().as_bytes()), 3);
        assert_eq!(depth(json!({"[[[": "{{\"{["}).to_string().as_bytes()), 1);
        assert_eq!(depth(b"3"), 0);
    }

    #[test]
    fn the_books_of_owners_do_not_count() {
        let object = json!({"metadata": {"managedFields": [{"fieldsV1": {"f:a": {"f:b": {}}}}]}, "spec": {}});
        assert_eq!(own_depth(object.to_string().as_bytes()), Some(2));
        assert_eq!(own_depth(format!("{}{}", "[".repeat(200), "]".repeat(200)).as_bytes()), None);
    }
}
