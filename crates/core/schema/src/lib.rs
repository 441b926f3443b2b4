//! Structural schemas: what the spec of a kind that users declare may hold.
//!
//! Is: the part of JSON Schema that Kubernetes calls structural, read once with limits, then used to fill in defaults, to
//! find fields that are not declared, and to say what is wrong with a document and where. Is not: all of JSON Schema.
//! References, conditionals and patterns of names are refused when a schema is read, and nothing is skipped in silence.
//!
//! Start here: [`StructuralSchema::read`].

#![warn(missing_docs)]

mod check;
mod fill;
mod formats;
mod node;
mod place;
mod prune;
mod publish;
mod read;
mod structural_schema;
mod violation;

pub use read::{MAX_BYTES, MAX_DEPTH, MAX_NODES, SchemaError};
pub use structural_schema::StructuralSchema;
pub use violation::{Problem, Violation};
