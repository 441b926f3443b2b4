//! A schema that was read, and what can be done with it.

use serde_json::Value;

use crate::node::Node;
use crate::publish::published;
use crate::read::{Reader, SchemaError};
use crate::violation::Violation;
use crate::{check, fill, prune};

/// Most violations and most unknown fields that are told of one document: enough to help.
const MOST: usize = 64;

/// What a document may hold.
#[derive(Debug, Clone)]
pub struct StructuralSchema {
    root: Node,
    published: Value,
}

impl StructuralSchema {
    /// Reads a schema that describes an object.
    pub fn read(schema: &Value) -> Result<Self, SchemaError> {
        let root = Reader::read(schema)?;
        Ok(Self { root, published: published(schema) })
    }

    /// The schema as clients are shown it: one type per node, nothing but what they know.
    pub fn published(&self) -> &Value {
        &self.published
    }

    /// Drops nulls where there is something to have instead, and fills in what is left open.
    pub fn fill(&self, document: &mut Value) {
        fill::fill(&self.root, document);
    }

    /// Drops fields that are not declared and returns where they were; `at` is where the document stands.
    pub fn prune(&self, document: &mut Value, at: &str) -> Vec<String> {
        let mut unknown = prune::Unknown::new(MOST);
        prune::prune(&self.root, document, at, &mut unknown);
        unknown.into_paths()
    }

    /// Says what is wrong with a document; `at` is where it stands.
    pub fn check(&self, document: &Value, at: &str) -> Vec<Violation> {
        let mut found = check::Found::new(MOST);
        check::check(&self.root, document, at, &mut found);
        found.into_violations()
    }
}
