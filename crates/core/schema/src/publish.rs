//! A schema in the form clients read: OpenAPI 3.0, one type per node.

use serde_json::{Map, Value, json};

use crate::read::names_fields;

const FREE_FORM: &str = "x-kubernetes-preserve-unknown-fields";
/// Keys that clients of ours are shown as they are.
const SHOWN: [&str; 28] = [
    "type",
    "title",
    "description",
    "default",
    "enum",
    "format",
    "nullable",
    "required",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "example",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-embedded-resource",
    FREE_FORM,
];

/// A schema that was read without complaint, for clients.
pub(crate) fn published(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else { return json!({ FREE_FORM: true }) };
    let mut shown: Map<String, Value> = schema
        .iter()
        .filter(|(key, _)| SHOWN.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    one_type(schema, &mut shown);
    limits(&mut shown);
    if let Some(only) = schema.get("const") {
        shown.insert("enum".to_owned(), json!([only]));
    }
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        let fields: Map<_, _> = fields.iter().map(|(name, field)| (name.clone(), published(field))).collect();
        shown.insert("properties".to_owned(), Value::Object(fields));
    }
    if let Some(items) = schema.get("items") {
        shown.insert("items".to_owned(), published(items));
    }
    if let Some(each) = schema.get("additionalProperties").filter(|each| each.is_object()) {
        shown.insert("additionalProperties".to_owned(), published(each));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(branches) = schema.get(key).and_then(Value::as_array) {
            shown.insert(key.to_owned(), branches.iter().map(published_branch).collect());
        }
    }
    if !shown.contains_key("type") && !shown.contains_key("x-kubernetes-int-or-string") {
        shown.insert(FREE_FORM.to_owned(), Value::Bool(true));
    }
    Value::Object(shown)
}

/// A branch says more about a value whose type stands outside.
fn published_branch(branch: &Value) -> Value {
    let mut shown = published(branch);
    if let Some(shown) = shown.as_object_mut() {
        shown.remove(FREE_FORM);
    }
    shown
}

/// `[string, null]` is a string that may be null; what has properties is an object.
fn one_type(schema: &Map<String, Value>, shown: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get("type") {
        shown.remove("type");
        for one in types {
            if one == "null" {
                shown.insert("nullable".to_owned(), Value::Bool(true));
            } else {
                shown.insert("type".to_owned(), one.clone());
            }
        }
    }
    if names_fields(schema) {
        shown.entry("type").or_insert_with(|| json!("object"));
    }
}

/// OpenAPI 3.0 says `minimum: 1, exclusiveMinimum: true` for what is `exclusiveMinimum: 1` today.
fn limits(shown: &mut Map<String, Value>) {
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(number) = shown.get(exclusive).filter(|found| found.is_number()).cloned() {
            shown.insert(limit.to_owned(), number);
            shown.insert(exclusive.to_owned(), Value::Bool(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_cannot_read_is_written_in_the_old_way() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {
                "a": {"type": ["string", "null"], "examples": ["x"]},
                "b": {"type": "integer", "exclusiveMinimum": 0},
                "c": {"const": "x", "type": "string"},
                "d": {},
                "e": {"type": "array", "items": {"type": ["integer"]}},
            },
            "oneOf": [{"required": ["a"]}],
        });
        assert_eq!(
            published(&schema),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "string", "nullable": true},
                    "b": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
                    "c": {"type": "string", "enum": ["x"]},
                    "d": {FREE_FORM: true},
                    "e": {"type": "array", "items": {"type": "integer"}},
                },
                "oneOf": [{"required": ["a"]}],
            })
        );
    }
}
