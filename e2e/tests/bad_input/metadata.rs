//! Names, labels and the like that break the rules.

use serde_json::{Value, json};

use crate::place::{Place, blamed, task, task_with};

/// Checks that an object is refused as invalid, with one field to blame.
#[track_caller]
fn invalid(place: &Place<'_>, object: &Value, field: &str, why: &str) {
    let status = place.refuses(place.post(object), 422, "Invalid", &[field, why]);
    assert!(blamed(&status).contains(&field), "{status}");
    assert_eq!(status["details"]["kind"], "Task");
    assert_eq!(status["details"]["group"], "muster.dev");
}

#[test]
fn names_that_are_no_subdomains_are_refused() {
    let place = Place::new();
    let rule = "a lowercase RFC 1123 subdomain must consist of";
    for name in ["A", "a_b", "-a", "a-", "a..b", "a b", "ü", "a/b", "."] {
        invalid(&place, &task_with("/metadata/name", json!(name)), "metadata.name", rule);
    }
    let long = json!("a".repeat(254));
    invalid(&place, &task_with("/metadata/name", long), "metadata.name", "no more than 253 characters");
}

#[test]
fn an_object_without_any_name_is_refused() {
    let place = Place::new();
    let mut object = task("");
    object["metadata"] = json!({});
    invalid(&place, &object, "metadata.name", "name or generateName is required");
}

#[test]
fn prefixes_of_names_that_could_not_become_names_are_refused() {
    let place = Place::new();
    for prefix in ["A-", "-", "a_"] {
        let mut object = task("");
        object["metadata"] = json!({ "generateName": prefix });
        invalid(&place, &object, "metadata.generateName", "subdomain");
    }
}

#[test]
fn labels_that_break_the_rules_are_refused() {
    let place = Place::new();
    for (key, value, why) in [
        ("a b", "x", "name part must consist of"),
        ("/a", "x", "prefix part must be non-empty"),
        ("a/b/c", "x", "a qualified name must consist of"),
        ("", "x", "name part must be non-empty"),
        ("a", "no blanks", "a valid label must be an empty string or consist of"),
        ("a", "-", "a valid label must be an empty string or consist of"),
        ("a", &"x".repeat(64), "no more than 63 characters"),
    ] {
        invalid(&place, &task_with("/metadata/labels", json!({ key: value })), "metadata.labels", why);
    }
}

#[test]
fn annotations_that_break_the_rules_are_refused() {
    let place = Place::new();
    let field = "metadata.annotations";
    invalid(
        &place,
        &task_with("/metadata/annotations", json!({"a b": "x"})),
        field,
        "name part must consist of",
    );
    let large = json!({"a": "x".repeat(300_000)});
    invalid(&place, &task_with("/metadata/annotations", large), field, "may not be more than 262144 bytes");
}

#[test]
fn finalizers_that_break_the_rules_are_refused() {
    let place = Place::new();
    let object = task_with("/metadata/finalizers", json!(["a b"]));
    invalid(&place, &object, "metadata.finalizers", "name part must consist of");
}

#[test]
fn owners_that_are_not_fully_named_are_refused() {
    let place = Place::new();
    let owner = json!([{"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "name": "a", "uid": ""}]);
    let object = task_with("/metadata/ownerReferences", owner);
    invalid(&place, &object, "metadata.ownerReferences[0].uid", "must not be empty");
}

#[test]
fn two_controllers_are_refused() {
    let place = Place::new();
    let owner =
        |uid: &str| json!({"apiVersion": "v1", "kind": "K", "name": "a", "uid": uid, "controller": true});
    let object = task_with("/metadata/ownerReferences", json!([owner("1"), owner("2")]));
    invalid(
        &place,
        &object,
        "metadata.ownerReferences",
        "only one reference can have controller set to true",
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let place = Place::new();
    let mut object = task_with("/metadata/labels", json!({"a b": "c d"}));
    object["metadata"]["name"] = json!("B");
    object["spec"] = json!({"kind": "K", "priority": -1, "subject": {"kind": "", "name": ""}});
    let status = place.refuses(place.post(&object), 422, "Invalid", &[]);
    let mut fields = blamed(&status);
    fields.sort_unstable();
    fields.dedup();
    let expected = [
        "metadata.labels",
        "metadata.name",
        "spec.kind",
        "spec.priority",
        "spec.subject.kind",
        "spec.subject.name",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn values_that_a_kind_does_not_allow_are_refused_by_name() {
    let place = Place::new();
    let container = json!({"name": "x", "image": "i"});
    for (pointer, value, field) in [
        ("/spec", json!({}), "spec.kind"),
        ("/spec/priority", json!(-1), "spec.priority"),
        ("/spec/addon", json!("Not A Name"), "spec.addon"),
        ("/spec/subject", json!({"kind": "Application", "name": ""}), "spec.subject.name"),
        ("/spec/container", json!({"name": "x"}), "spec.container.command"),
        ("/spec/containers", json!([container, container]), "spec.containers[1].name"),
        ("/spec/containers", json!([{"image": "i"}]), "spec.containers[0].name"),
        ("/spec/retry", json!({"backoff": {"factor": 0.5}}), "spec.retry.backoff.factor"),
    ] {
        let status = place.refuses(place.post(&task_with(pointer, value)), 422, "Invalid", &[field]);
        assert!(blamed(&status).contains(&field), "{status}");
    }
}

#[test]
fn a_namespace_that_is_no_label_is_refused() {
    let place = Place::new();
    let path = "/apis/muster.dev/v1alpha1/namespaces/Not_One/tasks";
    let request = place.http().request("POST", path).json(&task("b").to_string());
    place.refuses(request, 400, "BadRequest", &["Not_One", "RFC 1123 label"]);
}

#[test]
fn a_new_object_with_a_revision_is_refused() {
    let place = Place::new();
    let object = task_with("/metadata/resourceVersion", json!("5"));
    place.refuses(place.post(&object), 400, "BadRequest", &["metadata.resourceVersion"]);
}

#[test]
fn an_object_for_another_namespace_is_refused() {
    let place = Place::new();
    let object = task_with("/metadata/namespace", json!("elsewhere"));
    place.refuses(place.post(&object), 400, "BadRequest", &["namespace", "elsewhere", place.namespace()]);
}

#[test]
fn an_object_without_a_namespace_in_its_path_is_refused() {
    let place = Place::new();
    let request =
        place.http().request("POST", "/apis/muster.dev/v1alpha1/tasks").json(&task("b").to_string());
    place.refuses(request, 400, "BadRequest", &["namespace"]);
}
