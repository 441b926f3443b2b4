//! The three patch formats.

use crate::store::schema;
use muster_merge::{PatchError, PatchKind, TooDeep, patch};
use serde_json::{Value, json};

const ROOM: usize = 1 << 20;

fn json_patch(target: &Value, operations: &Value) -> Result<Value, PatchError> {
    patch(PatchKind::Json, target, operations, &schema(), ROOM)
}

fn strategic(spec: Value, patch_spec: Value) -> Result<Value, PatchError> {
    let target = json!({ "spec": spec });
    patch(PatchKind::Strategic, &target, &json!({ "spec": patch_spec }), &schema(), ROOM)
        .map(|mut patched| patched["spec"].take())
}

fn strategic_ok(spec: Value, patch_spec: Value) -> Value {
    strategic(spec, patch_spec).unwrap()
}

fn containers(names: &str) -> Value {
    Value::Array(names.chars().map(|name| json!({ "name": name.to_string() })).collect())
}

#[test]
fn json_operations_run_in_order() {
    let patched = json_patch(
        &json!({"a": [1, 2], "b": 1, "c": "x"}),
        &json!([
            {"op": "test", "path": "/b", "value": 1},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "remove", "path": "/a/0"},
            {"op": "replace", "path": "/b", "value": null},
            {"op": "move", "from": "/c", "path": "/d"},
            {"op": "copy", "from": "/a", "path": "/e"},
        ]),
    );
    assert_eq!(patched, Ok(json!({"a": [2, 3], "b": null, "d": "x", "e": [2, 3]})));
}

#[test]
fn a_failed_test_is_told_apart_with_its_place() {
    let operations = json!([
        {"op": "add", "path": "/a", "value": 1},
        {"op": "test", "path": "/a", "value": 2},
    ]);
    let error = json_patch(&json!({}), &operations).unwrap_err();
    assert!(matches!(&error, PatchError::TestFailed { index: 1, path, .. } if path == "/a"));
    assert_eq!(error.to_string(), "operation 1 (test) failed at path \"/a\": value did not match");
}

#[test]
fn a_test_of_what_is_not_there_fails() {
    let error = json_patch(&json!({}), &json!([{"op": "test", "path": "/a", "value": 2}])).unwrap_err();
    assert!(matches!(error, PatchError::TestFailed { index: 0, .. }));
}

#[test]
fn a_failed_operation_is_named_with_its_place() {
    for (operation, name) in [
        (json!({"op": "remove", "path": "/x"}), "remove"),
        (json!({"op": "replace", "path": "/x", "value": 1}), "replace"),
        (json!({"op": "add", "path": "/x/y", "value": 1}), "add"),
        (json!({"op": "add", "path": "/l/7", "value": 1}), "add"),
        (json!({"op": "remove", "path": "/l/-"}), "remove"),
        (json!({"op": "copy", "from": "/x", "path": "/y"}), "copy"),
        (json!({"op": "move", "from": "/l", "path": "/l/0"}), "move"),
        (json!({"op": "remove", "path": ""}), "remove"),
    ] {
        let operations = json!([{"op": "add", "path": "/ok", "value": 1}, operation]);
        let error = json_patch(&json!({"l": []}), &operations).unwrap_err();
        assert!(
            matches!(&error, PatchError::OperationFailed { index: 1, operation, .. } if *operation == name),
            "{error:?}"
        );
    }
}

#[test]
fn malformed_json_patches_are_refused_with_a_reason() {
    assert!(matches!(json_patch(&json!({}), &json!({})), Err(PatchError::Malformed(_))));
    for malformed in [
        json!({"op": "guess", "path": "/a"}),
        json!({"path": "/a"}),
        json!({"op": "remove", "path": "a"}),
        json!({"op": "add", "path": "/a"}),
        json!(1),
    ] {
        let error = json_patch(&json!({}), &json!([malformed]));
        assert!(matches!(error, Err(PatchError::MalformedOperation { index: 0, .. })), "{error:?}");
    }
}

#[test]
fn a_json_patch_has_a_limited_number_of_operations() {
    let operations = |count: usize| Value::Array(vec![json!({"op": "test", "path": "", "value": {}}); count]);
    assert_eq!(json_patch(&json!({}), &operations(10_000)), Ok(json!({})));
    assert_eq!(
        json_patch(&json!({}), &operations(10_001)),
        Err(PatchError::TooManyOperations { found: 10_001 })
    );
}

#[test]
fn copies_that_double_a_document_are_stopped_on_the_way() {
    let operations: Vec<_> =
        (0..64).map(|n| json!({"op": "copy", "from": "", "path": format!("/c{n}")})).collect();
    assert_eq!(
        json_patch(&json!({"a": "x".repeat(1000)}), &operations.into()),
        Err(PatchError::TooLarge { max_bytes: ROOM })
    );
}

#[test]
fn a_document_that_shrinks_again_on_the_way_may_still_not_pass_the_limit() {
    let big = "x".repeat(600);
    let operations = json!([
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "remove", "path": "/a"},
    ]);
    let refused = patch(PatchKind::Json, &json!({"a": big}), &operations, &schema(), 1000);
    assert_eq!(refused, Err(PatchError::TooLarge { max_bytes: 1000 }));
}

#[test]
fn replacing_and_removing_makes_room_again() {
    let text = |letter: &str| letter.repeat(600);
    let name = "a-name-that-would-add-up-if-it-were-counted-each-time";
    let at = &format!("/{name}");
    let mut operations = Vec::new();
    for _ in 0..100 {
        operations.push(json!({"op": "replace", "path": at, "value": text("y")}));
        operations.push(json!({"op": "remove", "path": at}));
        operations.push(json!({"op": "add", "path": at, "value": text("z")}));
        operations.push(json!({"op": "move", "from": at, "path": "/b"}));
        operations.push(json!({"op": "move", "from": "/b", "path": at}));
    }
    let patched = patch(PatchKind::Json, &json!({name: text("x")}), &operations.into(), &schema(), 1000);
    assert_eq!(patched, Ok(json!({name: text("z")})));
}

#[test]
fn what_moves_over_its_own_parent_still_counts() {
    let mut operations = vec![json!({"op": "add", "path": "/a", "value": {"b": "x".repeat(600)}})];
    for n in 0..8 {
        operations.push(json!({"op": "move", "from": "/a/b", "path": "/a"}));
        operations.push(json!({"op": "add", "path": "/w", "value": {}}));
        operations.push(json!({"op": "move", "from": "/a", "path": "/w/b"}));
        operations.push(json!({"op": "move", "from": "/w", "path": "/a"}));
        operations.push(json!({"op": "copy", "from": "/a", "path": format!("/c{n}")}));
    }
    operations.extend((0..8).map(|n| json!({"op": "remove", "path": format!("/c{n}")})));
    let refused = patch(PatchKind::Json, &json!({}), &operations.into(), &schema(), 2000);
    assert_eq!(refused, Err(PatchError::TooLarge { max_bytes: 2000 }));
}

#[test]
fn copying_the_same_over_and_over_is_stopped() {
    let operations = vec![json!({"op": "copy", "from": "/a", "path": "/b"}); 10_000];
    let refused = patch(PatchKind::Json, &json!({"a": "x".repeat(400)}), &operations.into(), &schema(), 1000);
    // 402 bytes each time, and 16 times 1000 in all.
    assert_eq!(refused, Err(PatchError::TooMuchWork { index: 39, max_bytes: 16_000 }));
}

#[test]
fn moving_the_same_back_and_forth_is_stopped() {
    let there_and_back = [
        json!({"op": "move", "from": "/a", "path": "/b/a"}),
        json!({"op": "move", "from": "/b/a", "path": "/a"}),
    ];
    let operations: Vec<_> = there_and_back.into_iter().cycle().take(10_000).collect();
    let target = json!({"a": "x".repeat(400), "b": {}});
    let refused = patch(PatchKind::Json, &target, &operations.into(), &schema(), 1000);
    assert_eq!(refused, Err(PatchError::TooMuchWork { index: 78, max_bytes: 16_000 }));
}

#[test]
fn inserting_into_a_list_makes_no_room() {
    let mut operations = vec![json!({"op": "add", "path": "/l/0", "value": "x".repeat(400)}); 5];
    operations.push(json!({"op": "replace", "path": "/l", "value": []}));
    let refused = patch(PatchKind::Json, &json!({"l": []}), &operations.into(), &schema(), 1000);
    assert_eq!(refused, Err(PatchError::TooLarge { max_bytes: 1000 }));
}

#[test]
fn what_a_move_out_of_a_list_shifts_makes_no_room() {
    let big = "x".repeat(400);
    // Without the first item, /l/1 is the last one: the big value is not overwritten.
    let operations = json!([
        {"op": "move", "from": "/l/0", "path": "/l/1/x"},
        {"op": "copy", "from": "/l/0/x", "path": "/y"},
        {"op": "copy", "from": "/l/0/x", "path": "/z"},
        {"op": "replace", "path": "", "value": {}},
    ]);
    let target = json!({"l": ["first", {"x": big}, {}]});
    assert_eq!(
        patch(PatchKind::Json, &target, &operations, &schema(), 1000),
        Err(PatchError::TooLarge { max_bytes: 1000 })
    );
}

#[test]
fn operations_that_deepen_a_document_step_by_step_are_stopped() {
    let copies: Vec<_> = (0..500).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/a"})).collect();
    assert_eq!(json_patch(&json!({"a": {}}), &copies.into()), Err(PatchError::TooDeep(TooDeep)));

    let mut moves = Vec::new();
    for _ in 0..200 {
        moves.push(json!({"op": "add", "path": "/b", "value": {}}));
        moves.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
        moves.push(json!({"op": "move", "from": "/b", "path": "/a"}));
    }
    assert_eq!(json_patch(&json!({"a": {}}), &moves.into()), Err(PatchError::TooDeep(TooDeep)));
}

#[test]
fn a_merge_patch_sets_fields_and_null_deletes_them() {
    let patched = patch(
        PatchKind::Merge,
        &json!({"a": {"b": 1, "c": 2}, "l": [1, 2]}),
        &json!({"a": {"b": null, "d": 3}, "l": [3]}),
        &schema(),
        ROOM,
    );
    assert_eq!(patched, Ok(json!({"a": {"c": 2, "d": 3}, "l": [3]})));
}

#[test]
fn no_kind_of_patch_passes_the_size_limit() {
    let text = "x".repeat(100);
    for (kind, body) in [
        (PatchKind::Json, json!([{"op": "add", "path": "/a", "value": text}])),
        (PatchKind::Merge, json!({"a": text})),
        (PatchKind::Strategic, json!({"a": text})),
    ] {
        let patched = |max_bytes| patch(kind, &json!({}), &body, &schema(), max_bytes);
        assert_eq!(patched(108), Ok(json!({"a": text})));
        assert_eq!(patched(107), Err(PatchError::TooLarge { max_bytes: 107 }), "{kind:?}");
    }
}

#[test]
fn no_kind_of_patch_nests_too_deep() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "a": inner }));
    for (kind, body) in [
        (PatchKind::Json, json!([{"op": "add", "path": "/a", "value": deep}])),
        (PatchKind::Merge, deep.clone()),
        (PatchKind::Strategic, deep.clone()),
    ] {
        let patched = patch(kind, &json!({}), &body, &schema(), ROOM);
        assert_eq!(patched, Err(PatchError::TooDeep(TooDeep)), "{kind:?}");
    }
}

#[test]
fn the_deepest_document_allowed_can_be_patched_and_read_back() {
    let deep = (0..126).fold(json!({}), |inner, _| json!({ "a": inner }));
    for (kind, body) in [
        (PatchKind::Json, json!([{"op": "copy", "from": "/a", "path": "/b"}])),
        (PatchKind::Merge, deep.clone()),
        (PatchKind::Strategic, deep.clone()),
    ] {
        let patched = patch(kind, &deep, &body, &schema(), ROOM).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&patched.to_string()).unwrap(), patched, "{kind:?}");
    }
}

#[test]
fn a_strategic_patch_merges_keyed_lists_by_key() {
    assert_eq!(
        strategic_ok(
            json!({"containers": [{"name": "a", "image": "i", "command": ["x"]}, {"name": "b"}]}),
            json!({"containers": [{"name": "c"}, {"name": "a", "image": "j", "command": null}]})
        ),
        json!({"containers": [{"name": "a", "image": "j"}, {"name": "b"}, {"name": "c"}]})
    );
}

#[test]
fn a_strategic_patch_adds_to_sets_and_replaces_other_lists() {
    assert_eq!(
        strategic_ok(
            json!({"groups": ["x"], "args": {"l": [1]}}),
            json!({"groups": ["x", "y"], "args": {"l": [2]}})
        ),
        json!({"groups": ["x", "y"], "args": {"l": [2]}})
    );
}

#[test]
fn a_strategic_patch_deletes_an_item_by_its_key() {
    assert_eq!(
        strategic_ok(
            json!({"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}),
            json!({"containers": [{"$patch": "delete", "name": "a"}, {"$patch": "delete", "name": "zzz"}]})
        ),
        json!({"containers": [{"name": "b"}]})
    );
}

#[test]
fn a_strategic_patch_replaces_an_item_a_list_or_a_map() {
    let target =
        json!({"containers": [{"name": "a", "image": "i"}, {"name": "b"}], "args": {"x": 1, "y": 2}});
    assert_eq!(
        strategic_ok(
            target.clone(),
            json!({"containers": [{"$patch": "replace", "name": "a", "command": ["c"]}]})
        )["containers"],
        json!([{"name": "a", "command": ["c"]}, {"name": "b"}])
    );
    assert_eq!(
        strategic_ok(target.clone(), json!({"containers": [{"name": "c"}, {"$patch": "replace"}]}))["containers"],
        json!([{"name": "c"}])
    );
    assert_eq!(
        strategic_ok(target.clone(), json!({"args": {"$patch": "replace", "z": 3}}))["args"],
        json!({"z": 3})
    );
    assert_eq!(strategic_ok(target, json!({"args": {"$patch": "delete"}}))["args"], json!({}));
}

#[test]
fn directives_never_end_up_in_the_object() {
    let patched = strategic_ok(
        json!({}),
        json!({
            "$retainKeys": ["containers"],
            "$setElementOrder/containers": [{"name": "a"}],
            "$deleteFromPrimitiveList/groups": ["x"],
            "containers": [{"$patch": "merge", "name": "a", "image": null}, {"$patch": "delete", "name": "b"}],
        }),
    );
    assert_eq!(patched, json!({"containers": [{"name": "a"}]}));
}

#[test]
fn a_strategic_patch_orders_what_it_names_and_leaves_the_rest_in_place() {
    let ordered = |live: &str, order: &str| {
        let patched = strategic_ok(
            json!({"containers": containers(live)}),
            json!({"$setElementOrder/containers": containers(order)}),
        );
        let list = patched["containers"].as_array().unwrap().clone();
        list.iter().filter_map(|item| item["name"].as_str()).collect::<String>()
    };
    assert_eq!(ordered("abc", "cba"), "cba");
    assert_eq!(ordered("abcd", "ca"), "bcda");
    assert_eq!(ordered("ab", "bxa"), "ba");
}

#[test]
fn a_strategic_patch_orders_new_items_too() {
    assert_eq!(
        strategic_ok(
            json!({"groups": ["a", "b"]}),
            json!({"groups": ["c"], "$setElementOrder/groups": ["c", "a", "b"]})
        ),
        json!({"groups": ["c", "a", "b"]})
    );
}

#[test]
fn a_strategic_patch_deletes_values_from_a_set() {
    assert_eq!(
        strategic_ok(
            json!({"groups": ["a", "b", "c"]}),
            json!({"$deleteFromPrimitiveList/groups": ["a", "c", "z"]})
        ),
        json!({"groups": ["b"]})
    );
}

#[test]
fn a_strategic_patch_drops_fields_it_does_not_retain() {
    assert_eq!(
        strategic_ok(
            json!({"replicas": 1, "args": {"a": 1}}),
            json!({"$retainKeys": ["args"], "args": {"b": 2}})
        ),
        json!({"args": {"a": 1, "b": 2}})
    );
}

#[test]
fn strategic_patches_that_cannot_be_merged_are_refused_with_place_and_reason() {
    for (patch, reason) in [
        (json!({"containers": [{"image": "i"}]}), ".spec.containers: element 0 omits key field \"name\""),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            ".spec.containers: element 0 omits key field \"name\"",
        ),
        (json!({"containers": ["a"]}), ".spec.containers: element 0 is not a map"),
        (json!({"args": {"$patch": "guess"}}), ".spec.args: $patch cannot be \"guess\""),
        (
            json!({"containers": [{"name": "a", "$patch": 1}]}),
            ".spec.containers[name=\"a\"]: $patch cannot be 1",
        ),
        (json!({"$retainKeys": "a"}), ".spec: $retainKeys is not a list of field names"),
        (
            json!({"$deleteFromPrimitiveList/groups": 1}),
            ".spec.groups: $deleteFromPrimitiveList is not a list",
        ),
        (json!({"$setElementOrder/groups": 1}), ".spec.groups: $setElementOrder is not a list"),
    ] {
        assert_eq!(strategic(json!({"groups": ["x"]}), patch).unwrap_err().to_string(), reason);
    }
    let refused = patch(PatchKind::Strategic, &json!({}), &json!([]), &schema(), ROOM);
    assert!(matches!(refused, Err(PatchError::Malformed(_))));
}

#[test]
fn a_stored_list_with_duplicate_keys_can_still_be_patched() {
    let twice = json!({"containers": [{"name": "a"}, {"name": "a"}, {"name": "b"}]});
    assert_eq!(
        strategic_ok(twice.clone(), json!({"containers": [{"name": "b", "image": "i"}]}))["containers"],
        json!([{"name": "a"}, {"name": "a"}, {"name": "b", "image": "i"}])
    );
    assert_eq!(
        strategic_ok(twice.clone(), json!({"containers": [{"$patch": "delete", "name": "a"}]}))["containers"],
        json!([{"name": "b"}])
    );
    assert_eq!(strategic_ok(twice.clone(), json!({"$setElementOrder/containers": containers("ba")})), twice);
}
