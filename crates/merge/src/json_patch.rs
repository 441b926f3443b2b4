//! JSON patch (RFC 6902), one operation at a time and within bounds.
//!
//! The `json-patch` crate does the operations; this module keeps the books. A `copy` can double a document
//! and a `move` can deepen it, so each operation is weighed before it runs: the document never grows beyond
//! the limit in between, and the bytes that copies and deepening moves handle are bounded in total.

use ::json_patch::jsonptr::Pointer;
use ::json_patch::{PatchErrorKind, PatchOperation};
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
    let mut ledger = Ledger { index: 0, bytes: byte_len(target), work: 0, max_bytes };
    for (index, operation) in operations.iter().enumerate() {
        // One level more than a document: the operation around its value.
        check_depth(operation, MAX_DOCUMENT_DEPTH + 1)?;
        let operation = PatchOperation::deserialize(operation)
            .map_err(|error| PatchError::MalformedOperation { index, reason: error.to_string() })?;
        ledger.index = index;
        ledger.admit(&document, &operation)?;
        ::json_patch::patch_unsafe(&mut document, std::slice::from_ref(&operation))
            .map_err(|error| refusal(index, &operation, &error.kind))?;
    }
    Ok(document)
}

fn refusal(index: usize, operation: &PatchOperation, kind: &PatchErrorKind) -> PatchError {
    let reason = kind.to_string();
    let path = match (operation, kind) {
        (PatchOperation::Move(moved), PatchErrorKind::InvalidFromPointer) => moved.from.to_string(),
        (PatchOperation::Copy(copy), PatchErrorKind::InvalidFromPointer) => copy.from.to_string(),
        _ => operation.path().to_string(),
    };
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
    /// The operation being weighed.
    index: usize,
    /// The size of the document, give or take a comma per operation.
    bytes: usize,
    /// What copies and deepening moves handled.
    work: usize,
    max_bytes: usize,
}

impl Ledger {
    /// Weighs an operation before it runs. An operation that will fail on its own is admitted.
    fn admit(&mut self, document: &Value, operation: &PatchOperation) -> Result<(), PatchError> {
        let leaving = overwritten(document, operation).map(byte_len);
        match operation {
            PatchOperation::Test(_) => Ok(()),
            PatchOperation::Remove(remove) => {
                let leaving = leaving.unwrap_or(0).saturating_add(field_bytes(document, &remove.path));
                self.bytes = self.bytes.saturating_sub(leaving);
                Ok(())
            }
            PatchOperation::Add(add) => {
                check_depth_at(&add.path, &add.value)?;
                self.arrive(document, &add.path, byte_len(&add.value), leaving)
            }
            PatchOperation::Replace(replace) => {
                check_depth_at(&replace.path, &replace.value)?;
                self.arrive(document, &replace.path, byte_len(&replace.value), leaving)
            }
            PatchOperation::Copy(copy) => {
                let Some(source) = document.pointer(copy.from.as_str()) else { return Ok(()) };
                let bytes = byte_len(source);
                self.charge(bytes)?;
                check_depth_at(&copy.path, source)?;
                self.arrive(document, &copy.path, bytes, leaving)
            }
            PatchOperation::Move(moved) => self.admit_move(document, &moved.from, &moved.path, leaving),
        }
    }

    fn admit_move(
        &mut self,
        document: &Value,
        from: &Pointer,
        path: &Pointer,
        leaving: Option<usize>,
    ) -> Result<(), PatchError> {
        let Some(source) = document.pointer(from.as_str()) else { return Ok(()) };
        if path.tokens().count() > from.tokens().count() {
            self.charge(byte_len(source))?;
            check_depth_at(path, source)?;
        }
        if from.starts_with(path) {
            // Moved over what it is part of, it leaves and arrives again.
            let bytes = byte_len(source);
            self.charge(bytes)?;
            return self.arrive(document, path, bytes, leaving);
        }
        self.bytes = self.bytes.saturating_sub(field_bytes(document, from));
        // Taken out of a list, it shifts what `path` means: what is there now may not be what it overwrites.
        let leaving = leaving.filter(|_| !parent(document, from).is_some_and(Value::is_array));
        self.arrive(document, path, 0, leaving)
    }

    /// A value arrives at `path`, in place of one that leaves or with a field of its own.
    fn arrive(
        &mut self,
        document: &Value,
        path: &Pointer,
        bytes: usize,
        leaving: Option<usize>,
    ) -> Result<(), PatchError> {
        let field = if leaving.is_some() { 0 } else { field_bytes(document, path) };
        self.bytes = self.bytes.saturating_sub(leaving.unwrap_or(0));
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(field);
        let commas = self.index.saturating_add(1);
        if self.bytes > self.max_bytes.saturating_add(commas) {
            return Err(PatchError::TooLarge { max_bytes: self.max_bytes });
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), PatchError> {
        let max_bytes = self.max_bytes.saturating_mul(WORK_FACTOR);
        self.work = self.work.saturating_add(bytes);
        if self.work > max_bytes {
            return Err(PatchError::TooMuchWork { index: self.index, max_bytes });
        }
        Ok(())
    }
}

/// The value an operation takes out of the document.
fn overwritten<'d>(document: &'d Value, operation: &PatchOperation) -> Option<&'d Value> {
    let path = operation.path();
    match operation {
        PatchOperation::Test(_) => None,
        PatchOperation::Remove(_) | PatchOperation::Replace(_) => document.pointer(path.as_str()),
        // Into a list they insert.
        _ if parent(document, path).is_some_and(Value::is_array) => None,
        _ => document.pointer(path.as_str()),
    }
}

/// What a field or item takes beside its value: a comma, and in a map its name and a colon.
fn field_bytes(document: &Value, path: &Pointer) -> usize {
    match (parent(document, path), path.last()) {
        (Some(Value::Object(_)), Some(name)) => byte_len(&Value::from(name.decoded().as_ref())) + 2,
        _ => 1,
    }
}

fn parent<'d>(document: &'d Value, path: &Pointer) -> Option<&'d Value> {
    path.parent().and_then(|parent| document.pointer(parent.as_str()))
}

fn check_depth_at(path: &Pointer, value: &Value) -> Result<(), PatchError> {
    let left = MAX_DOCUMENT_DEPTH.saturating_sub(path.tokens().count());
    Ok(check_depth(value, left)?)
}
