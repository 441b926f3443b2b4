//! JSON patch (RFC 6902), one operation at a time and within bounds.
//!
//! The `json-patch` crate does the operations; this module keeps the books. A `copy` can double a document
//! and a `move` can deepen it, so each operation is weighed before it runs: the document never grows beyond
//! the limit in between, and the bytes that copies and deepening moves handle are bounded in total.

use ::json_patch::PatchOperation;
use ::json_patch::jsonptr::Pointer;
use serde::Deserialize;
use serde_json::Value;

use crate::depth::{MAX_DOCUMENT_DEPTH, check_depth};
use crate::patch::PatchError;
use crate::size::byte_len;

/// The most operations a patch may have.
pub(crate) const MAX_OPERATIONS: usize = 10_000;

/// How many times the size limit all copies and deepening moves of one patch may handle together.
const WORK_FACTOR: usize = 16;

/// Runs the operations on a copy of `target`.
pub(crate) fn run(target: &Value, patch: &Value, max_bytes: usize) -> Result<Value, PatchError> {
    let operations = patch.as_array().ok_or(PatchError::Malformed("a JSON patch is a list of operations"))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations { found: operations.len() });
    }
    let mut document = target.clone();
    let mut ledger = Ledger { bytes: byte_len(target), work: 0, max_bytes };
    for (index, operation) in operations.iter().enumerate() {
        // One level more than a document: the operation around its value.
        check_depth(operation, MAX_DOCUMENT_DEPTH + 1)?;
        let operation = PatchOperation::deserialize(operation)
            .map_err(|error| PatchError::MalformedOperation { index, reason: error.to_string() })?;
        ledger.admit(&document, &operation, index)?;
        ::json_patch::patch_unsafe(&mut document, std::slice::from_ref(&operation))
            .map_err(|error| refusal(index, &operation, &error.kind.to_string()))?;
    }
    Ok(document)
}

fn refusal(index: usize, operation: &PatchOperation, reason: &str) -> PatchError {
    let (path, reason) = (operation.path().to_string(), reason.to_owned());
    match operation {
        PatchOperation::Test(_) => PatchError::TestFailed { index, path, reason },
        _ => PatchError::OperationFailed { index, operation: name(operation), path, reason },
    }
}

fn name(operation: &PatchOperation) -> &'static str {
    match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    }
}

/// What the operations so far came to.
struct Ledger {
    /// The size of the document: never less than it is, and exact again whenever it matters.
    bytes: usize,
    /// What copies and deepening moves handled.
    work: usize,
    max_bytes: usize,
}

impl Ledger {
    /// Weighs an operation before it runs. An operation that will fail on its own is admitted.
    fn admit(
        &mut self,
        document: &Value,
        operation: &PatchOperation,
        index: usize,
    ) -> Result<(), PatchError> {
        let leaving = overwritten(document, operation).map(byte_len);
        match operation {
            PatchOperation::Test(_) => {}
            PatchOperation::Remove(_) => self.bytes = self.bytes.saturating_sub(leaving.unwrap_or(0)),
            PatchOperation::Add(add) => {
                check_depth_at(&add.path, &add.value)?;
                self.grow(document, &add.path, byte_len(&add.value), leaving, index)?;
            }
            PatchOperation::Replace(replace) => {
                check_depth_at(&replace.path, &replace.value)?;
                self.grow(document, &replace.path, byte_len(&replace.value), leaving, index)?;
            }
            PatchOperation::Copy(copy) => {
                let Some(source) = document.pointer(copy.from.as_str()) else { return Ok(()) };
                let arriving = byte_len(source);
                self.charge(arriving, index)?;
                check_depth_at(&copy.path, source)?;
                self.grow(document, &copy.path, arriving, leaving, index)?;
            }
            PatchOperation::Move(moved) => {
                let Some(source) = document.pointer(moved.from.as_str()) else { return Ok(()) };
                let deepens = moved.path.tokens().count() > moved.from.tokens().count();
                // Moved over what it is part of, it leaves and arrives again.
                let returns = moved.from.starts_with(&moved.path);
                let bytes = if deepens || returns { byte_len(source) } else { 0 };
                self.charge(bytes, index)?;
                if deepens {
                    check_depth_at(&moved.path, source)?;
                }
                self.grow(document, &moved.path, if returns { bytes } else { 0 }, leaving, index)?;
            }
        }
        Ok(())
    }

    fn grow(
        &mut self,
        document: &Value,
        path: &Pointer,
        arriving: usize,
        leaving: Option<usize>,
        index: usize,
    ) -> Result<(), PatchError> {
        // A new field brings its name, a colon and a comma.
        let field = match (leaving, path.last()) {
            (None, Some(name)) => byte_len(&Value::from(name.decoded().as_ref())) + 2,
            _ => 0,
        };
        let leaving = leaving.unwrap_or(0);
        let arriving = arriving.saturating_add(field);
        let after = |bytes: usize| bytes.saturating_sub(leaving).saturating_add(arriving);
        if after(self.bytes) > self.max_bytes {
            self.charge(self.bytes, index)?;
            self.bytes = byte_len(document);
        }
        self.bytes = after(self.bytes);
        if self.bytes > self.max_bytes.saturating_add(field) {
            return Err(PatchError::TooLarge { max_bytes: self.max_bytes });
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize, index: usize) -> Result<(), PatchError> {
        let max_bytes = self.max_bytes.saturating_mul(WORK_FACTOR);
        self.work = self.work.saturating_add(bytes);
        if self.work > max_bytes { Err(PatchError::TooMuchWork { index, max_bytes }) } else { Ok(()) }
    }
}

/// The value an operation takes out of the document.
fn overwritten<'d>(document: &'d Value, operation: &PatchOperation) -> Option<&'d Value> {
    let path = match operation {
        PatchOperation::Remove(_) | PatchOperation::Replace(_) => operation.path(),
        PatchOperation::Add(_) | PatchOperation::Move(_) | PatchOperation::Copy(_) => {
            let path = operation.path();
            let parent = path.parent().and_then(|parent| document.pointer(parent.as_str()));
            // Into a list they insert.
            if parent.is_some_and(Value::is_array) {
                return None;
            }
            path
        }
        PatchOperation::Test(_) => return None,
    };
    document.pointer(path.as_str())
}

fn check_depth_at(path: &Pointer, value: &Value) -> Result<(), PatchError> {
    let left = MAX_DOCUMENT_DEPTH.saturating_sub(path.tokens().count());
    Ok(check_depth(value, left)?)
}
