//! Reading objects, with the fields in them that their type does not know, or the field that is wrong.
//!
//! There is one reader, of text: each type that is read costs the compiler seconds per reader. A document that was parsed already
//! is written out again, and where an error lies is found in the text.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::field_path::field_path;
use crate::kind::{Input, KindInfo};
use crate::refusal::Refusal;
use crate::strict::Strict;

/// Enough to help; a hostile body may hold millions.
const MOST_UNKNOWN: usize = 64;

/// What is wrong with a document, and where.
#[derive(Debug)]
pub struct Wrong {
    /// The field; empty for the document itself.
    pub path: String,
    message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// An object and the paths of unknown fields in it.
pub fn decode<T: DeserializeOwned>(info: &KindInfo, input: Input<'_>) -> Result<(T, Vec<String>), Refusal> {
    let read = match input {
        Input::Json(json) => read(json),
        Input::Value(value) => read_value(value),
    };
    read.map_err(|wrong| {
        let KindInfo { kind, version, .. } = info;
        let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {wrong}");
        Refusal::undecodable(&wrong.path, &message)
    })
}

/// The same of a parsed document.
pub fn read_value<T: DeserializeOwned>(document: &Value) -> Result<(T, Vec<String>), Wrong> {
    let json = document.to_string();
    read(json.as_bytes()).map_err(|wrong| {
        // The text is ours: where in it means nothing to anybody else.
        let message = wrong.message.rsplit_once(" at line ").map_or(&*wrong.message, |(message, _)| message);
        Wrong { message: message.to_owned(), ..wrong }
    })
}

/// What JSON text says, and the paths of unknown fields in it.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<(T, Vec<String>), Wrong> {
    let mut unknown = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let object = serde_ignored::deserialize(Strict(&mut deserializer), |path| {
        if unknown.len() < MOST_UNKNOWN {
            // Options in the types show up as `?` in the path.
            unknown.push(path.to_string().replace("?.", "").replace(".?", ""));
        }
    });
    // What follows the object is part of the same mistake.
    let object = object.and_then(|object| deserializer.end().map(|()| object));
    let object =
        object.map_err(|error| Wrong { path: field_path(json, &error), message: error.to_string() })?;
    Ok((object, unknown))
}
