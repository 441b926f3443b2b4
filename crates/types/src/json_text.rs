//! Objects as JSON text, read and written by code that is compiled once.
//!
//! Reading and writing through `serde_json` is generic: every crate that does so for a type gets all the code for it anew, which is
//! thousands of lines for a task. Through this trait that code is made where the type is, and all others call it.

/// A type that is read from JSON text and written as such.
pub trait JsonText: Sized {
    /// Reads it as [`crate::strict::from_slice`] does.
    fn read(json: &[u8]) -> serde_json::Result<(Self, Vec<usize>)>;

    /// Writes it.
    fn to_json(&self) -> serde_json::Result<Vec<u8>>;

    /// Reads it, whatever there is besides.
    fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        Self::read(json).map(|(object, _)| object)
    }

    /// Out of a document of any shape.
    fn from_document(document: &serde_json::Value) -> serde_json::Result<Self> {
        Self::from_json(document.to_string().as_bytes())
    }

    /// As a document of any shape.
    fn to_document(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::from_slice(&self.to_json()?)
    }
}

/// Most objects fit without growing.
const USUAL_SIZE: usize = 1536;

/// Writes anything.
pub fn write<T: serde::Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::with_capacity(USUAL_SIZE);
    serde_json::to_writer(&mut json, value)?;
    Ok(json)
}

/// Reads and writes the objects of a kind, as part of its [`crate::Resource`].
macro_rules! object_text {
    () => {
        fn read_object(json: &[u8]) -> serde_json::Result<(crate::Object<Self>, Vec<usize>)> {
            crate::strict::from_slice(json)
        }

        fn write_object(object: &crate::Object<Self>) -> serde_json::Result<Vec<u8>> {
            crate::json_text::write(object)
        }
    };
}
