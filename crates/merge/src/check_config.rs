//! Whether a config can be merged at all: right shapes, and items that can be told apart.
//!
//! A live object is never refused for these, only a config: what is stored cannot be argued with.

use serde_json::Value;

use crate::schema::Node;
use crate::shape::items;

/// Refuses a config whose shape does not fit the schema, saying where and why.
pub(crate) fn check_config(config: &Value, node: &Node) -> Result<(), String> {
    check(config, node, &mut String::new())
}

fn check(value: &Value, node: &Node, path: &mut String) -> Result<(), String> {
    match (node, value) {
        (_, Value::Null) => Ok(()),
        (Node::Map(_) | Node::Unknown, Value::Object(map)) => map.iter().try_for_each(|(name, child)| {
            within(path, &format!(".{name}"), |path| check(child, node.field(name).node, path))
        }),
        (Node::Set | Node::Keyed(_), Value::Array(list)) => {
            let items = items(list, node).map_err(|error| format!("{}: {error}", shown(path)))?;
            items.iter().try_for_each(|item| {
                within(path, &item.element.to_string(), |path| check(item.value, node.item(), path))
            })
        }
        (Node::Map(_), _) => Err(wrong(path, "a map", value)),
        (Node::Set | Node::Keyed(_), _) => Err(wrong(path, "a list", value)),
        (Node::Scalar, Value::Object(_) | Value::Array(_)) => {
            Err(wrong(path, "a string, number or boolean", value))
        }
        _ => Ok(()),
    }
}

fn within<T>(path: &mut String, step: &str, run: impl FnOnce(&mut String) -> T) -> T {
    let parent = path.len();
    path.push_str(step);
    let out = run(path);
    path.truncate(parent);
    out
}

fn wrong(path: &str, expected: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    };
    format!("{}: expected {expected}, found {found}", shown(path))
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the object" } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    fn refusal(config: &Value) -> Option<String> {
        let schema = json!({"properties": {"spec": {"properties": {
            "n": {"type": "integer"},
            "set": {"type": "array", "x-kubernetes-list-type": "set"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        }}}});
        check_config(config, &Schema::from_json(&schema).unwrap().root).err()
    }

    #[test]
    fn fitting_configs_pass() {
        assert_eq!(
            refusal(&json!({"spec": {"n": 1, "set": ["a"], "list": [{"name": "x"}], "free": [[]]}})),
            None
        );
        assert_eq!(refusal(&json!({"spec": {"n": null, "set": null, "list": null}})), None);
    }

    #[test]
    fn misfits_are_refused_with_place_and_reason() {
        for (config, reason) in [
            (json!([]), "the object: expected a map, found a list"),
            (json!({"spec": 1}), ".spec: expected a map, found a number"),
            (json!({"spec": {"n": {}}}), ".spec.n: expected a string, number or boolean, found a map"),
            (json!({"spec": {"list": "x"}}), ".spec.list: expected a list, found a string"),
            (
                json!({"spec": {"list": [{"name": "x", "n": []}]}}),
                r#".spec.list[name="x"].n: expected a string, number or boolean, found a list"#,
            ),
            (json!({"spec": {"list": [{}]}}), ".spec.list: element 0 omits key field \"name\""),
            (json!({"spec": {"set": [1, 1]}}), ".spec.set: duplicate entries for key [=1]"),
        ] {
            assert_eq!(refusal(&config).as_deref(), Some(reason));
        }
    }
}
