//! The schema of a kind, in the form `kubectl explain` and server-side apply read.
//!
//! [`openapi_schema`] takes what schemars derives and makes it a structural OpenAPI 3.0 schema: one tree without
//! references, one type per node, no nulls, enums as lists of words whose meanings are told in the description.
//! Whatever has no type of its own is free-form.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::object::{Object, Resource};

type Node = Map<String, Value>;

/// Keys that say nothing to a client of ours, or that a structural schema may not have.
const DROPPED: [&str; 6] = ["$schema", "$defs", "title", "default", "readOnly", "writeOnly"];
const FREE_FORM: &str = "x-kubernetes-preserve-unknown-fields";

/// The self-contained schema of `Object<S>`. Kinds that report nothing have no `status` in it.
pub fn openapi_schema<S: Resource>() -> Value {
    let mut root = structural_node::<Object<S>>();
    drop_empty_status(&mut root);
    Value::Object(root)
}

/// The self-contained schema of a part of objects.
pub fn structural_schema<T: JsonSchema>() -> Value {
    Value::Object(structural_node::<T>())
}

fn structural_node<T: JsonSchema>() -> Node {
    let mut settings = SchemaSettings::openapi3();
    settings.inline_subschemas = true;
    settings.transforms.clear();
    structural(settings.into_generator().into_root_schema_for::<T>().to_value())
}

fn drop_empty_status(root: &mut Node) {
    if let Some(Value::Object(properties)) = root.get_mut("properties")
        && properties.get("status").is_some_and(|status| status.get("properties").is_none())
    {
        properties.remove("status");
    }
}

/// One node and all below it.
fn structural(schema: Value) -> Node {
    let Value::Object(mut node) = schema else {
        return Node::from_iter([(FREE_FORM.to_owned(), Value::Bool(true))]);
    };
    for key in DROPPED {
        node.remove(key);
    }
    unwrap_option(&mut node);
    fold_enum(&mut node);
    drop_null(&mut node);
    unwrap_lines(&mut node);
    set_integer_format(&mut node);
    descend(&mut node);
    require_map_keys(&mut node);
    if !node.contains_key("type") {
        node.insert(FREE_FORM.to_owned(), Value::Bool(true));
    }
    node
}

/// `anyOf: [X, null]` becomes `X`; what the outer node says wins.
fn unwrap_option(node: &mut Node) {
    let Some(Value::Array(choices)) = node.remove("anyOf") else { return };
    let some = choices.into_iter().find(|choice| choice.get("type") != Some(&json!("null")));
    if let Some(Value::Object(some)) = some {
        for (key, value) in some {
            node.entry(key).or_insert(value);
        }
    }
}

/// `oneOf: [{const, description}, {enum}, …]` becomes one `enum` of strings; the meanings go into the description.
fn fold_enum(node: &mut Node) {
    let Some(Value::Array(variants)) = node.remove("oneOf") else { return };
    let mut words = vec![];
    let mut description = text(node, "description");
    for variant in variants {
        let Value::Object(mut variant) = variant else { continue };
        let about = text(&variant, "description");
        let of_variant = match (variant.remove("const"), variant.remove("enum")) {
            (Some(word), _) => vec![word],
            (None, Some(Value::Array(words))) => words,
            (None, _) => vec![],
        };
        for word in &of_variant {
            if let (Some(word), false) = (word.as_str(), about.is_empty()) {
                description.push_str("\n- ");
                description.push_str(word);
                description.push_str(": ");
                description.push_str(&about);
            }
        }
        words.extend(of_variant);
    }
    node.insert("type".to_owned(), json!("string"));
    node.insert("enum".to_owned(), Value::Array(words));
    node.insert("description".to_owned(), Value::String(description));
}

/// `type: [string, null]` becomes `type: string`; a null word is no word.
fn drop_null(node: &mut Node) {
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|one| one != "null");
        if let Some(only) = types.pop() {
            node.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = node.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    node.remove("nullable");
}

/// Lines that were broken to fit the source are joined; lists and paragraphs stay.
fn unwrap_lines(node: &mut Node) {
    let Some(Value::String(description)) = node.get_mut("description") else { return };
    let mut unwrapped = String::with_capacity(description.len());
    let mut lines = description.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        unwrapped.push_str(line);
        if let Some(next) = lines.peek() {
            let stays = line.is_empty() || next.is_empty() || next.starts_with("- ");
            unwrapped.push(if stays { '\n' } else { ' ' });
        }
    }
    *description = unwrapped;
}

/// OpenAPI knows two integers.
fn set_integer_format(node: &mut Node) {
    if node.get("type") != Some(&json!("integer")) {
        return;
    }
    let format = match text(node, "format").as_str() {
        "int8" | "int16" | "int32" | "uint8" | "uint16" => "int32",
        _ => "int64",
    };
    node.insert("format".to_owned(), json!(format));
}

fn descend(node: &mut Node) {
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        for property in properties.values_mut() {
            *property = Value::Object(structural(property.take()));
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = node.get_mut(key) {
            *below = Value::Object(structural(below.take()));
        }
    }
}

/// An element of a list that merges by key must have the key.
fn require_map_keys(node: &mut Node) {
    let Some(Value::Array(keys)) = node.get("x-kubernetes-list-map-keys").cloned() else { return };
    let Some(Value::Object(items)) = node.get_mut("items") else { return };
    let required = items.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for key in keys {
            if !required.contains(&key) {
                required.push(key);
            }
        }
    }
}

fn text(node: &Node, key: &str) -> String {
    node.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addon::AddonSpec;
    use crate::application::ApplicationSpec;
    use crate::extension::ExtensionSpec;
    use crate::label_selector::MatchSelector;
    use crate::task::TaskSpec;
    use crate::task_kind::TaskKindSpec;
    use crate::task_template::TaskTemplateSpec;

    fn every_schema() -> [(&'static str, Value); 6] {
        [
            ("Task", openapi_schema::<TaskSpec>()),
            ("TaskTemplate", openapi_schema::<TaskTemplateSpec>()),
            ("TaskKind", openapi_schema::<TaskKindSpec>()),
            ("Addon", openapi_schema::<AddonSpec>()),
            ("Extension", openapi_schema::<ExtensionSpec>()),
            ("Application", openapi_schema::<ApplicationSpec>()),
        ]
    }

    /// Calls `visit` with the path and value of every node of a schema.
    fn walk(path: &str, node: &Value, visit: &mut impl FnMut(&str, &Node)) {
        let node = node.as_object().unwrap_or_else(|| panic!("{path} is no object"));
        visit(path, node);
        for (name, property) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            walk(&format!("{path}.{name}"), property, visit);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(below) = node.get(key) {
                walk(&format!("{path}[]"), below, visit);
            }
        }
    }

    fn names_of(schema: &Value, pointer: &str) -> Vec<String> {
        schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    }

    fn description<'a>(schema: &'a Value, path: &str) -> &'a str {
        let below = |node: &'a Value, name| &node["properties"][name];
        path.split('.').fold(schema, below)["description"].as_str().unwrap()
    }

    #[test]
    fn every_node_has_one_type_or_is_free_form() {
        for (kind, schema) in every_schema() {
            walk(kind, &schema, &mut |path, node| {
                let typed = node.get("type").is_some_and(Value::is_string);
                let free = node.get(FREE_FORM) == Some(&Value::Bool(true));
                assert!(typed != free, "{path}: {node:?}");
            });
        }
    }

    #[test]
    fn every_property_is_described() {
        for (kind, schema) in every_schema() {
            walk(kind, &schema, &mut |path, node| {
                if !path.ends_with("[]") {
                    assert!(!text(node, "description").trim().is_empty(), "{path} has no description");
                }
            });
        }
    }

    #[test]
    fn nothing_is_left_that_a_structural_schema_may_not_have() {
        let known = [
            "type",
            "description",
            "properties",
            "required",
            "items",
            "additionalProperties",
            "format",
            "minimum",
            "enum",
            FREE_FORM,
            "x-kubernetes-int-or-string",
            "x-kubernetes-list-type",
            "x-kubernetes-list-map-keys",
        ];
        for (kind, schema) in every_schema() {
            walk(kind, &schema, &mut |path, node| {
                for key in node.keys() {
                    assert!(known.contains(&key.as_str()), "{path} has {key}");
                }
            });
            assert!(!schema.to_string().contains("$ref"), "{kind}");
            assert!(!schema.to_string().contains("null"), "{kind}");
        }
    }

    #[test]
    fn every_list_says_how_it_merges_and_has_its_keys() {
        for (kind, schema) in every_schema() {
            walk(kind, &schema, &mut |path, node| {
                if node.get("type") != Some(&json!("array")) {
                    return;
                }
                let list_type = text(node, "x-kubernetes-list-type");
                assert!(["atomic", "set", "map"].contains(&list_type.as_str()), "{path}");
                let keys = node.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                assert_eq!(keys.is_some(), list_type == "map", "{path}");
                for key in keys.into_iter().flatten() {
                    assert!(node["items"]["properties"].get(key.as_str().unwrap()).is_some(), "{path}");
                    assert!(node["items"]["required"].as_array().unwrap().contains(key), "{path}");
                }
            });
        }
    }

    #[test]
    fn a_task_has_the_fields_of_the_design() {
        let schema = openapi_schema::<TaskSpec>();
        let mut fields = "kind addon container containers name extensions subject data priority policy ttl suspend \
            cancel timeout killTimeout retry retention locator runtime robotSelector targetRobot constraints affinity \
            restart reschedule disconnect driver user config resources pod artifacts"
            .split_whitespace()
            .collect::<Vec<_>>();
        fields.sort_unstable();
        let mut found = names_of(&schema, "/properties/spec/properties");
        found.sort_unstable();
        assert_eq!(found, fields);
        let mut fields =
            "state stateSince blockedSince restUntil stopping attempt leaving prefetched prefetches recovery refusals attempts message started terminated submitted released expired reportSequence pod retries lost original createUser updateUser errors \
            events activity total completed result attached waitingFor conditions"
                .split_whitespace()
                .collect::<Vec<_>>();
        fields.sort_unstable();
        let mut found = names_of(&schema, "/properties/status/properties");
        found.sort_unstable();
        assert_eq!(found, fields);
    }

    #[test]
    fn enums_are_words_with_their_meanings() {
        let schema = openapi_schema::<TaskSpec>();
        let runtime = &schema["properties"]["spec"]["properties"]["runtime"];
        assert_eq!(
            runtime,
            &json!({
                "type": "string",
                "enum": ["process", "pod", "robot"],
                "description": "Where attempts run. Default: on a robot if robotSelector, targetRobot or constraints are set, else \
                    a setting of the server.\n\
                    - process: A process on the server's machine.\n\
                    - pod: A pod in the Kubernetes cluster.\n\
                    - robot: A robot of the fleet.",
            })
        );
    }

    #[test]
    fn leaves_are_what_clients_can_read() {
        let schema = openapi_schema::<TaskSpec>();
        let spec = &schema["properties"]["spec"]["properties"];
        assert_eq!(spec["timeout"]["type"], "string");
        assert_eq!(spec["timeout"]["x-kubernetes-int-or-string"], true);
        assert_eq!(spec["priority"]["format"], "int32");
        assert_eq!(spec["priority"]["minimum"], 0);
        assert_eq!(spec["retry"]["properties"]["limit"]["format"], "int64");
        assert_eq!(spec["retry"]["properties"]["on"]["items"]["type"], "string");
        assert_eq!(spec["robotSelector"]["additionalProperties"]["type"], "string");
        assert_eq!(spec["data"][FREE_FORM], true);
        assert_eq!(spec["data"].get("type"), None);
        assert_eq!(schema["properties"]["status"]["properties"]["started"]["format"], "date-time");
        assert_eq!(spec["subject"]["required"], json!(["kind", "name"]));
    }

    #[test]
    fn descriptions_are_the_field_s_and_unwrapped() {
        let schema = openapi_schema::<TaskSpec>();
        assert_eq!(
            description(&schema, "spec.containers"),
            "Several programs to run together, given here instead of by an addon. When the leading one ends, the \
             others are stopped."
        );
        assert_eq!(description(&schema, "spec.timeout").lines().count(), 1);
    }

    #[test]
    fn kinds_that_report_nothing_have_no_status() {
        let properties = names_of(&openapi_schema::<ApplicationSpec>(), "/properties");
        assert!(!properties.contains(&"status".to_owned()));
        let properties = names_of(&openapi_schema::<AddonSpec>(), "/properties");
        assert!(properties.contains(&"status".to_owned()));
    }

    #[test]
    fn a_selector_inside_a_kind_is_structural_too() {
        let mut settings = SchemaSettings::openapi3();
        settings.inline_subschemas = true;
        let schema = structural(settings.into_generator().into_root_schema_for::<MatchSelector>().to_value());
        let operator = &schema["properties"]["matchExpressions"]["items"]["properties"]["operator"];
        assert_eq!(operator["enum"], json!(["In", "NotIn", "Exists", "DoesNotExist"]));
    }
}
