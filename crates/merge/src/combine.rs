//! A live object and a config, merged. The config wins wherever it says something.

use serde_json::{Map, Value};

use crate::interleave::interleave;
use crate::schema::Node;
use crate::shape::{Item, Shape, is_same, shape};

/// Merges `config` over `live`.
pub(crate) fn combine(live: &Value, config: &Value, node: &Node) -> Value {
    match (shape(live, node), shape(config, node)) {
        (Shape::Map(live), Shape::Map(config)) => Value::Object(combine_maps(live, config, node)),
        (Shape::List(live), Shape::List(config)) => Value::Array(combine_lists(&live, &config, node)),
        // A null says that the writer has nothing to put there; it does not take away what others put there.
        (Shape::Map(map), Shape::Leaf) if config.is_null() && !map.is_empty() => live.clone(),
        (Shape::List(items), Shape::Leaf) if config.is_null() && !items.is_empty() => live.clone(),
        _ if is_same(live, config) => live.clone(),
        _ => config.clone(),
    }
}

fn combine_maps(live: &Map<String, Value>, config: &Map<String, Value>, node: &Node) -> Map<String, Value> {
    let merged = live.iter().map(|(name, live)| match config.get(name) {
        Some(config) => (name.clone(), combine(live, config, node.field(name).node)),
        None => (name.clone(), live.clone()),
    });
    let new = config.iter().filter(|(name, _)| !live.contains_key(*name));
    merged.chain(new.map(|(name, value)| (name.clone(), value.clone()))).collect()
}

fn combine_lists(live: &[Item<'_>], config: &[Item<'_>], node: &Node) -> Vec<Value> {
    let keys = |items: &[Item<'_>]| items.iter().map(|item| item.element.clone()).collect::<Vec<_>>();
    interleave(&keys(live), &keys(config))
        .into_iter()
        .filter_map(|origin| {
            let live = origin.live.and_then(|index| live.get(index));
            let config = origin.applied.and_then(|index| config.get(index));
            match (live, config) {
                (Some(live), Some(config)) => Some(combine(live.value, config.value, node.item())),
                (Some(one), None) | (None, Some(one)) => Some(one.value.clone()),
                (None, None) => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    fn combined(live: Value, config: Value) -> Value {
        let schema = json!({"properties": {"spec": {"properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set"},
            "map": {"type": "object"},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object"}},
        }}}});
        let schema = Schema::from_json(&schema).unwrap();
        combine(&json!({ "spec": live }), &json!({ "spec": config }), &schema.root)["spec"].take()
    }

    #[test]
    fn maps_merge_field_by_field() {
        assert_eq!(
            combined(json!({"map": {"a": 1, "b": {"c": 1}}}), json!({"map": {"b": {"d": 2}}})),
            json!({
                "map": {"a": 1, "b": {"c": 1, "d": 2}},
            })
        );
    }

    #[test]
    fn atomic_values_are_replaced_whole() {
        assert_eq!(
            combined(json!({"atom": {"a": 1}, "plain": [1, 2]}), json!({"atom": {"b": 1}, "plain": [3]})),
            json!({"atom": {"b": 1}, "plain": [3]})
        );
    }

    #[test]
    fn keyed_lists_merge_by_key_and_sets_by_value() {
        assert_eq!(
            combined(
                json!({"list": [{"name": "x", "a": 1}, {"name": "y"}], "set": ["p", "q"]}),
                json!({"list": [{"name": "y", "b": 2}, {"name": "z"}], "set": ["q", "r"]})
            ),
            json!({"list": [{"name": "x", "a": 1}, {"name": "y", "b": 2}, {"name": "z"}], "set": ["p", "q", "r"]})
        );
    }

    #[test]
    fn null_does_not_take_away_what_others_put_there() {
        assert_eq!(combined(json!({"map": {"a": 1}}), json!({"map": null})), json!({"map": {"a": 1}}));
        assert_eq!(combined(json!({"set": ["a"]}), json!({"set": null})), json!({"set": ["a"]}));
        assert_eq!(combined(json!({"free": 1}), json!({"free": null})), json!({"free": null}));
    }

    #[test]
    fn a_live_list_with_duplicate_keys_is_replaced_whole() {
        assert_eq!(
            combined(json!({"list": [{"name": "x"}, {"name": "x"}]}), json!({"list": [{"name": "y"}]})),
            json!({"list": [{"name": "y"}]})
        );
    }

    #[test]
    fn an_equal_number_keeps_its_live_spelling() {
        assert_eq!(combined(json!({"n": 1.0}), json!({"n": 1})).to_string(), r#"{"n":1.0}"#);
    }
}
