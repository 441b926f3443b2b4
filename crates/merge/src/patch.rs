//! The three patch formats of the API: JSON patch, JSON merge patch and strategic merge patch.
//!
//! A patch is a function from one document to another: nothing here knows about ownership (see `track.rs`) or
//! validates the result. What bounds it: documents nest at most so deep, a JSON patch has at most so many
//! operations, and no result is larger than the caller allows, nor grows beyond that on the way.

use serde_json::Value;

use crate::depth::{MAX_DOCUMENT_DEPTH, TooDeep, check_depth};
use crate::json_patch::{self, MAX_OPERATIONS};
use crate::schema::Schema;
use crate::size::byte_len;
use crate::strategic::merge_strategically;

/// The format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902, `application/json-patch+json`.
    Json,
    /// RFC 7396, `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`: lists merge as the schema says.
    Strategic,
}

/// Why a patch was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The document or the patch nests too deep, or the result would.
    #[error(transparent)]
    TooDeep(#[from] TooDeep),
    /// The result would be too large.
    #[error("the patched object would be larger than {max_bytes} bytes")]
    TooLarge {
        /// The most the caller allows.
        max_bytes: usize,
    },
    /// The operations copy and move more than any honest patch needs to.
    #[error("the patch copies or moves too much: at operation {index}, more than {max_bytes} bytes in total")]
    TooMuchWork {
        /// The operation, counted from zero.
        index: usize,
        /// The most that may be copied and moved.
        max_bytes: usize,
    },
    /// A JSON patch has too many operations.
    #[error("the patch has {found} operations, at most {MAX_OPERATIONS} are allowed")]
    TooManyOperations {
        /// How many it has.
        found: usize,
    },
    /// The patch is not of the form its kind asks for.
    #[error("{0}")]
    Malformed(&'static str),
    /// An operation of a JSON patch cannot be read.
    #[error("operation {index} is malformed: {reason}")]
    MalformedOperation {
        /// The operation, counted from zero.
        index: usize,
        /// Why.
        reason: String,
    },
    /// A `test` of a JSON patch found another value, or none.
    #[error("operation {index} (test) failed at path {path:?}: {reason}")]
    TestFailed {
        /// The operation, counted from zero.
        index: usize,
        /// The path it tested.
        path: String,
        /// Why.
        reason: String,
    },
    /// Another operation of a JSON patch cannot be done.
    #[error("operation {index} ({operation}) failed at path {path:?}: {reason}")]
    OperationFailed {
        /// The operation, counted from zero.
        index: usize,
        /// Its name.
        operation: &'static str,
        /// The path it was to change.
        path: String,
        /// Why.
        reason: String,
    },
    /// A strategic merge patch cannot be merged.
    #[error("{path}: {reason}")]
    Invalid {
        /// Where.
        path: String,
        /// Why.
        reason: String,
    },
}

/// Patches `target`; the result takes at most `max_bytes` as JSON.
pub fn patch(
    kind: PatchKind,
    target: &Value,
    patch: &Value,
    schema: &Schema,
    max_bytes: usize,
) -> Result<Value, PatchError> {
    check_depth(target, MAX_DOCUMENT_DEPTH)?;
    if kind != PatchKind::Json {
        check_depth(patch, MAX_DOCUMENT_DEPTH)?;
    }
    let patched = match kind {
        PatchKind::Json => json_patch::run(target, patch, max_bytes)?,
        PatchKind::Merge => merge(target, patch),
        PatchKind::Strategic => merge_strategically(target, patch, &schema.root)?,
    };
    if byte_len(&patched) > max_bytes {
        return Err(PatchError::TooLarge { max_bytes });
    }
    Ok(patched)
}

fn merge(target: &Value, patch: &Value) -> Value {
    let mut patched = target.clone();
    ::json_patch::merge(&mut patched, patch);
    patched
}
