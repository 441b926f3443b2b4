//! Taking out what a writer applied before and no longer lists.
//!
//! A field goes when its writer listed it last time and nobody lists it now. Two consequences need a rule:
//!
//! - A field nobody has anything in goes with everything in it: the defaults the server filled into a block
//!   have no owner, and must not stay behind when the block is dropped.
//! - An item of a list (or an entry of a free map) goes whole when nobody else owns the item itself, even where
//!   someone set a field of it: half an item is worse than none.

use serde_json::{Map, Value};

use crate::field_set::FieldSet;
use crate::path::PathElement;
use crate::schema::{KeyField, Node, Schema};
use crate::shape::{Shape, shape};

/// Takes out of `object` the fields of `last` that are not in `keep`.
pub(crate) fn prune_object(object: &mut Value, schema: &Schema, last: &FieldSet, keep: &FieldSet) {
    let Some(map) = object.as_object_mut() else { return };
    let name = PathElement::field("metadata");
    // `metadata` holds what the server wrote: it never goes whole.
    if let (Some(metadata), Some(last)) = (map.get_mut("metadata"), last.child(&name)) {
        let keep = keep.child(&name).cloned().unwrap_or_default();
        prune(metadata, schema.root.field("metadata").node, &[], last, &keep);
    }
    let mut last = last.clone();
    last.detach(&name);
    prune_fields(map, &schema.root, &[], &last, keep);
}

fn prune(value: &mut Value, node: &Node, keys: &[KeyField], last: &FieldSet, keep: &FieldSet) {
    match shape(value, node) {
        Shape::Leaf => {}
        Shape::Map(_) => {
            if let Value::Object(map) = value {
                prune_fields(map, node, keys, last, keep);
            }
        }
        Shape::List(items) => {
            let elements: Vec<_> = items.into_iter().map(|item| item.element).collect();
            if let Value::Array(list) = value {
                prune_items(list, &elements, node, last, keep);
            }
        }
    }
}

fn prune_fields(
    map: &mut Map<String, Value>,
    node: &Node,
    keys: &[KeyField],
    last: &FieldSet,
    keep: &FieldSet,
) {
    for (element, last) in last.children() {
        let PathElement::Field(name) = element else { continue };
        let field = node.field(name);
        if *field.node == Node::Untracked || keys.iter().any(|key| key.name == *name) {
            continue;
        }
        match keep.child(element) {
            Some(keep) if field.named || stays(last, keep) => {
                if let Some(value) = map.get_mut(name) {
                    prune(value, field.node, &[], last, keep);
                }
            }
            _ => {
                map.remove(name);
            }
        }
    }
}

fn prune_items(
    values: &mut Vec<Value>,
    elements: &[PathElement],
    node: &Node,
    last: &FieldSet,
    keep: &FieldSet,
) {
    let mut elements = elements.iter();
    values.retain_mut(|value| {
        let Some(element) = elements.next() else { return true };
        match (last.child(element), keep.child(element)) {
            (None, _) => true,
            (Some(last), Some(keep)) if stays(last, keep) => {
                prune(value, node.item(), node.keys(), last, keep);
                true
            }
            _ => false,
        }
    });
}

/// Whether an item or entry stays, going by who owns it itself.
fn stays(last: &FieldSet, keep: &FieldSet) -> bool {
    keep.is_member() || !last.is_member()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pruned(object: Value, last: Value, keep: Value) -> Value {
        let schema = json!({"properties": {"spec": {"properties": {
            "probe": {"type": "object", "properties": {"path": {}, "timeout": {}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object", "properties": {"name": {}, "image": {}}}},
        }}}});
        let schema = Schema::from_json(&schema).unwrap();
        let set = |fields: Value| FieldSet::from_fields_v1(&json!({ "f:spec": fields })).unwrap();
        let mut object = json!({ "spec": object });
        prune_object(&mut object, &schema, &set(last), &set(keep));
        object["spec"].take()
    }

    #[test]
    fn a_field_somebody_still_lists_stays() {
        let object = json!({"a": 1, "b": 1});
        assert_eq!(pruned(object, json!({"f:a": {}, "f:b": {}}), json!({"f:b": {}})), json!({"b": 1}));
    }

    #[test]
    fn defaults_go_with_the_block_they_were_filled_into() {
        let object = json!({"probe": {"path": "/", "timeout": 1}, "other": 1});
        assert_eq!(
            pruned(object, json!({"f:probe": {"f:path": {}}}), json!({"f:other": {}})),
            json!({"other": 1})
        );
    }

    #[test]
    fn a_block_somebody_has_a_field_in_stays() {
        let object = json!({"probe": {"path": "/", "timeout": 1}});
        let last = json!({"f:probe": {"f:path": {}}});
        assert_eq!(
            pruned(object, last, json!({"f:probe": {"f:timeout": {}}})),
            json!({"probe": {"timeout": 1}})
        );
    }

    #[test]
    fn an_item_nobody_else_owns_goes_whole() {
        let object = json!({"list": [{"name": "x", "image": "i"}, {"name": "y"}]});
        let last = json!({"f:list": {r#"k:{"name":"x"}"#: {".": {}, "f:name": {}}}});
        let keep = json!({"f:list": {r#"k:{"name":"x"}"#: {"f:image": {}}}});
        assert_eq!(pruned(object, last, keep), json!({"list": [{"name": "y"}]}));
    }

    #[test]
    fn an_item_that_stays_keeps_its_key() {
        let object = json!({"list": [{"name": "x", "image": "i"}]});
        let last = json!({"f:list": {r#"k:{"name":"x"}"#: {".": {}, "f:name": {}, "f:image": {}}}});
        let keep = json!({"f:list": {r#"k:{"name":"x"}"#: {}}});
        assert_eq!(pruned(object, last, keep), json!({"list": [{"name": "x"}]}));
    }

    #[test]
    fn items_of_a_set_go_one_by_one() {
        let object = json!({"set": ["a", "b", "c"]});
        let last = json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}});
        assert_eq!(pruned(object, last, json!({"f:set": {"v:\"b\"": {}}})), json!({"set": ["b", "c"]}));
    }

    #[test]
    fn what_the_server_wrote_into_metadata_stays() {
        let mut object = json!({"metadata": {"uid": "u", "labels": {"a": "1"}}});
        let last = json!({"f:metadata": {"f:uid": {}, "f:labels": {"f:a": {}}}});
        let last = FieldSet::from_fields_v1(&last).unwrap();
        prune_object(&mut object, &Schema::free_form(), &last, &FieldSet::default());
        assert_eq!(object, json!({"metadata": {"uid": "u"}}));
    }
}
