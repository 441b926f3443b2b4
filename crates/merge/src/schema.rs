//! What a JSON schema says about merging, and nothing else.
//!
//! A [`Schema`] is built once per kind from an OpenAPI v3 / JSON schema with every `$ref` already inlined. It
//! does not validate values: types, enums, patterns and defaults are somebody else's; only the shape that
//! decides how two writers share a field is kept. Rules:
//!
//! - lists are atomic unless `x-kubernetes-list-type` says `set` or `map`;
//! - maps are granular unless `x-kubernetes-map-type` says `atomic`;
//! - what the schema does not describe is free-form: maps are granular, lists atomic;
//! - `apiVersion`, `kind` and `metadata` are the same for every kind and come from here, whatever the schema
//!   says.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::depth::MAX_DEPTH;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";

/// The fields of `metadata` that the server sets and nobody owns.
pub(crate) const SYSTEM_METADATA: [&str; 12] = [
    "clusterName",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// How the fields of one kind merge.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    pub(crate) root: Node,
}

/// How one value merges.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// Written by the server; never owned, compared or pruned.
    Untracked,
    /// A string, number or boolean.
    Scalar,
    /// A map or list that is replaced whole.
    Atomic,
    /// A map whose fields merge one by one.
    Map(MapNode),
    /// A list of scalars that merge one by one.
    Set,
    /// A list of maps that merge by their key fields.
    Keyed(KeyedNode),
    /// Free-form: maps merge field by field, everything else is replaced whole.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MapNode {
    fields: BTreeMap<String, Node>,
    rest: Box<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyedNode {
    pub(crate) keys: Vec<KeyField>,
    item: Box<Node>,
}

/// A key field of a keyed list, with the value an item that omits it has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyField {
    pub(crate) name: String,
    pub(crate) default: Option<Value>,
}

/// How a map knows one of its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'s> {
    pub(crate) node: &'s Node,
    /// Whether the schema names the field; otherwise it is an entry somebody put there, and so owned itself.
    pub(crate) named: bool,
}

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema describes something other than an object.
    #[error("the schema does not describe an object")]
    NotAnObject,
    /// A merge extension has a value it cannot have.
    #[error("{extension} cannot be {value}")]
    BadExtension {
        /// The name of the extension.
        extension: &'static str,
        /// What was found, as JSON.
        value: String,
    },
    /// The schema nests too deep.
    #[error("the schema nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

static UNKNOWN: Node = Node::Unknown;
static SCALAR: Node = Node::Scalar;

impl Schema {
    /// Builds the merge schema of a kind from its JSON schema.
    pub fn from_json(schema: &Value) -> Result<Self, SchemaError> {
        let map = match read_node(schema, MAX_DEPTH)? {
            Node::Map(map) => map,
            Node::Unknown => MapNode::free_form(),
            _ => return Err(SchemaError::NotAnObject),
        };
        Ok(Self::with_object_fields(map))
    }

    /// The schema of a kind nothing is known about: only `apiVersion`, `kind` and `metadata` have a shape.
    pub fn free_form() -> Self {
        Self::with_object_fields(MapNode::free_form())
    }

    fn with_object_fields(mut map: MapNode) -> Self {
        map.fields.insert("apiVersion".to_owned(), Node::Untracked);
        map.fields.insert("kind".to_owned(), Node::Untracked);
        map.fields.insert("metadata".to_owned(), metadata());
        Self { root: Node::Map(map) }
    }
}

impl Node {
    /// The field called `name`, if this value is a map.
    pub(crate) fn field(&self, name: &str) -> Field<'_> {
        match self {
            Self::Map(map) => match map.fields.get(name) {
                Some(node) => Field { node, named: true },
                None => Field { node: &map.rest, named: false },
            },
            _ => Field { node: &UNKNOWN, named: false },
        }
    }

    /// The items, if this value is a list.
    pub(crate) fn item(&self) -> &Self {
        match self {
            Self::Keyed(list) => &list.item,
            Self::Set => &SCALAR,
            _ => &UNKNOWN,
        }
    }

    /// The key fields of the items, if this value is a keyed list.
    pub(crate) fn keys(&self) -> &[KeyField] {
        match self {
            Self::Keyed(list) => &list.keys,
            _ => &[],
        }
    }
}

impl MapNode {
    fn free_form() -> Self {
        Self { fields: BTreeMap::new(), rest: Box::new(Node::Unknown) }
    }

    fn of(rest: Node) -> Self {
        Self { fields: BTreeMap::new(), rest: Box::new(rest) }
    }
}

fn metadata() -> Node {
    let strings = || Node::Map(MapNode::of(Node::Scalar));
    let uid = KeyField { name: "uid".to_owned(), default: None };
    let owners = KeyedNode { keys: vec![uid], item: Box::new(Node::Atomic) };
    let mut map = MapNode::of(Node::Atomic);
    map.fields.insert("labels".to_owned(), strings());
    map.fields.insert("annotations".to_owned(), strings());
    map.fields.insert("ownerReferences".to_owned(), Node::Keyed(owners));
    map.fields.insert("finalizers".to_owned(), Node::Set);
    map.fields.extend(SYSTEM_METADATA.map(|name| (name.to_owned(), Node::Untracked)));
    Node::Map(map)
}

fn read_node(schema: &Value, levels: usize) -> Result<Node, SchemaError> {
    let levels = levels.checked_sub(1).ok_or(SchemaError::TooDeep)?;
    let Some(schema) = schema.as_object() else { return Ok(Node::Unknown) };
    if let Some(branch) = only_branch(schema) {
        return read_node(branch, levels);
    }
    match type_of(schema) {
        Some("object") => read_map(schema, levels),
        Some("array") => read_list(schema, levels),
        Some("string" | "number" | "integer" | "boolean") => Ok(Node::Scalar),
        _ if schema.contains_key("properties") || schema.contains_key("additionalProperties") => {
            read_map(schema, levels)
        }
        _ => Ok(Node::Unknown),
    }
}

/// The one real alternative of a schema that only wraps another (`anyOf: [{…}, {type: null}]`).
fn only_branch(schema: &Map<String, Value>) -> Option<&Value> {
    if schema.contains_key("type") || schema.contains_key("properties") {
        return None;
    }
    ["anyOf", "oneOf", "allOf"].into_iter().find_map(|wrapper| {
        let branches = schema.get(wrapper)?.as_array()?;
        let mut real = branches.iter().filter(|branch| branch.get("type") != Some(&Value::from("null")));
        real.next().filter(|_| real.next().is_none())
    })
}

fn type_of(schema: &Map<String, Value>) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut real = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            real.next().filter(|_| real.next().is_none())
        }
        _ => None,
    }
}

fn read_map(schema: &Map<String, Value>, levels: usize) -> Result<Node, SchemaError> {
    match extension(schema, MAP_TYPE) {
        Ok(Some("atomic")) => return Ok(Node::Atomic),
        Ok(None | Some("granular")) => {}
        Ok(Some(other)) => return Err(bad_extension(MAP_TYPE, &Value::from(other))),
        Err(error) => return Err(error),
    }
    let mut map = match schema.get("additionalProperties") {
        Some(rest @ Value::Object(_)) => MapNode::of(read_node(rest, levels)?),
        _ => MapNode::free_form(),
    };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            map.fields.insert(name.clone(), read_node(property, levels)?);
        }
    }
    Ok(Node::Map(map))
}

fn read_list(schema: &Map<String, Value>, levels: usize) -> Result<Node, SchemaError> {
    match extension(schema, LIST_TYPE)? {
        None | Some("atomic") => Ok(Node::Atomic),
        Some("set") => Ok(Node::Set),
        Some("map") => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            Ok(Node::Keyed(KeyedNode {
                keys: read_keys(schema, items)?,
                item: Box::new(read_node(items, levels)?),
            }))
        }
        Some(other) => Err(bad_extension(LIST_TYPE, &Value::from(other))),
    }
}

fn read_keys(schema: &Map<String, Value>, items: &Value) -> Result<Vec<KeyField>, SchemaError> {
    let keys = schema.get(LIST_MAP_KEYS).unwrap_or(&Value::Null);
    let names = keys.as_array().filter(|names| !names.is_empty());
    let names = names.ok_or_else(|| bad_extension(LIST_MAP_KEYS, keys))?;
    names
        .iter()
        .map(|name| {
            let name = name.as_str().ok_or_else(|| bad_extension(LIST_MAP_KEYS, keys))?;
            let property = items.get("properties").and_then(|properties| properties.get(name));
            let default = property.and_then(|property| property.get("default"));
            let default = default.filter(|value| is_scalar(value)).cloned();
            Ok(KeyField { name: name.to_owned(), default })
        })
        .collect()
}

fn extension<'a>(schema: &'a Map<String, Value>, name: &'static str) -> Result<Option<&'a str>, SchemaError> {
    match schema.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(bad_extension(name, other)),
    }
}

fn bad_extension(extension: &'static str, value: &Value) -> SchemaError {
    SchemaError::BadExtension { extension, value: value.to_string() }
}

/// Whether a value can identify an item of a list.
pub(crate) fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(schema: &Value) -> Node {
        let schema = Schema::from_json(&json!({"type": "object", "properties": {"spec": schema}})).unwrap();
        schema.root.field("spec").node.clone()
    }

    #[test]
    fn lists_without_a_list_type_are_atomic() {
        assert_eq!(spec(&json!({"type": "array", "items": {"type": "object"}})), Node::Atomic);
        assert_eq!(spec(&json!({"type": "array", LIST_TYPE: "atomic"})), Node::Atomic);
    }

    #[test]
    fn maps_are_granular_unless_they_say_atomic() {
        assert!(matches!(spec(&json!({"type": "object"})), Node::Map(_)));
        assert!(matches!(spec(&json!({"type": "object", MAP_TYPE: "granular"})), Node::Map(_)));
        assert_eq!(spec(&json!({"type": "object", MAP_TYPE: "atomic"})), Node::Atomic);
    }

    #[test]
    fn keyed_lists_know_their_keys_and_the_defaults_of_their_keys() {
        let node = spec(&json!({
            "type": "array", LIST_TYPE: "map", LIST_MAP_KEYS: ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"},
            }},
        }));
        let keys: Vec<_> = node.keys().iter().map(|key| (key.name.as_str(), key.default.clone())).collect();
        assert_eq!(keys, [("port", None), ("protocol", Some(json!("TCP")))]);
        assert_eq!(node.item().field("port").node, &Node::Scalar);
    }

    #[test]
    fn what_is_not_described_is_free_form() {
        assert_eq!(spec(&json!({"x-kubernetes-preserve-unknown-fields": true})), Node::Unknown);
        assert_eq!(spec(&json!(true)), Node::Unknown);
        let open = spec(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        assert_eq!(open.field("x").node, &Node::Unknown);
    }

    #[test]
    fn entries_of_additional_properties_are_not_named() {
        let node = spec(&json!({
            "type": "object", "properties": {"a": {"type": "string"}},
            "additionalProperties": {"type": "array", LIST_TYPE: "set"},
        }));
        assert!(node.field("a").named);
        assert!(!node.field("b").named);
        assert_eq!(node.field("b").node, &Node::Set);
    }

    #[test]
    fn an_optional_value_merges_like_the_value() {
        assert_eq!(spec(&json!({"type": ["array", "null"], LIST_TYPE: "set"})), Node::Set);
        assert_eq!(spec(&json!({"anyOf": [{"type": "string"}, {"type": "null"}]})), Node::Scalar);
        assert_eq!(spec(&json!({"anyOf": [{"type": "string"}, {"type": "object"}]})), Node::Unknown);
    }

    #[test]
    fn metadata_comes_from_here_whatever_the_schema_says() {
        let schema = json!({"type": "object", "properties": {"metadata": {"type": "string"}}});
        let schema = Schema::from_json(&schema).unwrap();
        let metadata = schema.root.field("metadata").node;
        assert_eq!(metadata.field("finalizers").node, &Node::Set);
        assert_eq!(metadata.field("ownerReferences").node.keys()[0].name, "uid");
        assert_eq!(metadata.field("labels").node.field("a").node, &Node::Scalar);
        assert_eq!(metadata.field("uid").node, &Node::Untracked);
        assert_eq!(metadata.field("else").node, &Node::Atomic);
        assert_eq!(schema.root.field("kind").node, &Node::Untracked);
    }

    #[test]
    fn unusable_schemas_are_refused_with_a_reason() {
        let refused = |schema: Value| Schema::from_json(&schema).unwrap_err();
        assert_eq!(refused(json!({"type": "string"})), SchemaError::NotAnObject);
        let list = |extensions: Value| {
            let mut list = json!({"type": "array"});
            json_patch::merge(&mut list, &extensions);
            refused(json!({"properties": {"a": list}}))
        };
        assert_eq!(
            list(json!({LIST_TYPE: "bag"})),
            SchemaError::BadExtension { extension: LIST_TYPE, value: "\"bag\"".into() }
        );
        for keys in [json!(null), json!([]), json!([1]), json!("name")] {
            assert!(matches!(
                list(json!({LIST_TYPE: "map", LIST_MAP_KEYS: keys})),
                SchemaError::BadExtension { extension: LIST_MAP_KEYS, .. }
            ));
        }
    }

    #[test]
    fn a_schema_that_nests_too_deep_is_refused() {
        let deep =
            (0..MAX_DEPTH).fold(json!({}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
        assert_eq!(Schema::from_json(&deep), Err(SchemaError::TooDeep));
    }
}
