//! Writes that come too late, for the wrong object, or with options that make no sense.

use muster_e2e::http::Request;
use serde_json::{Value, json};

use crate::place::{Place, blamed, task};

fn put(place: &Place<'_>, object: &Value) -> Request {
    place.http().request("PUT", &place.task("")).json(&object.to_string())
}

fn delete(place: &Place<'_>, options: &Value) -> Request {
    place.http().request("DELETE", &place.task("")).json(&options.to_string())
}

#[test]
fn creating_what_exists_is_refused() {
    let place = Place::new();
    let status = place.refuses(place.post(&task("a")), 409, "AlreadyExists", &[r#"tasks.muster.dev "a""#]);
    assert_eq!(status["details"], json!({"name": "a", "group": "muster.dev", "kind": "tasks"}));
}

#[test]
fn replacing_with_a_stale_revision_is_refused() {
    let place = Place::new();
    let mut stale = place.read();
    place.patch("merge-patch+json", r#"{"spec":{"priority":2}}"#).send();
    stale["spec"]["priority"] = json!(3);
    place.refuses(put(&place, &stale), 409, "Conflict", &["the object has been modified"]);
}

#[test]
fn replacing_without_a_revision_is_refused() {
    let place = Place::new();
    let status = place.refuses(put(&place, &task("a")), 422, "Invalid", &["metadata.resourceVersion"]);
    assert_eq!(blamed(&status), ["metadata.resourceVersion"]);
}

#[test]
fn replacing_what_is_not_there_is_refused() {
    let place = Place::new();
    let mut object = place.read();
    object["metadata"]["name"] = json!("b");
    let request = place.http().request("PUT", &format!("{}/b", place.tasks())).json(&object.to_string());
    place.refuses(request, 404, "NotFound", &[r#"tasks.muster.dev "b" not found"#]);
}

#[test]
fn replacing_under_another_name_is_refused() {
    let place = Place::new();
    let mut object = place.read();
    object["metadata"]["name"] = json!("b");
    place.refuses(put(&place, &object), 400, "BadRequest", &["name", "(b)", "(a)"]);
}

#[test]
fn replacing_the_uid_is_refused() {
    let place = Place::new();
    let mut object = place.read();
    object["metadata"]["uid"] = json!("another");
    let status = place.refuses(put(&place, &object), 422, "Invalid", &["metadata.uid"]);
    assert_eq!(blamed(&status), ["metadata.uid"]);
}

#[test]
fn what_only_the_server_sets_is_not_changed_by_a_replacement() {
    let place = Place::new();
    let before = place.read();
    let mut object = before.clone();
    object["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    object["metadata"]["generation"] = json!(77);
    object["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let answer = put(&place, &object).send();
    assert_eq!((answer.code, answer.json()["metadata"].clone()), (200, before["metadata"].clone()));
}

#[test]
fn deleting_what_is_not_there_is_refused() {
    let place = Place::new();
    let request = place.http().request("DELETE", &format!("{}/b", place.tasks()));
    place.refuses(request, 404, "NotFound", &[r#"tasks.muster.dev "b" not found"#]);
}

#[test]
fn deleting_another_object_of_the_same_name_is_refused() {
    let place = Place::new();
    for (field, value) in [("uid", "another"), ("resourceVersion", "1")] {
        let request = delete(&place, &json!({"preconditions": {field: value}}));
        place.refuses(request, 409, "Conflict", &["Precondition failed", value]);
    }
}

#[test]
fn deletion_options_that_make_no_sense_are_refused() {
    let place = Place::new();
    for (options, words) in [
        (json!({"propagationPolicy": "Sideways"}), "propagationPolicy"),
        (json!({"propagationPolicy": "Orphan", "orphanDependents": true}), "orphanDependents"),
        (json!({"dryRun": ["Some"]}), "dryRun"),
        (json!({"gracePeriodSeconds": "soon"}), "gracePeriodSeconds"),
        (json!({"preconditions": 5}), "preconditions"),
        (json!([]), "DeleteOptions"),
        (json!("x"), "DeleteOptions"),
    ] {
        place.refuses(delete(&place, &options), 400, "BadRequest", &[words]);
    }
}

#[test]
fn deletion_options_that_cannot_be_read_are_refused() {
    let place = Place::new();
    let request = place.http().request("DELETE", &place.task("")).json("{");
    place.refuses(request, 400, "BadRequest", &["valid JSON", "line 1 column 1"]);
}

#[test]
fn a_status_for_the_wrong_object_is_refused() {
    let place = Place::new();
    let mut object = place.read();
    object["kind"] = json!("Application");
    let request = place.http().request("PUT", &place.task("/status")).json(&object.to_string());
    place.refuses(request, 400, "BadRequest", &["kind"]);
}

#[test]
fn a_dry_run_of_anything_changes_nothing() {
    let place = Place::new();
    let before = place.read();
    let http = place.http();
    let mut changed = before.clone();
    changed["spec"]["priority"] = json!(9);
    for answer in [
        http.post(&format!("{}?dryRun=All", place.tasks()), &task("b").to_string()),
        http.put(&place.task("?dryRun=All"), &changed.to_string()),
        http.patch(&place.task("?dryRun=All"), "merge-patch+json", r#"{"spec":{"priority":9}}"#),
        http.delete(&place.task("?dryRun=All")),
        http.delete(&format!("{}?dryRun=All", place.tasks())),
    ] {
        assert!(answer.code < 300, "{}", answer.text());
    }
    assert_eq!(place.read(), before);
    assert_eq!(http.get(&place.tasks()).json()["items"].as_array().map(Vec::len), Some(1));
}
