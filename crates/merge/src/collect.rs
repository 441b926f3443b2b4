//! Which fields a value has: the set a writer owns who wrote exactly this value.

use serde_json::Value;

use crate::depth::{MAX_DEPTH, TooDeep, check_depth};
use crate::field_set::FieldSet;
use crate::path::PathElement;
use crate::schema::{Node, Schema};
use crate::shape::{Shape, shape};

/// The fields of `object` that can be owned.
pub fn fields_of(object: &Value, schema: &Schema) -> Result<FieldSet, TooDeep> {
    check_depth(object, MAX_DEPTH)?;
    Ok(collect_object(object, schema))
}

/// [`fields_of`] for an object whose depth is checked.
pub(crate) fn collect_object(object: &Value, schema: &Schema) -> FieldSet {
    disown_containers(collect(object, &schema.root))
}

/// Nobody owns the object itself or its `metadata` itself.
pub(crate) fn disown_containers(mut fields: FieldSet) -> FieldSet {
    fields.forget_member();
    let metadata = PathElement::field("metadata");
    if let Some(mut child) = fields.detach(&metadata) {
        child.forget_member();
        fields.attach(metadata, child);
    }
    fields
}

/// The fields at and beneath one value. Empty maps and lists are leaves: somebody said that they are empty.
pub(crate) fn collect(value: &Value, node: &Node) -> FieldSet {
    if *node == Node::Untracked {
        return FieldSet::default();
    }
    match shape(value, node) {
        Shape::Map(map) if !map.is_empty() => {
            let mut out = FieldSet::default();
            for (name, child) in map {
                out.attach(PathElement::field(name), collect_field(name, child, node));
            }
            out
        }
        Shape::List(items) if !items.is_empty() => {
            let mut out = FieldSet::default();
            for item in items {
                out.attach(item.element, collect_item(item.value, node));
            }
            out
        }
        _ => FieldSet::leaf(),
    }
}

/// The fields at and beneath one field of a map.
pub(crate) fn collect_field(name: &str, value: &Value, map: &Node) -> FieldSet {
    let field = map.field(name);
    let fields = collect(value, field.node);
    if field.named { fields } else { fields.into_member() }
}

/// The fields at and beneath one item of a list.
pub(crate) fn collect_item(value: &Value, list: &Node) -> FieldSet {
    collect(value, list.item()).into_member()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        Schema::from_json(&json!({"properties": {"spec": {"type": "object", "properties": {
            "image": {"type": "string"},
            "args": {"type": "array"},
            "env": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
        }}}}))
        .unwrap()
    }

    fn paths(object: &Value) -> Vec<String> {
        fields_of(object, &schema()).unwrap().paths()
    }

    #[test]
    fn named_fields_are_owned_by_their_leaves() {
        assert_eq!(
            paths(&json!({"spec": {"image": "x", "args": ["a", "b"]}})),
            [".spec.args", ".spec.image"]
        );
    }

    #[test]
    fn items_and_free_entries_are_owned_themselves() {
        assert_eq!(
            paths(&json!({"spec": {"env": [{"name": "A", "value": "1"}], "free": {"x": {"y": [1]}}}})),
            [
                r#".spec.env[name="A"]"#,
                r#".spec.env[name="A"].name"#,
                r#".spec.env[name="A"].value"#,
                ".spec.free.x",
                ".spec.free.x.y",
            ]
        );
    }

    #[test]
    fn empty_containers_and_nulls_are_leaves() {
        assert_eq!(
            paths(&json!({"spec": {"env": [], "free": {}, "image": null}})),
            [".spec.env", ".spec.free", ".spec.image"]
        );
    }

    #[test]
    fn what_the_server_writes_is_owned_by_nobody() {
        let object = json!({
            "apiVersion": "v1", "kind": "X",
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "generation": 1, "labels": {"l": "1"},
                         "ownerReferences": [{"uid": "o", "name": "n"}], "finalizers": ["f"]},
        });
        assert_eq!(
            paths(&object),
            [r#".metadata.finalizers[="f"]"#, ".metadata.labels.l", r#".metadata.ownerReferences[uid="o"]"#]
        );
        assert!(paths(&json!({"metadata": {}})).is_empty());
        assert!(paths(&json!({})).is_empty());
    }

    #[test]
    fn a_list_with_duplicate_keys_is_one_field() {
        assert_eq!(paths(&json!({"spec": {"env": [{"name": "A"}, {"name": "A"}]}})), [".spec.env"]);
    }
}
