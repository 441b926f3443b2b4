//! How one value is to be walked: as a leaf, field by field, or item by item.
//!
//! The schema proposes and the value decides: a list whose items cannot be told apart (duplicate or missing
//! keys) and a value of another type than the schema's are leaves. So every walk in this crate is total.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use crate::path::PathElement;
use crate::schema::{Node, is_scalar};

/// How one value is to be walked.
pub(crate) enum Shape<'v> {
    /// One piece.
    Leaf,
    /// Field by field.
    Map(&'v Map<String, Value>),
    /// Item by item.
    List(Vec<Item<'v>>),
}

/// An item of a list and what identifies it there.
pub(crate) struct Item<'v> {
    pub(crate) element: PathElement,
    pub(crate) value: &'v Value,
}

/// Why the items of a list cannot be told apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ItemError {
    #[error("element {index} is not a map")]
    NotAMap { index: usize },
    #[error("element {index} omits key field {key:?}")]
    OmitsKey { index: usize, key: String },
    #[error("element {index} has a key field {key:?} that is not a string, number or boolean")]
    BadKey { index: usize, key: String },
    #[error("element {index} is not a string, number or boolean")]
    NotAScalar { index: usize },
    #[error("duplicate entries for key {element}")]
    Duplicate { element: PathElement },
}

/// How to walk `value`.
pub(crate) fn shape<'v>(value: &'v Value, node: &Node) -> Shape<'v> {
    match (node, value) {
        (Node::Map(_) | Node::Unknown, Value::Object(map)) => Shape::Map(map),
        (Node::Set | Node::Keyed(_), Value::Array(list)) => {
            items(list, node).map_or(Shape::Leaf, Shape::List)
        }
        _ => Shape::Leaf,
    }
}

/// The items of a set or keyed list, each identified.
pub(crate) fn items<'v>(list: &'v [Value], node: &Node) -> Result<Vec<Item<'v>>, ItemError> {
    let mut seen = BTreeSet::new();
    list.iter()
        .enumerate()
        .map(|(index, value)| {
            let element = element_of(value, node, index)?;
            if !seen.insert(element.clone()) {
                return Err(ItemError::Duplicate { element });
            }
            Ok(Item { element, value })
        })
        .collect()
}

/// What identifies one item of a set or keyed list.
pub(crate) fn element_of(value: &Value, node: &Node, index: usize) -> Result<PathElement, ItemError> {
    if !matches!(node, Node::Keyed(_)) {
        return if is_scalar(value) {
            Ok(PathElement::value(value))
        } else {
            Err(ItemError::NotAScalar { index })
        };
    }
    let map = value.as_object().ok_or(ItemError::NotAMap { index })?;
    let mut fields = Vec::with_capacity(node.keys().len());
    for key in node.keys() {
        let value = map.get(&key.name).filter(|value| !value.is_null()).or(key.default.as_ref());
        let value = value.ok_or_else(|| ItemError::OmitsKey { index, key: key.name.clone() })?;
        if !is_scalar(value) {
            return Err(ItemError::BadKey { index, key: key.name.clone() });
        }
        fields.push((key.name.as_str(), value));
    }
    Ok(PathElement::key(fields))
}

/// Whether two values mean the same. Unlike `==`, `1` and `1.0` do.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

fn is_same_number(one: &Number, other: &Number) -> bool {
    // Two integers are compared exactly; as floats, large neighbours would be equal.
    let mixed = one.is_f64() != other.is_f64();
    one == other || (mixed && one.as_f64() == other.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    fn keyed() -> Node {
        let schema = json!({"properties": {"l": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "proto"],
            "items": {"properties": {"proto": {"default": "TCP"}}},
        }}});
        Schema::from_json(&schema).unwrap().root.field("l").node.clone()
    }

    fn refused(list: &Value, node: &Node) -> String {
        items(list.as_array().unwrap(), node).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn an_item_that_omits_a_key_with_a_default_has_the_default() {
        let element = element_of(&json!({"name": "x"}), &keyed(), 0).unwrap();
        assert_eq!(element.to_string(), r#"[name="x",proto="TCP"]"#);
    }

    #[test]
    fn items_that_cannot_be_told_apart_are_refused_with_a_reason() {
        let keyed = keyed();
        assert_eq!(refused(&json!([1]), &keyed), "element 0 is not a map");
        assert_eq!(refused(&json!([{"name": "x"}, {}]), &keyed), "element 1 omits key field \"name\"");
        assert_eq!(
            refused(&json!([{"name": []}]), &keyed),
            "element 0 has a key field \"name\" that is not a string, number or boolean"
        );
        assert_eq!(
            refused(&json!([{"name": "x"}, {"name": "x", "proto": "TCP"}]), &keyed),
            r#"duplicate entries for key [name="x",proto="TCP"]"#
        );
        assert_eq!(refused(&json!(["a", "a"]), &Node::Set), r#"duplicate entries for key [="a"]"#);
        assert_eq!(refused(&json!([{}]), &Node::Set), "element 0 is not a string, number or boolean");
    }

    #[test]
    fn values_the_schema_does_not_expect_are_leaves() {
        for (value, node) in [
            (json!(1), Node::Unknown),
            (json!([]), Node::Unknown),
            (json!({}), Node::Set),
            (json!(["a", "a"]), Node::Set),
            (json!({}), Node::Scalar),
            (json!(null), keyed()),
        ] {
            assert!(matches!(shape(&value, &node), Shape::Leaf), "{value} as {node:?}");
        }
    }

    #[test]
    fn numbers_are_the_same_by_value() {
        assert!(is_same(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!is_same(&json!(1), &json!(2)));
        assert!(!is_same(&json!(u64::MAX), &json!(u64::MAX - 1)));
        assert!(!is_same(&json!({"a": 1}), &json!({"b": 1})));
    }
}
