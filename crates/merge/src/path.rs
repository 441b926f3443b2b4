//! One step of the path to a field, in its two spellings.
//!
//! FieldsV1 (`f:name`, `k:{"name":"x"}`, `v:"x"`, `i:3`) is what objects store; the human spelling (`.name`,
//! `[name="x"]`, `[="x"]`, `[3]`) is what conflicts show. Scalars inside a step are kept as JSON text, which
//! makes steps ordered and comparable.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde_json::{Map, Value};

/// One step of a path: the name of a field, or what identifies an item of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of a map, by name.
    Field(String),
    /// An item of a keyed list, by its key fields; the values are JSON text.
    Key(BTreeMap<String, String>),
    /// An item of a set, by its value as JSON text.
    Value(String),
    /// An item of a list, by position.
    Index(i64),
}

/// A FieldsV1 step that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathElementError {
    /// The step has none of the prefixes `f:`, `k:`, `v:`, `i:`.
    #[error("{0:?} has none of the prefixes f:, k:, v:, i:")]
    UnknownPrefix(String),
    /// What follows `k:` is not a JSON object with at least one field.
    #[error("{0:?} does not name key fields as a JSON object")]
    BadKey(String),
    /// What follows `v:` is not JSON.
    #[error("{0:?} does not hold a JSON value")]
    BadValue(String),
    /// What follows `i:` is not an integer.
    #[error("{0:?} does not hold an integer")]
    BadIndex(String),
}

impl PathElement {
    /// The field called `name`.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// The item of a keyed list whose key fields have these values.
    pub fn key<'a>(fields: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        Self::Key(fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect())
    }

    /// The item of a set with this value.
    pub fn value(value: &Value) -> Self {
        Self::Value(value.to_string())
    }

    /// Reads the FieldsV1 spelling.
    pub fn from_fields_v1(text: &str) -> Result<Self, PathElementError> {
        let (prefix, rest) =
            text.split_once(':').ok_or_else(|| PathElementError::UnknownPrefix(text.to_owned()))?;
        match prefix {
            "f" => Ok(Self::field(rest)),
            "k" => match serde_json::from_str::<Map<String, Value>>(rest) {
                Ok(map) if !map.is_empty() => Ok(Self::key(map.iter().map(|(k, v)| (k.as_str(), v)))),
                _ => Err(PathElementError::BadKey(text.to_owned())),
            },
            "v" => serde_json::from_str::<Value>(rest)
                .map(|value| Self::value(&value))
                .map_err(|_| PathElementError::BadValue(text.to_owned())),
            "i" => rest.parse().map(Self::Index).map_err(|_| PathElementError::BadIndex(text.to_owned())),
            _ => Err(PathElementError::UnknownPrefix(text.to_owned())),
        }
    }

    /// Writes the FieldsV1 spelling.
    pub fn to_fields_v1(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl Display for PathElement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_stored_and_a_shown_spelling() {
        for (stored, shown) in [
            ("f:image", ".image"),
            (r#"k:{"name":"x","port":80}"#, r#"[name="x",port=80]"#),
            (r#"v:"x""#, r#"[="x"]"#),
            ("i:3", "[3]"),
            ("f:a:b", ".a:b"),
        ] {
            let element = PathElement::from_fields_v1(stored).unwrap();
            assert_eq!(element.to_fields_v1(), stored);
            assert_eq!(element.to_string(), shown);
        }
    }

    #[test]
    fn key_order_and_spacing_do_not_matter() {
        let one = PathElement::from_fields_v1(r#"k:{"b":1,"a":"x"}"#).unwrap();
        let other = PathElement::from_fields_v1(r#"k:{ "a": "x", "b": 1 }"#).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn malformed_steps_are_refused_with_a_reason() {
        let refused = |text: &str| PathElement::from_fields_v1(text).unwrap_err();
        assert_eq!(refused("name"), PathElementError::UnknownPrefix("name".into()));
        assert_eq!(refused("x:name"), PathElementError::UnknownPrefix("x:name".into()));
        assert_eq!(refused("k:{}"), PathElementError::BadKey("k:{}".into()));
        assert_eq!(refused("k:[1]"), PathElementError::BadKey("k:[1]".into()));
        assert_eq!(refused("v:x"), PathElementError::BadValue("v:x".into()));
        assert_eq!(refused("i:1.5"), PathElementError::BadIndex("i:1.5".into()));
    }
}
