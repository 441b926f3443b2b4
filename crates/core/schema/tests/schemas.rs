//! Which schemas can be used.

use muster_schema::{MAX_BYTES, MAX_DEPTH, MAX_NODES, SchemaError, StructuralSchema};
use proptest::prelude::*;
use serde_json::{Value, json};

fn refused(schema: &Value) -> SchemaError {
    StructuralSchema::read(schema).expect_err("a refusal")
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_the_place() {
    let field = |schema: Value| json!({"properties": {"a": schema}});
    for (schema, at, word) in [
        (json!([]), "", "object"),
        (json!({"type": "string"}), "type", "must be object"),
        (json!({"type": "object", "nullable": true}), "nullable", "cannot be null"),
        (json!({"properties": []}), "properties", "object of schemas"),
        (field(json!("text")), "properties.a", "is an object"),
        (field(json!({"type": "text"})), "properties.a.type", "\"text\" is not a type"),
        (field(json!({"type": ["string", "integer"]})), "properties.a.type", "one type"),
        (field(json!({"$ref": "#/a"})), "properties.a.$ref", "write the schema out"),
        (field(json!({"if": {}})), "properties.a.if", "not a key"),
        (
            field(json!({"x-kubernetes-validations": []})),
            "properties.a.x-kubernetes-validations",
            "not a key",
        ),
        (field(json!({"minimum": "1"})), "properties.a.minimum", "a number"),
        (field(json!({"minLength": -1})), "properties.a.minLength", "whole number"),
        (field(json!({"pattern": "("})), "properties.a.pattern", "regular expression"),
        (field(json!({"pattern": "x{9999}{9999}"})), "properties.a.pattern", "regular expression"),
        (field(json!({"enum": []})), "properties.a.enum", "list of values"),
        (field(json!({"required": "a"})), "properties.a.required", "list of names"),
        (field(json!({"multipleOf": 0})), "properties.a.multipleOf", "greater than 0"),
        (field(json!({"exclusiveMinimum": true})), "properties.a.exclusiveMinimum", "needs minimum"),
        (field(json!({"minimum": 1, "exclusiveMinimum": 1})), "properties.a.exclusiveMinimum", "together"),
        (field(json!({"oneOf": {}})), "properties.a.oneOf", "list of schemas"),
        (
            field(json!({"type": "array", "x-kubernetes-list-type": "map"})),
            "properties.a.x-kubernetes-list-map-keys",
            "keys",
        ),
        (
            field(json!({"type": "array", "x-kubernetes-list-type": "bag"})),
            "properties.a.x-kubernetes-list-type",
            "atomic, set or map",
        ),
        (field(json!({"type": "integer", "default": "x"})), "properties.a.default", "whole number"),
        (
            field(json!({"type": "array", "items": {"type": "string"}, "default": ["x", 1]})),
            "properties.a.default[1]",
            "must be text",
        ),
        (json!({"default": 3}), "default", "must be an object"),
        (field(json!({"properties": {}, "default": 3})), "properties.a.default", "must be an object"),
        (
            json!({"properties": {"a": {}}, "oneOf": [{"required": ["b"]}]}),
            "",
            "\"b\", which must be among the properties",
        ),
        (json!({"properties": {"a": {}}, "anyOf": [{"default": {}}]}), "", "branch cannot have a default"),
    ] {
        let error = refused(&schema);
        assert_eq!(error.at, at, "{schema}: {error}");
        assert!(error.why.contains(word), "{schema}: {error}");
    }
}

#[test]
fn a_schema_has_limits() {
    let long = json!({"description": "x".repeat(MAX_BYTES)});
    assert!(refused(&long).why.contains("bytes long"));
    let deep = (0..MAX_DEPTH).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    assert!(refused(&deep).why.contains("levels"));
    let fields: serde_json::Map<_, _> =
        (0..MAX_NODES).map(|number| (number.to_string(), json!({}))).collect();
    assert!(refused(&json!({"properties": fields})).why.contains("parts"));
}

#[test]
fn advice_for_people_and_both_dialects_are_taken() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "type": "object",
        "properties": {
            "a": {"type": ["integer", "null"], "exclusiveMinimum": 0, "examples": [1], "format": "weekday"},
            "b": {"type": "integer", "nullable": true, "minimum": 0, "exclusiveMinimum": true, "deprecated": true},
        },
        "additionalProperties": false,
    });
    let schema = StructuralSchema::read(&schema).unwrap();
    assert!(schema.check(&json!({"a": null, "b": null}), "spec").is_empty());
    assert_eq!(schema.check(&json!({"a": 0, "b": 0}), "spec").len(), 2);
    assert_eq!(schema.prune(&mut json!({"c": 1}), "spec"), ["spec.c"]);
}

/// Pieces of schemas, well and badly formed.
fn piece() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!("object")),
        Just(json!("[a-")),
        any::<i8>().prop_map(Value::from),
        Just(json!(["a", "null"])),
        Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let key = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "required",
            "enum",
            "pattern",
            "minimum",
            "exclusiveMinimum",
            "oneOf",
            "not",
            "default",
            "additionalProperties",
            "x-kubernetes-list-type",
            "a",
            "b",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..5).prop_map(|map| {
                Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_makes_the_reader_panic(schema in piece()) {
        if let Ok(schema) = StructuralSchema::read(&schema) {
            // What is shown to clients can be read again.
            prop_assert!(StructuralSchema::read(schema.published()).is_ok(), "{}", schema.published());
        }
    }
}
