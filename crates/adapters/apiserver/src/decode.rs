//! Reading objects, with the fields in them that their type does not know, or the field that is wrong.
//!
//! There is one reader, of text: each type that is read costs the compiler seconds per reader. A document that was parsed already
//! is written out again, and where an error lies is found in the text.

use std::fmt;

use muster_types::{JsonText, strict};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::field_path::{field_path, paths_at};
use crate::kind::{Input, KindInfo};
use crate::refusal::Refusal;

/// What is wrong with a document, and where.
#[derive(Debug)]
pub struct Wrong {
    /// The field; empty for the document itself.
    pub path: String,
    message: String,
}

impl Wrong {
    /// Where in a text of ours means nothing to anybody else.
    fn without_place(mut self) -> Self {
        if let Some(end) = self.message.rfind(" at line ") {
            self.message.truncate(end);
        }
        self
    }
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
pub fn decode<T: JsonText>(info: &KindInfo, input: Input<'_>) -> Result<(T, Vec<String>), Refusal> {
    let read = match input {
        Input::Json(json) => explain(json, T::read(json)),
        Input::Value(value) => {
            let json = value.to_string().into_bytes();
            explain(&json, T::read(&json)).map_err(Wrong::without_place)
        }
    };
    read.map_err(|wrong| {
        let KindInfo { kind, version, .. } = info;
        let message = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {wrong}");
        Refusal::undecodable(&wrong.path, &message)
    })
}

/// What a parsed document says, and the paths of unknown fields in it.
pub fn read_value<T: DeserializeOwned>(document: &Value) -> Result<(T, Vec<String>), Wrong> {
    let json = document.to_string().into_bytes();
    explain(&json, strict::from_slice(&json)).map_err(Wrong::without_place)
}

/// What was read of a text, in words for whoever sent it.
fn explain<T>(json: &[u8], read: serde_json::Result<(T, Vec<usize>)>) -> Result<(T, Vec<String>), Wrong> {
    match read {
        Ok((object, skipped)) => Ok((object, paths_at(json, &skipped))),
        Err(error) => Err(Wrong { path: field_path(json, &error), message: error.to_string() }),
    }
}
