//! What holds for every object, config and patch.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in what tests share")]

use muster_merge::{
    Apply, ApplyError, FieldSet, ManagedFields, Operation, PatchKind, PathElement, Schema, Update, apply,
    fields_of, patch, track_update,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

const MAX_BYTES: usize = 1 << 16;

fn schema() -> Schema {
    Schema::from_json(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "number": {"type": "integer"},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic"},
            "plain": {"type": "array"},
            "set": {"type": "array", "x-kubernetes-list-type": "set"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object", "properties": {
                         "name": {"type": "string"}, "number": {"type": "integer"},
                         "set": {"type": "array", "x-kubernetes-list-type": "set"},
                     }}},
        }},
    }}))
    .unwrap()
}

fn word() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", "d"])
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..3i64).prop_map(Value::from),
        word().prop_map(Value::from),
        any::<bool>().prop_map(Value::from)
    ]
}

/// Free-form JSON without null, in few words so that two of them meet.
fn free() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(word().prop_map(String::from), inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn set() -> impl Strategy<Value = Value> {
    proptest::sample::subsequence(vec!["a", "b", "c", "d"], 0..=4)
        .prop_shuffle()
        .prop_map(|items| json!(items))
}

/// A map with some of these fields.
fn some_fields(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            proptest::option::of(value).prop_map(move |value| Some((name.to_owned(), value?)))
        })
        .collect();
    fields.prop_map(|fields| fields.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

fn list() -> BoxedStrategy<Value> {
    let item = some_fields(vec![("number", (0..3i64).prop_map(Value::from).boxed()), ("set", set().boxed())]);
    let names = proptest::sample::subsequence(vec!["x", "y", "z"], 0..=3).prop_shuffle();
    (names, vec(item, 3))
        .prop_map(|(names, items)| {
            let labelled = names.into_iter().zip(items).map(|(name, mut item)| {
                item["name"] = name.into();
                item
            });
            labelled.collect()
        })
        .boxed()
}

/// An object that fits the schema, without nulls.
fn object() -> BoxedStrategy<Value> {
    let labels = btree_map(word().prop_map(String::from), word().prop_map(Value::from), 0..3);
    let spec = some_fields(vec![
        ("number", (0..3i64).prop_map(Value::from).boxed()),
        ("free", free().boxed()),
        (
            "atom",
            btree_map(word().prop_map(String::from), free(), 0..3)
                .prop_map(|m| m.into_iter().collect())
                .boxed(),
        ),
        ("plain", vec(free(), 0..3).prop_map(Value::from).boxed()),
        ("set", set().boxed()),
        ("list", list()),
        ("undeclared", free().boxed()),
    ]);
    let metadata = some_fields(vec![
        ("name", Just(json!("w")).boxed()),
        ("labels", labels.prop_map(|map| map.into_iter().collect()).boxed()),
        ("finalizers", set().boxed()),
    ]);
    some_fields(vec![("metadata", metadata), ("spec", spec)])
}

/// Any JSON at all, in words that mean something here so that it reaches far.
fn anything() -> impl Strategy<Value = Value> {
    let key = select(vec![
        "metadata",
        "managedFields",
        "spec",
        "list",
        "set",
        "free",
        "name",
        "atom",
        "labels",
        "finalizers",
        "fieldsV1",
        "fieldsType",
        "manager",
        "operation",
        "f:a",
        "f:spec",
        "k:{\"name\":\"x\"}",
        "v:1",
        "i:0",
        ".",
        "$patch",
        "$retainKeys",
        "$setElementOrder/list",
        "$deleteFromPrimitiveList/set",
        "op",
        "path",
        "from",
        "value",
        "type",
        "properties",
        "items",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "a",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        select(vec![
            "x",
            "name",
            "Apply",
            "Update",
            "FieldsV1",
            "delete",
            "replace",
            "merge",
            "add",
            "remove",
            "move",
            "copy",
            "test",
            "",
            "/",
            "/spec",
            "/spec/list/-",
            "/spec/list/0",
            "/metadata/managedFields",
            "object",
            "array",
            "map",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(key.clone().prop_map(String::from), inner, 0..6)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// An operation of a JSON patch that may well succeed.
fn operation() -> impl Strategy<Value = Value> {
    let path = || {
        select(vec![
            "",
            "/spec",
            "/spec/free",
            "/spec/list",
            "/spec/list/0",
            "/spec/set/-",
            "/metadata",
            "/a",
            "/a/b",
        ])
    };
    let name = select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (name, path(), path(), anything())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
}

/// FieldsV1 with every sort of step.
fn fields_v1() -> impl Strategy<Value = Value> {
    let step = prop_oneof![
        "[a-z.:/]{0,4}".prop_map(|name| PathElement::field(name).to_fields_v1()),
        (any::<String>(), scalar())
            .prop_map(|(name, value)| PathElement::key([(name.as_str(), &value)]).to_fields_v1()),
        scalar().prop_map(|value| PathElement::value(&value).to_fields_v1()),
        any::<i64>().prop_map(|index| PathElement::Index(index).to_fields_v1()),
        Just(".".to_owned()),
    ];
    Just(json!({})).prop_recursive(4, 24, 4, move |inner| {
        btree_map(step.clone(), inner, 0..4).prop_map(|map| {
            map.into_iter()
                .map(|(step, child)| if step == "." { (step, json!({})) } else { (step, child) })
                .collect()
        })
    })
}

fn request<'a>(
    schema: &'a Schema,
    live: Option<&'a Value>,
    config: &'a Value,
    manager: &'a str,
) -> Apply<'a> {
    Apply { live, config, manager, force: false, subresource: None, schema, api_version: "v1", now: "T1" }
}

fn force(schema: &Schema, live: Option<&Value>, config: &Value, manager: &str) -> Value {
    apply(Apply { force: true, ..request(schema, live, config, manager) }).unwrap()
}

/// A stored object with a history: an object, then an update, then applies by others.
fn history(schema: &Schema, first: &Value, second: &Value, configs: &[Value]) -> Value {
    let mut live = first.clone();
    for (number, config) in configs.iter().enumerate() {
        live = force(schema, Some(&live), config, ["alice", "bob", "carol"][number % 3]);
    }
    let mut new = second.clone();
    if let Some(managed) = live["metadata"].get("managedFields") {
        new["metadata"]["managedFields"] = managed.clone();
    }
    let update = Update {
        old: Some(&live),
        new: &new,
        manager: "dave",
        subresource: None,
        schema,
        api_version: "v1",
        now: "T0",
    };
    track_update(update).unwrap()
}

fn owned(object: &Value, manager: &str) -> FieldSet {
    let owners = ManagedFields::of(object).unwrap();
    let entry = owners
        .entries()
        .find(|entry| entry.writer.manager == manager && entry.writer.operation == Operation::Apply);
    entry.map(|entry| entry.fields.clone()).unwrap_or_default()
}

fn without_managed_fields(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    out
}

/// Whether every field of `part` is in `whole` with its value; lists of strings and named items by content.
fn is_within(part: &Value, whole: &Value, path: &str) -> bool {
    match (part, whole) {
        (Value::Object(_), _) if path == "/spec/atom" => part == whole,
        (Value::Object(part), Value::Object(whole)) => part.iter().all(|(name, part)| {
            whole.get(name).is_some_and(|whole| is_within(part, whole, &format!("{path}/{name}")))
        }),
        (Value::Array(part), Value::Array(whole)) if path == "/spec/list" => part.iter().all(|part| {
            let same = whole.iter().filter(|whole| whole["name"] == part["name"]).collect::<Vec<_>>();
            matches!(same[..], [whole] if is_within(part, whole, "/spec/list/item"))
        }),
        (Value::Array(part), Value::Array(whole))
            if path.ends_with("/set") || path.ends_with("/finalizers") =>
        {
            // Sets only where the schema says so.
            if path.starts_with("/spec/set")
                || path.starts_with("/spec/list")
                || path.starts_with("/metadata")
            {
                part.iter().all(|item| whole.contains(item))
            } else {
                part == whole
            }
        }
        _ => part == whole,
    }
}

/// The merge patch that makes `new` of `old`, for objects without nulls.
fn merge_diff(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut out = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        out.insert(name.clone(), Value::Null);
    }
    for (name, new) in new {
        match old.get(name) {
            Some(old) if old == new => {}
            Some(old) if old.is_object() => {
                out.insert(name.clone(), merge_diff(old, new));
            }
            _ => {
                out.insert(name.clone(), new.clone());
            }
        }
    }
    Value::Object(out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn applying_twice_is_applying_once(
        first in object(), second in object(), configs in vec(object(), 0..4), config in object(),
    ) {
        let schema = schema();
        let live = history(&schema, &first, &second, &configs);
        let once = force(&schema, Some(&live), &config, "alice");
        let later = Apply { now: "T9", ..request(&schema, Some(&once), &config, "alice") };
        prop_assert_eq!(apply(later), Ok(once));
    }

    #[test]
    fn creating_and_applying_again_changes_nothing(config in object()) {
        let schema = schema();
        let once = force(&schema, None, &config, "alice");
        let later = Apply { now: "T9", ..request(&schema, Some(&once), &config, "alice") };
        prop_assert_eq!(apply(later), Ok(once));
    }

    #[test]
    fn the_config_is_contained_in_the_result(
        first in object(), second in object(), configs in vec(object(), 0..4), config in object(),
    ) {
        let schema = schema();
        let live = history(&schema, &first, &second, &configs);
        let applied = force(&schema, Some(&live), &config, "alice");
        prop_assert!(is_within(&config, &applied, ""), "{applied}");
    }

    #[test]
    fn the_applier_owns_exactly_the_fields_of_its_config(
        first in object(), configs in vec(object(), 0..4), config in object(),
    ) {
        let schema = schema();
        let live = history(&schema, &first, &first, &configs);
        let applied = force(&schema, Some(&live), &config, "alice");
        prop_assert_eq!(owned(&applied, "alice"), fields_of(&config, &schema).unwrap());
    }

    #[test]
    fn without_force_an_apply_leaves_what_others_own_or_is_refused(
        first in object(), configs in vec(object(), 1..4), config in object(),
    ) {
        let schema = schema();
        let live = history(&schema, &first, &first, &configs);
        match apply(request(&schema, Some(&live), &config, "erin")) {
            Ok(applied) => {
                // Erin applies for the first time, so nothing is pruned: all owners keep all they have.
                for entry in ManagedFields::of(&live).unwrap().entries() {
                    let after = ManagedFields::of(&applied).unwrap();
                    let kept = after.entry(&entry.writer).map(|entry| &entry.fields);
                    prop_assert_eq!(kept, Some(&entry.fields));
                }
            }
            Err(ApplyError::Conflicts(conflicts)) => prop_assert!(!conflicts.is_empty()),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn every_owned_field_exists(
        first in object(), second in object(), configs in vec(object(), 1..4), config in object(),
    ) {
        let schema = schema();
        let updated = history(&schema, &first, &second, &configs);
        let applied = force(&schema, Some(&updated), &config, "alice");
        for object in [updated, applied] {
            let present = fields_of(&without_managed_fields(&object), &schema).unwrap();
            for entry in ManagedFields::of(&object).unwrap().entries() {
                // A map or list that was owned as empty and is filled now is no leaf, but there.
                for path in entry.fields.difference(&present).paths() {
                    let inside = present.paths().iter().any(|field| {
                        field.strip_prefix(&path).is_some_and(|rest| rest.starts_with(['.', '[']))
                    });
                    prop_assert!(inside, "{path} of {} in {object}", entry.writer.manager);
                }
            }
        }
    }

    #[test]
    fn an_update_owns_what_it_changed(first in object(), second in object(), config in object()) {
        let schema = schema();
        let tracked = history(&schema, &first, &second, &[config]);
        let managed = ManagedFields::of(&tracked).unwrap();
        if managed.is_empty() {
            return Ok(()); // nobody ever owned anything
        }
        let all = managed.entries().fold(FieldSet::default(), |all, entry| all.union(&entry.fields));
        // Everything was owned before (by somebody, or by before-first-apply), so everything is owned after.
        let unowned = fields_of(&second, &schema).unwrap().difference(&all);
        // But for maps and lists that were emptied: their fields are gone, and emptiness is nobody's.
        for path in unowned.paths() {
            let pointer = path.replace("[name=\"", "/").replace('.', "/");
            let emptied = pointer.ends_with(']') || second.pointer(&pointer).is_none_or(|value| {
                value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
            });
            prop_assert!(emptied, "{path}");
        }
    }

    #[test]
    fn fields_v1_round_trips(fields in fields_v1()) {
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
    }

    #[test]
    fn sets_of_fields_obey_the_laws_of_sets(one in fields_v1(), other in fields_v1()) {
        let one = FieldSet::from_fields_v1(&one).unwrap();
        let other = FieldSet::from_fields_v1(&other).unwrap();
        prop_assert_eq!(one.union(&other), other.union(&one));
        prop_assert_eq!(one.intersection(&other), other.intersection(&one));
        prop_assert_eq!(one.difference(&other).union(&one.intersection(&other)), one.clone());
        prop_assert!(one.difference(&other).intersection(&other).is_empty());
        prop_assert!(one.union(&other).is_superset(&one));
        prop_assert!(one.touched_by(&other).is_superset(&one.intersection(&other)));
    }

    #[test]
    fn the_merge_patch_of_a_difference_yields_the_target(old in object(), new in object()) {
        let patched = patch(PatchKind::Merge, &old, &merge_diff(&old, &new), &schema(), MAX_BYTES);
        prop_assert_eq!(patched, Ok(new));
    }

    #[test]
    fn nothing_panics_on_arbitrary_values(
        one in anything(), other in anything(), manager in any::<String>(),
    ) {
        let schemas = [schema(), Schema::from_json(&other).unwrap_or_else(|_| Schema::free_form())];
        for schema in &schemas {
            for force in [false, true] {
                let request = Apply { force, ..request(schema, Some(&one), &other, &manager) };
                if let Ok(applied) = apply(request) {
                    prop_assert!(applied.is_object());
                }
            }
            let update = Update {
                old: Some(&one), new: &other, manager: &manager, subresource: None, schema,
                api_version: "", now: "",
            };
            prop_assert!(track_update(update).is_ok());
            for kind in [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic] {
                if let Ok(patched) = patch(kind, &one, &other, schema, MAX_BYTES) {
                    prop_assert!(patched.to_string().len() <= MAX_BYTES);
                }
            }
        }
        if let Ok(set) = FieldSet::from_fields_v1(&one) {
            prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
        }
    }

    #[test]
    fn strategic_patches_of_objects_do_not_panic(target in object(), patch_spec in anything()) {
        let body = json!({"spec": patch_spec, "metadata": patch_spec});
        if let Ok(patched) = patch(PatchKind::Strategic, &target, &body, &schema(), MAX_BYTES) {
            prop_assert!(patched.is_object());
        }
    }

    #[test]
    fn json_patches_stay_within_their_bounds(
        target in object(), operations in vec(operation(), 0..12), max in 0..2000usize,
    ) {
        if let Ok(patched) = patch(PatchKind::Json, &target, &operations.into(), &schema(), max) {
            prop_assert!(patched.to_string().len() <= max);
        }
    }
}
