//! Fields that a schema does not declare.

use serde_json::Value;

use crate::node::{Node, Rest};
use crate::place;

/// Where unknown fields were, as many as help.
pub(crate) struct Unknown {
    paths: Vec<String>,
    most: usize,
}

impl Unknown {
    pub(crate) fn new(most: usize) -> Self {
        Self { paths: Vec::new(), most }
    }

    pub(crate) fn into_paths(self) -> Vec<String> {
        self.paths
    }
}

/// Drops what is unknown in a value and below it.
pub(crate) fn prune(node: &Node, value: &mut Value, at: &str, unknown: &mut Unknown) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let declared = node.object.fields.get(name);
            match (declared, &node.object.rest) {
                (None, Rest::Free) => true,
                (None, Rest::Unknown) => {
                    if unknown.paths.len() < unknown.most {
                        unknown.paths.push(place::field(at, name));
                    }
                    false
                }
                (Some(below), _) => {
                    prune_below(below, value, || place::field(at, name), unknown);
                    true
                }
                (None, Rest::Each(below)) => {
                    prune_below(below, value, || place::field(at, name), unknown);
                    true
                }
            }
        }),
        Value::Array(items) => {
            if let Some(item) = &node.list.item {
                for (index, value) in items.iter_mut().enumerate() {
                    prune_below(item, value, || place::item(at, index), unknown);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The place of a value that holds nothing is never made.
fn prune_below(node: &Node, value: &mut Value, at: impl FnOnce() -> String, unknown: &mut Unknown) {
    if value.is_object() || value.is_array() {
        prune(node, value, &at(), unknown);
    }
}
