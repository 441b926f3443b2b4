//! Which fields a write changed.
//!
//! The order of items in sets and keyed lists is nobody's field: moving an item changes nothing here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::collect::{collect, collect_field, collect_item, disown_containers};
use crate::field_set::FieldSet;
use crate::path::PathElement;
use crate::schema::{Node, Schema};
use crate::shape::{Shape, is_same, shape};

/// The fields in which two versions of an object differ.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// Fields the new version has that the old has not, or has with another value.
    pub(crate) changed: FieldSet,
    /// What of the old version is gone, removed or replaced. One step stands for everything beneath it:
    /// whoever owned an empty map loses it with what others put there since.
    pub(crate) gone: FieldSet,
}

impl Comparison {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }

    /// What is left of `owned`, someone else's fields, after this write.
    pub(crate) fn leave(&self, owned: &FieldSet) -> FieldSet {
        let lost = owned.touched_by(&self.changed).union(&owned.touched_by(&self.gone));
        owned.difference(&lost)
    }

    fn attach(&mut self, element: PathElement, child: Self) {
        self.changed.attach(element.clone(), child.changed);
        self.gone.attach(element, child.gone);
    }
}

/// Compares two versions of an object.
pub(crate) fn compare_objects(old: &Value, new: &Value, schema: &Schema) -> Comparison {
    let Comparison { changed, gone } = compare(old, new, &schema.root);
    Comparison { changed: disown_containers(changed), gone }
}

fn compare(old: &Value, new: &Value, node: &Node) -> Comparison {
    if *node == Node::Untracked {
        return Comparison::default();
    }
    let mut out = Comparison::default();
    match (shape(old, node), shape(new, node)) {
        (Shape::Map(old), Shape::Map(new)) => {
            for (name, new) in new {
                let element = PathElement::field(name);
                match old.get(name) {
                    Some(old) => out.attach(element, compare(old, new, node.field(name).node)),
                    None => out.changed.attach(element, collect_field(name, new, node)),
                }
            }
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                out.gone.attach(PathElement::field(name), all_of(node.field(name).node));
            }
        }
        (Shape::List(old), Shape::List(new)) => {
            let mut left: BTreeMap<_, _> = old.into_iter().map(|item| (item.element, item.value)).collect();
            for item in new {
                match left.remove(&item.element) {
                    Some(old) => out.attach(item.element, compare(old, item.value, node.item())),
                    None => out.changed.attach(item.element, collect_item(item.value, node)),
                }
            }
            for element in left.into_keys() {
                out.gone.attach(element, all_of(node.item()));
            }
        }
        _ if is_same(old, new) => {}
        _ => {
            out.changed = collect(new, node).into_member();
            out.gone = all_of(node);
        }
    }
    out
}

fn all_of(node: &Node) -> FieldSet {
    if *node == Node::Untracked { FieldSet::default() } else { FieldSet::leaf() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn difference(old: &Value, new: &Value) -> (Vec<String>, Vec<String>) {
        let schema = json!({"properties": {"spec": {"properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}},
        }}}});
        let schema = Schema::from_json(&schema).unwrap();
        let comparison = compare_objects(&json!({ "spec": old }), &json!({ "spec": new }), &schema);
        (comparison.changed.paths(), comparison.gone.paths())
    }

    #[test]
    fn equal_objects_do_not_differ() {
        let value = json!({"set": ["a"], "list": [{"name": "x"}], "free": {"a": [1, {}]}});
        assert_eq!(difference(&value, &value), (vec![], vec![]));
    }

    #[test]
    fn changed_and_added_fields_are_new_changed_and_removed_ones_are_gone() {
        let (changed, gone) = difference(
            &json!({"a": 1, "b": 1, "set": ["x", "y"]}),
            &json!({"a": 2, "c": 1, "set": ["y", "z"]}),
        );
        assert_eq!(changed, [".spec.a", ".spec.c", r#".spec.set[="z"]"#]);
        assert_eq!(gone, [".spec.a", ".spec.b", r#".spec.set[="x"]"#]);
    }

    #[test]
    fn moving_an_item_changes_nothing() {
        let old = json!({"list": [{"name": "x"}, {"name": "y"}], "set": ["a", "b"]});
        let new = json!({"list": [{"name": "y"}, {"name": "x"}], "set": ["b", "a"]});
        assert_eq!(difference(&old, &new), (vec![], vec![]));
    }

    #[test]
    fn a_new_item_brings_itself_and_its_fields() {
        let (changed, _) = difference(&json!({"list": []}), &json!({"list": [{"name": "x", "v": 1}]}));
        let item = r#".spec.list[name="x"]"#;
        assert_eq!(changed, [item.to_owned(), format!("{item}.name"), format!("{item}.v")]);
    }

    #[test]
    fn a_value_of_another_shape_is_new_and_all_of_the_old_is_gone() {
        let (changed, gone) = difference(&json!({"a": {"b": 1}}), &json!({"a": 5}));
        assert_eq!((changed, gone), (vec![".spec.a".to_owned()], vec![".spec.a".to_owned()]));
    }

    #[test]
    fn what_the_server_writes_never_differs() {
        let schema = Schema::free_form();
        let old = json!({"apiVersion": "a/v1", "metadata": {"resourceVersion": "1"}});
        let new = json!({"apiVersion": "a/v2", "metadata": {"resourceVersion": "2", "uid": "u"}});
        assert!(compare_objects(&old, &new, &schema).is_empty());
    }

    #[test]
    fn a_write_leaves_others_what_it_does_not_touch() {
        let schema = Schema::free_form();
        let comparison =
            compare_objects(&json!({"a": {"x": 1}, "b": 1, "c": 1}), &json!({"a": 2, "c": 1}), &schema);
        let owned = json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}, "f:c": {}});
        let left = comparison.leave(&FieldSet::from_fields_v1(&owned).unwrap());
        assert_eq!(left.paths(), [".c"]);
    }
}
