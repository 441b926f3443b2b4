//! Patches that cannot be read, do not fit, or lead to something that is not allowed.

use serde_json::json;

use crate::place::{Place, blamed};

const JSON: &str = "json-patch+json";
const MERGE: &str = "merge-patch+json";
const STRATEGIC: &str = "strategic-merge-patch+json";
const APPLY: &str = "apply-patch+yaml";

#[test]
fn patches_that_cannot_be_read_are_refused() {
    let place = Place::new();
    for language in [JSON, MERGE, STRATEGIC] {
        for text in ["", "{", "[1"] {
            place.refuses(place.patch(language, text), 400, "BadRequest", &["not valid JSON"]);
        }
    }
}

#[test]
fn patches_in_an_unknown_language_are_refused_with_those_there_are() {
    let place = Place::new();
    let words = ["json-patch+json", "merge-patch+json", "apply-patch+yaml"];
    for language in ["json", "yaml", "nonsense"] {
        place.refuses(place.patch(language, "{}"), 415, "UnsupportedMediaType", &words);
    }
}

#[test]
fn json_patches_that_are_no_operations_are_refused() {
    let place = Place::new();
    for (text, words) in [
        ("{}", &[][..]),
        ("5", &[]),
        (r#"[{"op":"dance","path":"/spec"}]"#, &["dance"]),
        (r#"[{"path":"/spec"}]"#, &["op"]),
        (r#"[{"op":"add","path":"/spec/priority"}]"#, &["value"]),
        (r#"[{"op":"add","path":"spec","value":1}]"#, &["operation 0", "slash"]),
    ] {
        place.refuses(place.patch(JSON, text), 400, "BadRequest", words);
    }
}

#[test]
fn json_patches_that_do_not_fit_are_refused_with_their_path() {
    let place = Place::new();
    for (text, path) in [
        (r#"[{"op":"remove","path":"/spec/locator"}]"#, "/spec/locator"),
        (r#"[{"op":"replace","path":"/spec/a/b","value":1}]"#, "/spec/a/b"),
        (r#"[{"op":"move","from":"/nothing","path":"/spec"}]"#, "/nothing"),
        (r#"[{"op":"test","path":"/spec/priority","value":5}]"#, "/spec/priority"),
    ] {
        place.refuses(place.patch(JSON, text), 422, "Invalid", &[path]);
    }
}

#[test]
fn a_json_patch_is_carried_out_whole_or_not_at_all() {
    let place = Place::new();
    let text = r#"[{"op":"replace","path":"/spec/priority","value":5},{"op":"remove","path":"/nothing"}]"#;
    place.refuses(place.patch(JSON, text), 422, "Invalid", &["/nothing"]);
}

#[test]
fn json_patches_with_very_many_operations_are_refused() {
    let place = Place::new();
    let operations = vec![json!({"op": "add", "path": "/spec/priority", "value": 1}); 20_000];
    place.refuses(place.patch(JSON, &json!(operations).to_string()), 400, "BadRequest", &["20000"]);
}

#[test]
fn json_patches_that_grow_without_end_are_refused() {
    let place = Place::new();
    let mut operations = vec![json!({"op": "add", "path": "/spec/data", "value": {"x": "x".repeat(1000)}})];
    for number in 0..30 {
        operations.push(json!({"op": "copy", "from": "/spec/data", "path": format!("/spec/data/n{number}")}));
    }
    place.refuses(place.patch(JSON, &json!(operations).to_string()), 413, "RequestEntityTooLarge", &[]);
}

#[test]
fn merge_patches_that_are_no_objects_are_refused() {
    let place = Place::new();
    for text in ["5", "[]", "\"x\"", "null"] {
        place.refuses(place.patch(MERGE, text), 400, "BadRequest", &[]);
    }
}

#[test]
fn patches_to_something_invalid_are_refused_by_field() {
    let place = Place::new();
    for (language, text) in [
        (MERGE, r#"{"spec":{"priority":-1}}"#),
        (STRATEGIC, r#"{"spec":{"priority":-1}}"#),
        (JSON, r#"[{"op":"replace","path":"/spec/priority","value":-1}]"#),
    ] {
        let status = place.refuses(place.patch(language, text), 422, "Invalid", &["spec.priority"]);
        assert_eq!(blamed(&status), ["spec.priority"]);
    }
}

#[test]
fn patches_to_a_wrong_type_are_refused_by_field() {
    let place = Place::new();
    for (language, text) in [
        (MERGE, r#"{"spec":{"priority":"high"}}"#),
        (STRATEGIC, r#"{"spec":{"priority":"high"}}"#),
        (JSON, r#"[{"op":"replace","path":"/spec/priority","value":"high"}]"#),
    ] {
        place.refuses(place.patch(language, text), 400, "BadRequest", &["spec.priority", "high"]);
    }
}

#[test]
fn patches_of_what_the_object_is_are_refused() {
    let place = Place::new();
    for text in [r#"{"kind":"Application"}"#, r#"{"apiVersion":"v1"}"#, r#"{"kind":null}"#] {
        place.refuses(place.patch(MERGE, text), 400, "BadRequest", &[]);
    }
}

#[test]
fn strict_patches_with_unknown_fields_are_refused_by_name() {
    let place = Place::new();
    let request = place
        .http()
        .request("PATCH", &place.task("?fieldValidation=Strict"))
        .header("Content-Type", "application/merge-patch+json")
        .body(r#"{"spec":{"nonsense":1}}"#);
    place.refuses(request, 400, "BadRequest", &["spec.nonsense"]);
}

#[test]
fn a_deeply_nested_patch_is_refused() {
    let place = Place::new();
    let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    place.refuses(place.patch(MERGE, &format!(r#"{{"spec":{{"data":{deep}}}}}"#)), 400, "BadRequest", &[]);
}

#[test]
fn strategic_patches_with_unknown_directives_are_refused() {
    let place = Place::new();
    let text = r#"{"spec":{"policy":{"$patch":"explode"}}}"#;
    place.refuses(place.patch(STRATEGIC, text), 422, "Invalid", &[".spec.policy", "$patch", "explode"]);
}

#[test]
fn applying_without_a_manager_is_refused() {
    let place = Place::new();
    let text = "apiVersion: muster.dev/v1alpha1\nkind: Task\nspec: {kind: k}\n";
    place.refuses(place.patch(APPLY, text), 400, "BadRequest", &["fieldManager"]);
}

#[test]
fn configurations_that_cannot_be_applied_are_refused() {
    let place = Place::new();
    for (text, words) in [
        ("a: [", &["not valid YAML"][..]),
        ("[]", &[]),
        ("kind: Task\nspec: {kind: k}\n", &["apiVersion"]),
        ("apiVersion: muster.dev/v1alpha1\nkind: Addon\n", &["kind", "Addon"]),
        ("apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {name: other}\n", &["name", "other"]),
        (
            "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {namespace: other}\n",
            &["namespace", "other"],
        ),
        (
            "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {managedFields: [{}]}\n",
            &["managedFields"],
        ),
        ("apiVersion: muster.dev/v1alpha1\nkind: Task\nspec: {nonsense: 1}\n", &["spec.nonsense"]),
        ("apiVersion: muster.dev/v1alpha1\nkind: Task\nspec: {priority: high}\n", &["spec.priority"]),
    ] {
        let request = place
            .http()
            .request("PATCH", &place.task("?fieldManager=m"))
            .header("Content-Type", "application/apply-patch+yaml")
            .body(text);
        place.refuses(request, 400, "BadRequest", words);
    }
}

#[test]
fn patching_what_is_not_there_is_refused() {
    let place = Place::new();
    let request = place
        .http()
        .request("PATCH", &format!("{}/b", place.tasks()))
        .header("Content-Type", "application/merge-patch+json")
        .body("{}");
    place.refuses(request, 404, "NotFound", &[r#""b" not found"#]);
}
