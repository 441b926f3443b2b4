//! Ownership after writes that are not applies.

use crate::store::Store;
use muster_merge::{PatchKind, TooDeep, Update, track_update};
use serde_json::{Value, json};

fn applied(spec: Value) -> Store {
    let mut store = Store::empty();
    store.apply("alice", spec).unwrap();
    store
}

fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    object["spec"][field] = value.into();
}

fn metadata(object: &mut Value) -> &mut serde_json::Map<String, Value> {
    object["metadata"].as_object_mut().unwrap()
}

#[test]
fn an_object_nobody_applied_carries_no_ownership() {
    let mut store = Store::empty();
    store.update("bob", |object| *object = json!({"metadata": {"name": "w"}, "spec": {"replicas": 1}}));
    store.update("bob", |object| put(object, "replicas", 2));
    assert_eq!(store.object, Some(json!({"metadata": {"name": "w"}, "spec": {"replicas": 2}})));
}

#[test]
fn a_changed_field_moves_to_who_changed_it() {
    let mut store = applied(json!({"replicas": 1, "groups": ["x"]}));
    store.update("hpa", |object| put(object, "replicas", 5));
    assert_eq!(store.owners(), [r#"alice Apply T01: .spec.groups[="x"]"#, "hpa Update T02: .spec.replicas"]);
}

#[test]
fn an_added_field_belongs_to_who_added_it() {
    let mut store = applied(json!({"replicas": 1}));
    store.update("bob", |object| put(object, "containers", json!([{"name": "a"}])));
    assert_eq!(
        store.owners(),
        [
            "alice Apply T01: .spec.replicas",
            r#"bob Update T02: .spec.containers[name="a"] .spec.containers[name="a"].name"#
        ]
    );
}

#[test]
fn a_removed_field_is_nobodys_any_more() {
    let mut store = applied(json!({"replicas": 1, "containers": [{"name": "a", "image": "i"}]}));
    store.update("bob", |object| put(object, "containers", json!([])));
    assert_eq!(store.owners(), ["alice Apply T01: .spec.replicas"]);
}

#[test]
fn a_write_that_changes_nothing_leaves_ownership_to_the_letter() {
    let mut store = applied(json!({"replicas": 1}));
    let before = store.object.clone();
    store.update("bob", |_| {});
    assert_eq!(store.object, before);
    store.update("bob", |object| {
        metadata(object).remove("managedFields");
    });
    assert_eq!(store.object, before);
}

#[test]
fn a_write_that_changes_nothing_does_not_even_sort_the_owners() {
    let mut store = applied(json!({"replicas": 1}));
    store.apply("bob", json!({"groups": ["x"]})).unwrap();
    let owners = store.object.as_mut().unwrap()["metadata"]["managedFields"].as_array_mut().unwrap();
    owners.reverse();
    let before = store.object.clone();
    store.update("carol", |_| {});
    assert_eq!(store.object, before);
}

#[test]
fn moving_an_item_moves_no_ownership() {
    let mut store = applied(json!({"groups": ["x", "y"]}));
    let before = store.owners();
    store.update("bob", |object| put(object, "groups", json!(["y", "x"])));
    assert_eq!(store.spec()["groups"], json!(["y", "x"]));
    assert_eq!(store.owners(), before);
}

#[test]
fn a_client_that_sends_no_ownership_does_not_erase_it() {
    let mut store = applied(json!({"replicas": 1, "groups": ["x"]}));
    store.update("bob", |object| *object = json!({"spec": {"replicas": 2, "groups": ["x"]}}));
    assert_eq!(store.owners(), [r#"alice Apply T01: .spec.groups[="x"]"#, "bob Update T02: .spec.replicas"]);
}

#[test]
fn a_client_that_sends_unreadable_ownership_does_not_erase_it() {
    let mut store = applied(json!({"replicas": 1}));
    let before = store.object.clone();
    for unreadable in [json!([{"operation": "Guess"}]), json!("x"), json!([1])] {
        store.update("bob", |object| {
            metadata(object).insert("managedFields".into(), unreadable);
        });
        assert_eq!(store.object, before);
    }
}

#[test]
fn an_empty_list_of_owners_forgets_them_all() {
    for reset in [json!([]), json!([{}])] {
        let mut store = applied(json!({"replicas": 1}));
        store.update("bob", |object| {
            metadata(object).insert("managedFields".into(), reset);
            put(object, "replicas", 2);
        });
        assert_eq!(store.object, Some(json!({"metadata": {}, "spec": {"replicas": 2}})));
    }
}

#[test]
fn a_client_may_hand_ownership_on() {
    let mut store = applied(json!({"replicas": 1}));
    store.update("bob", |object| object["metadata"]["managedFields"][0]["manager"] = "carol".into());
    assert_eq!(store.owners(), ["carol Apply T01: .spec.replicas"]);
}

#[test]
fn a_write_to_a_subresource_cannot_touch_ownership_but_is_tracked() {
    let mut store = applied(json!({"replicas": 1}));
    store.update_subresource("kubelet", Some("status"), |object| {
        metadata(object).insert("managedFields".into(), json!([]));
        object["status"] = json!({"phase": "Up"});
    });
    assert_eq!(
        store.owners(),
        ["alice Apply T01: .spec.replicas", "kubelet/status Update T02: .status.phase"]
    );
}

#[test]
fn a_writer_that_writes_again_has_one_entry_with_the_new_time() {
    let mut store = applied(json!({"replicas": 1, "groups": ["x"]}));
    store.update("bob", |object| put(object, "replicas", 2));
    store.update("bob", |object| put(object, "args", json!({"a": 1})));
    assert_eq!(
        store.owners(),
        [r#"alice Apply T01: .spec.groups[="x"]"#, "bob Update T03: .spec.args.a .spec.replicas"]
    );
}

#[test]
fn only_so_many_updaters_are_remembered_by_name() {
    let mut store = applied(json!({"replicas": 1}));
    for number in 0..13 {
        store.update(&format!("m{number:02}"), |object| {
            let args = object["spec"].as_object_mut().unwrap().entry("args").or_insert_with(|| json!({}));
            args[format!("a{number:02}")] = 1.into();
        });
    }
    let owners = store.owners();
    assert_eq!(owners.len(), 11);
    assert_eq!(owners[0], "alice Apply T01: .spec.replicas");
    assert_eq!(
        owners[1],
        "ancient-changes Update T05: .spec.args.a00 .spec.args.a01 .spec.args.a02 .spec.args.a03"
    );
    assert_eq!(owners[2], "m04 Update T06: .spec.args.a04");
}

#[test]
fn a_patch_is_tracked_like_any_write() {
    let mut store = applied(json!({"replicas": 1, "groups": ["x"]}));
    store.patch("bob", PatchKind::Merge, &json!({"spec": {"replicas": 3}}));
    assert_eq!(store.owners(), [r#"alice Apply T01: .spec.groups[="x"]"#, "bob Update T02: .spec.replicas"]);
}

#[test]
fn an_object_that_nests_too_deep_is_refused() {
    let deep = (0..130).fold(json!(1), |inner, _| json!({ "a": inner }));
    let schema = muster_merge::Schema::free_form();
    let update = Update {
        old: None,
        new: &deep,
        manager: "bob",
        subresource: None,
        schema: &schema,
        api_version: "v1",
        now: "T1",
    };
    assert_eq!(track_update(update), Err(TooDeep));
}
