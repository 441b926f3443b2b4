//! Defaults: what a document has where it says nothing.
//!
//! A null that the schema does not allow counts as nothing said. A field that is absent gets its default, and what is inside
//! a default or an object that is there is filled in as well; an object that is absent and has no default stays absent.

use serde_json::Value;

use crate::node::{Node, Rest};

/// Fills in a value and what is below it.
pub(crate) fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| {
                !value.is_null() || node.object.fields.get(name).is_none_or(|field| field.nullable)
            });
            for (name, field) in &node.object.fields {
                if let Some(default) = &field.default
                    && !map.contains_key(name)
                {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(value) = map.get_mut(name) {
                    fill(field, value);
                }
            }
            if let Rest::Each(each) = &node.object.rest {
                let rest = map.iter_mut().filter(|(name, _)| !node.object.fields.contains_key(*name));
                rest.for_each(|(_, value)| fill(each, value));
            }
        }
        Value::Array(items) => {
            if let Some(item) = &node.list.item {
                for value in items {
                    fill(item, value);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
