//! How deep a value may nest before it is refused.
//!
//! Every walk in this crate recurses, so every entry point checks depth first. The limits fit together: a
//! field nested `n` deep is owned by a path that nests `n + 5` deep inside `metadata.managedFields`, and
//! `serde_json` reads back at most 127 levels. An object within [`MAX_DEPTH`] can therefore always be stored
//! with its owners and read again.

use serde_json::Value;

/// The deepest an object's own fields may nest (`metadata.managedFields` not counted).
pub(crate) const MAX_DEPTH: usize = 120;

/// The deepest a whole document may nest, `metadata.managedFields` and patches included.
pub(crate) const MAX_DOCUMENT_DEPTH: usize = MAX_DEPTH + 7;

/// A value nests too deep to be walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nested too deep: at most {MAX_DEPTH} levels are allowed")]
pub struct TooDeep;

/// Refuses a value with more than `limit` maps and lists inside each other.
pub(crate) fn check_depth(value: &Value, limit: usize) -> Result<(), TooDeep> {
    let Some(below) = limit.checked_sub(1) else {
        return if value.is_object() || value.is_array() { Err(TooDeep) } else { Ok(()) };
    };
    match value {
        Value::Object(map) => map.values().try_for_each(|child| check_depth(child, below)),
        Value::Array(list) => list.iter().try_for_each(|child| check_depth(child, below)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn depth_counts_containers_inside_each_other() {
        let three = json!({"a": [{}]});
        assert_eq!(check_depth(&three, 3), Ok(()));
        assert_eq!(check_depth(&three, 2), Err(TooDeep));
    }

    #[test]
    fn scalars_have_no_depth() {
        assert_eq!(check_depth(&json!("x"), 0), Ok(()));
        assert_eq!(check_depth(&json!({}), 0), Err(TooDeep));
    }
}
