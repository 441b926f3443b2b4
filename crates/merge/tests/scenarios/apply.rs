//! Server-side apply.

use crate::store::Store;
use muster_merge::ApplyError;
use serde_json::{Value, json};

fn invalid(result: Result<(), ApplyError>) -> String {
    match result {
        Err(ApplyError::Invalid(reason)) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn applying_to_nothing_creates_the_object_and_owns_its_fields() {
    let mut store = Store::empty();
    let config = json!({"apiVersion": "v1", "kind": "Web", "metadata": {"name": "w", "labels": {"a": "1"}},
                        "spec": {"replicas": 1}});
    store.apply_object("alice", config.clone()).unwrap();
    assert_eq!(store.owners(), ["alice Apply T01: .metadata.labels.a .spec.replicas"]);
    let mut object = store.object.unwrap();
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(object, config);
}

#[test]
fn applying_the_same_again_changes_nothing_not_even_the_time() {
    let mut store = Store::empty();
    let spec = json!({"containers": [{"name": "a", "image": "i"}], "groups": ["x"], "args": {"n": [1]}});
    store.apply("alice", spec.clone()).unwrap();
    let before = store.object.clone();
    store.apply("alice", spec).unwrap();
    assert_eq!(store.object, before);
}

#[test]
fn applying_another_value_renews_the_time() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1})).unwrap();
    store.apply("alice", json!({"replicas": 2})).unwrap();
    assert_eq!(store.owners(), ["alice Apply T02: .spec.replicas"]);
}

#[test]
fn another_value_for_somebodys_field_is_a_conflict() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1, "containers": [{"name": "a", "image": "i"}]})).unwrap();
    let before = store.object.clone();
    let conflicts =
        store.conflicts("bob", json!({"replicas": 2, "containers": [{"name": "a", "image": "j"}]}));
    assert_eq!(
        conflicts,
        [r#"alice Apply: .spec.containers[name="a"].image"#, "alice Apply: .spec.replicas"]
    );
    assert_eq!(store.object, before);
}

#[test]
fn a_conflict_says_who_when_and_in_which_version() {
    let mut store = Store::with(json!({"apiVersion": "v1beta1", "spec": {"replicas": 1}}));
    let Err(ApplyError::Conflicts(conflicts)) = store.apply("alice", json!({"replicas": 2})) else {
        panic!("expected conflicts")
    };
    assert_eq!(conflicts[0].to_string(), "conflict with \"before-first-apply\" using v1beta1 at T01");
    assert_eq!(conflicts[0].path, ".spec.replicas");
}

#[test]
fn the_same_value_is_owned_together() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1})).unwrap();
    store.apply("bob", json!({"replicas": 1})).unwrap();
    assert_eq!(store.owners(), ["alice Apply T01: .spec.replicas", "bob Apply T02: .spec.replicas"]);
}

#[test]
fn a_field_owned_together_cannot_be_changed_by_one() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1})).unwrap();
    store.apply("bob", json!({"replicas": 1})).unwrap();
    assert_eq!(store.conflicts("alice", json!({"replicas": 2})), ["bob Apply: .spec.replicas"]);
}

#[test]
fn the_same_number_spelled_differently_is_no_conflict() {
    let mut store = Store::empty();
    store.apply("alice", json!({"args": {"ratio": 1.0}})).unwrap();
    store.apply("bob", json!({"args": {"ratio": 1}})).unwrap();
    assert_eq!(store.spec().to_string(), r#"{"args":{"ratio":1.0}}"#);
}

#[test]
fn force_takes_the_field_from_its_owner() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1, "groups": ["x"]})).unwrap();
    store.force("bob", json!({"replicas": 2}));
    assert_eq!(store.spec()["replicas"], 2);
    assert_eq!(store.owners(), [r#"alice Apply T01: .spec.groups[="x"]"#, "bob Apply T02: .spec.replicas"]);
}

#[test]
fn an_owner_that_loses_everything_is_gone() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1})).unwrap();
    store.force("bob", json!({"replicas": 2}));
    assert_eq!(store.owners(), ["bob Apply T02: .spec.replicas"]);
}

#[test]
fn a_field_no_longer_listed_is_removed() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1, "args": {"a": 1, "b": 2}})).unwrap();
    store.apply("alice", json!({"args": {"b": 2}})).unwrap();
    assert_eq!(store.spec(), &json!({"args": {"b": 2}}));
    assert_eq!(store.owners(), ["alice Apply T02: .spec.args.b"]);
}

#[test]
fn a_field_no_longer_listed_stays_while_somebody_else_owns_it() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1, "groups": ["x", "y"]})).unwrap();
    store.apply("bob", json!({"groups": ["x"], "replicas": 1})).unwrap();
    store.apply("alice", json!({"args": {}})).unwrap();
    assert_eq!(store.spec(), &json!({"replicas": 1, "groups": ["x"], "args": {}}));
}

#[test]
fn a_field_an_updater_shares_stays_when_the_applier_drops_it() {
    let mut store = Store::with(json!({"spec": {"replicas": 1}}));
    store.apply("alice", json!({"replicas": 1, "groups": ["x"]})).unwrap();
    store.apply("alice", json!({"groups": ["x"]})).unwrap();
    assert_eq!(store.spec(), &json!({"replicas": 1, "groups": ["x"]}));
}

#[test]
fn a_dropped_block_takes_its_defaults_with_it() {
    let mut store = Store::empty();
    store.apply("alice", json!({"containers": [{"name": "a", "probe": {"path": "/"}}]})).unwrap();
    // The server fills in a default: nobody owns it.
    store.object.as_mut().unwrap()["spec"]["containers"][0]["probe"]["period"] = 10.into();
    store.apply("alice", json!({"containers": [{"name": "a"}]})).unwrap();
    assert_eq!(store.spec(), &json!({"containers": [{"name": "a"}]}));
}

#[test]
fn items_of_several_appliers_live_in_one_list() {
    let mut store = Store::empty();
    store.apply("alice", json!({"containers": [{"name": "a"}, {"name": "b"}]})).unwrap();
    store.apply("mesh", json!({"containers": [{"name": "proxy", "image": "p"}]})).unwrap();
    store.apply("alice", json!({"containers": [{"name": "b"}, {"name": "c"}]})).unwrap();
    let names: Vec<_> = store.spec()["containers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["b", "proxy", "c"]);
}

#[test]
fn a_second_applier_may_add_a_field_to_somebodys_item() {
    let mut store = Store::empty();
    store.apply("alice", json!({"containers": [{"name": "a", "image": "i"}]})).unwrap();
    store.apply("bob", json!({"containers": [{"name": "a", "command": ["run"]}]})).unwrap();
    assert_eq!(store.spec()["containers"], json!([{"name": "a", "image": "i", "command": ["run"]}]));
    // Bob owns the item too, so it outlives Alice's interest in it, without her image.
    store.apply("alice", json!({"replicas": 1})).unwrap();
    assert_eq!(store.spec()["containers"], json!([{"name": "a", "command": ["run"]}]));
}

#[test]
fn a_key_with_a_default_may_be_left_out() {
    let mut store = Store::empty();
    let ports = |ports: Value| json!({"containers": [{"name": "a", "ports": ports}]});
    store
        .apply("alice", ports(json!([{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}])))
        .unwrap();
    store.apply("bob", ports(json!([{"port": 80, "host": 8080}]))).unwrap();
    assert_eq!(
        store.spec()["containers"][0]["ports"],
        json!([{"port": 80, "protocol": "TCP", "host": 8080}, {"port": 80, "protocol": "UDP"}])
    );
}

#[test]
fn atomic_values_have_one_owner_and_are_replaced_whole() {
    let mut store = Store::empty();
    store.apply("alice", json!({"selector": {"a": 1, "b": 1}})).unwrap();
    assert_eq!(store.conflicts("bob", json!({"selector": {"a": 1}})), ["alice Apply: .spec.selector"]);
    store.force("bob", json!({"selector": {"a": 1}}));
    assert_eq!(store.spec(), &json!({"selector": {"a": 1}}));
}

#[test]
fn free_form_maps_merge_and_their_lists_do_not() {
    let mut store = Store::empty();
    store.apply("alice", json!({"args": {"a": {"x": 1}, "l": [1, 2]}})).unwrap();
    store.apply("bob", json!({"args": {"a": {"y": 2}}})).unwrap();
    assert_eq!(store.spec()["args"], json!({"a": {"x": 1, "y": 2}, "l": [1, 2]}));
    assert_eq!(store.conflicts("bob", json!({"args": {"l": [1, 2, 3]}})), ["alice Apply: .spec.args.l"]);
}

#[test]
fn replacing_a_map_by_a_scalar_conflicts_with_the_owners_of_its_fields() {
    let mut store = Store::empty();
    store.apply("alice", json!({"args": {"a": {"x": 1}}})).unwrap();
    store.update("bob", |object| object["spec"]["args"]["a"]["y"] = 2.into());
    assert_eq!(
        store.conflicts("carol", json!({"args": {"a": 5}})),
        ["alice Apply: .spec.args.a", "alice Apply: .spec.args.a.x", "bob Update: .spec.args.a.y"]
    );
}

#[test]
fn what_was_there_before_the_first_apply_has_an_owner() {
    let mut store = Store::with(json!({"metadata": {"name": "w", "uid": "u"}, "spec": {"replicas": 1},
                                       "status": {"phase": "Up"}}));
    store.apply("alice", json!({"groups": ["x"]})).unwrap();
    assert_eq!(
        store.owners(),
        [
            r#"alice Apply T01: .spec.groups[="x"]"#,
            "before-first-apply Update T01: .spec.replicas .status.phase"
        ]
    );
}

#[test]
fn an_update_by_the_same_name_is_another_writer() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1})).unwrap();
    store.update("alice", |object| object["spec"]["replicas"] = 2.into());
    assert_eq!(store.conflicts("alice", json!({"replicas": 1})), ["alice Update: .spec.replicas"]);
}

#[test]
fn an_applier_keeps_its_fields_when_it_moves_to_another_version() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1, "groups": ["x"]})).unwrap();
    store.api_version = "v2";
    store.apply("alice", json!({"replicas": 1})).unwrap();
    assert_eq!(store.spec(), &json!({"replicas": 1}));
    assert_eq!(store.owners(), ["alice Apply T02: .spec.replicas"]);
}

#[test]
fn moving_to_another_version_is_a_change() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1})).unwrap();
    store.api_version = "v2";
    store.apply("alice", json!({"replicas": 1})).unwrap();
    assert_eq!(store.object.as_ref().unwrap()["metadata"]["managedFields"][0]["apiVersion"], "v2");
    assert_eq!(store.owners(), ["alice Apply T02: .spec.replicas"]);
}

#[test]
fn what_the_last_applier_leaves_behind_has_an_owner() {
    let mut store = Store::empty();
    store.apply("alice", json!({"replicas": 1, "groups": ["x"]})).unwrap();
    store.object.as_mut().unwrap()["status"] = json!({"phase": "Up"});
    store.apply_object("alice", json!({})).unwrap();
    assert_eq!(store.owners(), ["before-first-apply Update T02: .status.phase"]);
    let before = store.object.clone();
    store.apply_object("alice", json!({})).unwrap();
    assert_eq!(store.object, before);
}

#[test]
fn empty_system_fields_in_a_config_say_nothing() {
    let mut store = Store::with(json!({"metadata": {"name": "w", "creationTimestamp": "T0"}}));
    let config = json!({"metadata": {"name": "w", "creationTimestamp": null, "managedFields": null}});
    store.apply_object("alice", config).unwrap();
    assert_eq!(store.object.unwrap()["metadata"]["creationTimestamp"], "T0");
}

#[test]
fn finalizers_and_owner_references_are_shared_by_item() {
    let mut store = Store::empty();
    store
        .apply_object(
            "alice",
            json!({"metadata": {"finalizers": ["a/a"], "ownerReferences": [{"uid": "1", "name": "x"}]}}),
        )
        .unwrap();
    store
        .apply_object(
            "bob",
            json!({"metadata": {"finalizers": ["b/b"], "ownerReferences": [{"uid": "2", "name": "y"}]}}),
        )
        .unwrap();
    store.apply_object("alice", json!({})).unwrap();
    let object = store.object.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["b/b"]));
    assert_eq!(object["metadata"]["ownerReferences"], json!([{"uid": "2", "name": "y"}]));
}

#[test]
fn a_live_list_with_duplicate_keys_does_not_stop_an_apply() {
    let mut store = Store::with(json!({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}));
    assert_eq!(
        store.conflicts("alice", json!({"containers": [{"name": "a", "image": "i"}]})),
        ["before-first-apply Update: .spec.containers"]
    );
    store.force("alice", json!({"containers": [{"name": "a", "image": "i"}]}));
    assert_eq!(store.spec(), &json!({"containers": [{"name": "a", "image": "i"}]}));
}

#[test]
fn configs_that_cannot_be_merged_are_refused_with_a_reason() {
    let mut store = Store::empty();
    assert_eq!(
        invalid(store.apply_object("alice", json!({"metadata": {"managedFields": []}}))),
        "metadata.managedFields must be nil"
    );
    assert_eq!(
        invalid(store.apply("alice", json!({"containers": [{"name": "a"}, {"name": "a"}]}))),
        r#".spec.containers: duplicate entries for key [name="a"]"#
    );
    assert_eq!(
        invalid(store.apply("alice", json!({"containers": [{"image": "i"}]}))),
        ".spec.containers: element 0 omits key field \"name\""
    );
    assert_eq!(invalid(store.apply("alice", json!([]))), ".spec: expected a map, found a list");
    assert_eq!(invalid(store.apply_object("alice", json!(null))), "the object: expected a map, found null");
    let deep = (0..200).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert_eq!(
        invalid(store.apply("alice", json!({ "args": deep }))),
        "nested too deep: at most 120 levels are allowed"
    );
}

#[test]
fn stored_ownership_that_cannot_be_read_is_refused_with_a_reason() {
    let mut store = Store::with(json!({"metadata": {"managedFields": [{"operation": "Guess"}]}}));
    assert_eq!(
        invalid(store.apply("alice", json!({}))),
        "the stored metadata.managedFields[0].operation is not Apply or Update"
    );
}

#[test]
fn the_deepest_object_allowed_can_be_stored_read_and_applied_again() {
    let deep = (0..118).fold(json!(1), |inner, _| json!({ "a": inner }));
    let mut store = Store::empty();
    store.apply("alice", deep.clone()).unwrap();
    let text = store.object.as_ref().unwrap().to_string();
    store.object = Some(serde_json::from_str(&text).unwrap());
    let before = store.object.clone();
    store.apply("alice", deep).unwrap();
    assert_eq!(store.object, before);
}
