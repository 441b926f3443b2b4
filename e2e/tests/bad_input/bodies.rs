//! Bodies that cannot be read, or not as what they should be.

use serde_json::{Value, json};

use crate::place::{Place, blamed, task, task_with};

#[test]
fn malformed_json_is_refused_with_its_place() {
    let place = Place::new();
    for text in ["", "{", r#"{"apiVersion":"#, "nonsense", r#"{"kind": "Task",}"#, "{} {}", "\u{0}"] {
        place.refuses(place.post_text("application/json", text), 400, "BadRequest", &["line 1 column"]);
    }
}

#[test]
fn json_that_is_not_text_is_refused() {
    let place = Place::new();
    let mut bytes = task("b").to_string().into_bytes();
    let at = bytes.len() - 5;
    bytes[at] = 0xff;
    place.refuses(
        place.post_text("application/json", bytes),
        400,
        "BadRequest",
        &["cannot be handled as a Task"],
    );
}

#[test]
fn malformed_yaml_is_refused_with_its_place() {
    let place = Place::new();
    for text in ["a: [1", "a: b: c", "&a *b", "%TAG x"] {
        place.refuses(
            place.post_text("application/yaml", text),
            400,
            "BadRequest",
            &["not valid YAML", "line"],
        );
    }
}

#[test]
fn yaml_that_is_no_object_is_refused() {
    let place = Place::new();
    for text in ["", "just words", "- a\n- b\n", "5", "---\na: 1\n---\nb: 2\n"] {
        place.refuses(place.post_text("application/yaml", text), 400, "BadRequest", &[]);
    }
}

#[test]
fn values_of_a_wrong_type_are_refused_by_name() {
    let place = Place::new();
    for (pointer, value, field) in [
        ("/spec/priority", json!("high"), "spec.priority"),
        ("/spec/priority", json!(1.5), "spec.priority"),
        ("/spec/priority", json!(99_999_999_999_i64), "spec.priority"),
        ("/spec/kind", json!(5), "spec.kind"),
        ("/spec/suspend", json!("yes"), "spec.suspend"),
        ("/spec/containers", json!("x"), "spec.containers"),
        ("/spec/containers", json!([{"name": "x", "command": "ls"}]), "spec.containers[0].command"),
        ("/spec/policy", json!([]), "spec.policy"),
        ("/spec/timeout", json!({}), "spec.timeout"),
        ("/spec/timeout", json!("soon"), "spec.timeout"),
        ("/spec/resources", json!({"cpu": "lots"}), "spec.resources.cpu"),
        ("/spec", json!(5), "spec"),
        ("/spec", json!([]), "spec"),
        ("/metadata", json!([]), "metadata"),
        ("/metadata/labels", json!([]), "metadata.labels"),
        ("/metadata/labels", json!({"app": 1}), "metadata.labels.app"),
        ("/metadata/annotations", json!({"note": true}), "metadata.annotations.note"),
        ("/metadata/finalizers", json!("x"), "metadata.finalizers"),
        ("/metadata/ownerReferences", json!([{"kind": 1}]), "metadata.ownerReferences[0].kind"),
        ("/metadata/creationTimestamp", json!("yesterday"), "metadata.creationTimestamp"),
    ] {
        let status = place.refuses(place.post(&task_with(pointer, value)), 400, "BadRequest", &[field]);
        assert_eq!(blamed(&status), [field]);
    }
}

#[test]
fn unknown_words_are_refused_with_those_there_are() {
    let place = Place::new();
    let words = ["spec.runtime", "moon", "process", "pod", "robot"];
    place.refuses(place.post(&task_with("/spec/runtime", json!("moon"))), 400, "BadRequest", &words);
}

#[test]
fn a_field_that_is_given_twice_is_refused() {
    let place = Place::new();
    let text = task("b").to_string().replace(r#""priority":1"#, r#""priority":1,"priority":2"#);
    place.refuses(place.post_text("application/json", text), 400, "BadRequest", &["priority"]);
}

#[test]
fn strict_validation_refuses_unknown_fields_by_name() {
    let place = Place::new();
    let mut object = task("b");
    object["nonsense"] = json!(1);
    object["spec"]["more"] = json!({"deep": 1});
    object["metadata"]["odd"] = json!(null);
    let path = format!("{}?fieldValidation=Strict", place.tasks());
    let request = place.http().request("POST", &path).json(&object.to_string());
    let words =
        [r#"unknown field "nonsense""#, r#"unknown field "spec.more""#, r#"unknown field "metadata.odd""#];
    place.refuses(request, 400, "BadRequest", &words);
}

#[test]
fn warning_validation_stores_the_rest_and_names_unknown_fields() {
    let place = Place::new();
    for query in ["?fieldValidation=Warn", ""] {
        let object = task_with("/spec/nonsense", json!(1)).to_string();
        let answer = place.http().post(&format!("{}{query}", place.tasks()), &object);
        assert_eq!(answer.code, 201, "{}", answer.text());
        assert_eq!(answer.header("warning"), Some(r#"299 - "unknown field \"spec.nonsense\"""#));
        assert!(answer.json()["spec"].get("nonsense").is_none());
        place.http().delete(&format!("{}/b", place.tasks()));
    }
}

#[test]
fn ignoring_validation_stores_the_rest_in_silence() {
    let place = Place::new();
    let object = task_with("/spec/nonsense", json!(1)).to_string();
    let answer = place.http().post(&format!("{}?fieldValidation=Ignore", place.tasks()), &object);
    assert_eq!((answer.code, answer.header("warning")), (201, None), "{}", answer.text());
    assert!(answer.json()["spec"].get("nonsense").is_none());
}

#[test]
fn an_unknown_way_to_validate_is_refused() {
    let place = Place::new();
    let path = format!("{}?fieldValidation=Maybe", place.tasks());
    let request = place.http().request("POST", &path).json(&task("b").to_string());
    place.refuses(request, 400, "BadRequest", &["fieldValidation", "Strict, Warn or Ignore"]);
}

#[test]
fn an_object_of_another_kind_is_refused() {
    let place = Place::new();
    for (pointer, value, words) in [
        ("/kind", json!("Application"), ["kind", "Application"]),
        ("/kind", json!("task"), ["kind", "task"]),
        ("/apiVersion", json!("muster.dev/v1"), ["apiVersion", "muster.dev/v1"]),
        ("/apiVersion", json!("v1"), ["apiVersion", "v1"]),
    ] {
        place.refuses(place.post(&task_with(pointer, value)), 400, "BadRequest", &words);
    }
}

#[test]
fn an_object_that_does_not_say_what_it_is_is_refused() {
    let place = Place::new();
    for field in ["kind", "apiVersion"] {
        let mut object = task("b");
        object.as_object_mut().unwrap().remove(field);
        place.refuses(place.post(&object), 400, "BadRequest", &["missing field", field]);
    }
}

#[test]
fn a_body_larger_than_the_limit_is_refused() {
    let place = Place::new();
    for bytes in [3 * 1024 * 1024, 20 * 1024 * 1024] {
        let object = task_with("/spec/locator", json!("x".repeat(bytes)));
        place.refuses(place.post(&object), 413, "RequestEntityTooLarge", &["larger than 3145728 bytes"]);
    }
}

#[test]
fn an_object_larger_than_what_is_stored_is_refused() {
    let place = Place::new();
    let object = task_with("/spec/locator", json!("x".repeat(2 * 1024 * 1024)));
    place.refuses(place.post(&object), 413, "RequestEntityTooLarge", &["at most 1572864"]);
}

fn nested(levels: usize, open: &str, close: &str) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn deep_nesting_is_refused() {
    let place = Place::new();
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = nested(100_000, open, close);
        let text = task("b").to_string().replace(r#""priority":1"#, &format!(r#""data":{deep}"#));
        place.refuses(place.post_text("application/json", &*text), 400, "BadRequest", &[]);
        place.refuses(place.post_text("application/yaml", &*text), 400, "BadRequest", &[]);
    }
}

#[test]
fn yaml_that_explodes_is_refused() {
    let place = Place::new();
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let previous = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{previous}]\n"));
    }
    place.refuses(place.post_text("application/yaml", text), 400, "BadRequest", &["not valid YAML"]);
}

#[test]
fn a_form_of_body_that_is_not_known_is_refused_with_those_that_are() {
    let place = Place::new();
    for media_type in
        ["text/plain", "application/vnd.kubernetes.protobuf", "application/xml", "multipart/form-data"]
    {
        let words = [media_type, "application/json", "application/yaml"];
        let request = place.post_text(media_type, task("b").to_string());
        place.refuses(request, 415, "UnsupportedMediaType", &words);
    }
}

#[test]
fn a_form_of_answer_that_is_not_known_is_refused_with_those_that_are() {
    let place = Place::new();
    for accept in
        ["application/vnd.kubernetes.protobuf", "text/html", "application/json;as=Poem;v=v1;g=meta.k8s.io"]
    {
        let request = place.http().request("GET", &place.task("")).header("Accept", accept);
        place.refuses(request, 406, "NotAcceptable", &["application/json", "application/yaml"]);
    }
}

#[test]
fn a_write_whose_answer_could_not_be_given_is_not_carried_out() {
    let place = Place::new();
    let request = place.post(&task("b")).header("Accept", "text/html");
    place.refuses(request, 406, "NotAcceptable", &[]);
}

#[test]
fn a_body_in_yaml_that_is_in_order_is_taken() {
    let place = Place::new();
    let text = "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {name: b}\nspec: {kind: k}\n";
    let answer = place.post_text("application/yaml", text).send();
    assert_eq!((answer.code, &answer.json()["spec"]), (201, &json!({"kind": "k"})));
}

#[test]
fn every_refusal_is_readable_by_people() {
    let place = Place::new();
    let status: Value =
        place.refuses(place.post(&task_with("/spec/priority", json!("high"))), 400, "BadRequest", &[]);
    assert_eq!(
        status["message"],
        "Task in version \"v1alpha1\" cannot be handled as a Task: spec.priority: invalid type: string \"high\", \
         expected i32 at line 1 column 110"
    );
}
