//! The FieldsV1 spelling of a [`FieldSet`], as `metadata.managedFields` stores it.

use serde_json::{Map, Value};

use crate::depth::MAX_DEPTH;
use crate::field_set::FieldSet;
use crate::path::{PathElement, PathElementError};

/// FieldsV1 that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsV1Error {
    /// A node is something other than a JSON object.
    #[error("{path:?} is not a JSON object")]
    NotAnObject {
        /// Where, in the human spelling.
        path: String,
    },
    /// `.` holds something other than `{}`.
    #[error("\".\" under {path:?} is not {{}}")]
    BadSelf {
        /// Where, in the human spelling.
        path: String,
    },
    /// A step of a path cannot be read.
    #[error(transparent)]
    BadElement(#[from] PathElementError),
    /// The paths are longer than any object may be deep.
    #[error("paths are longer than {MAX_DEPTH} steps")]
    TooDeep,
}

impl FieldSet {
    /// Reads FieldsV1.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsV1Error> {
        let mut set = read_children(fields, &mut Vec::new())?;
        set.forget_member();
        Ok(set)
    }

    /// Writes FieldsV1.
    pub fn to_fields_v1(&self) -> Value {
        let mut out = Map::new();
        for (element, child) in self.children() {
            out.insert(element.to_fields_v1(), child.to_fields_v1());
        }
        if self.is_member() && !out.is_empty() {
            out.insert(".".to_owned(), Value::Object(Map::new()));
        }
        Value::Object(out)
    }
}

fn read_children(fields: &Value, path: &mut Vec<PathElement>) -> Result<FieldSet, FieldsV1Error> {
    let map = fields.as_object().ok_or_else(|| FieldsV1Error::NotAnObject { path: shown(path) })?;
    if path.len() > MAX_DEPTH {
        return Err(FieldsV1Error::TooDeep);
    }
    let mut set = if map.is_empty() { FieldSet::leaf() } else { FieldSet::default() };
    for (key, child) in map {
        if key == "." {
            if child.as_object().is_none_or(|map| !map.is_empty()) {
                return Err(FieldsV1Error::BadSelf { path: shown(path) });
            }
            set = set.into_member();
            continue;
        }
        path.push(PathElement::from_fields_v1(key)?);
        let mut subtree = read_children(child, path)?;
        if let Some(element) = path.pop() {
            // Two spellings of one key (`k:{"a":1}`, `k:{ "a":1}`) name the same field.
            if let Some(known) = set.detach(&element) {
                subtree.absorb(&known);
            }
            set.attach(element, subtree);
        }
    }
    Ok(set)
}

fn shown(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_v1_round_trips() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}, "f:s": {"v:1": {}}},
        });
        assert_eq!(FieldSet::from_fields_v1(&fields).unwrap().to_fields_v1(), fields);
    }

    #[test]
    fn no_fields_is_an_empty_object() {
        assert!(FieldSet::from_fields_v1(&json!({})).unwrap().is_empty());
        assert!(FieldSet::from_fields_v1(&json!({".": {}})).unwrap().is_empty());
        assert_eq!(FieldSet::default().to_fields_v1(), json!({}));
    }

    #[test]
    fn two_spellings_of_one_key_are_one_field() {
        let set =
            FieldSet::from_fields_v1(&json!({"k:{\"a\":1}": {"f:x": {}}, "k:{ \"a\": 1}": {"f:y": {}}}));
        assert_eq!(set.unwrap().paths(), ["[a=1].x", "[a=1].y"]);
    }

    #[test]
    fn malformed_nodes_are_refused_with_their_place() {
        let refused = |fields: Value| FieldSet::from_fields_v1(&fields).unwrap_err();
        assert_eq!(refused(json!([])), FieldsV1Error::NotAnObject { path: String::new() });
        assert_eq!(refused(json!({"f:a": {"f:b": 1}})), FieldsV1Error::NotAnObject { path: ".a.b".into() });
        assert_eq!(refused(json!({"f:a": {".": {"f:b": {}}}})), FieldsV1Error::BadSelf { path: ".a".into() });
        assert_eq!(
            refused(json!({"a": {}})),
            FieldsV1Error::BadElement(PathElementError::UnknownPrefix("a".into()))
        );
    }

    #[test]
    fn paths_longer_than_any_object_is_deep_are_refused() {
        let deep = |steps: usize| (0..steps).fold(json!({}), |inner, _| json!({ "f:a": inner }));
        assert!(FieldSet::from_fields_v1(&deep(MAX_DEPTH)).is_ok());
        assert_eq!(FieldSet::from_fields_v1(&deep(MAX_DEPTH + 1)), Err(FieldsV1Error::TooDeep));
    }
}
