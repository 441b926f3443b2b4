//! Bad input: the right code, words that name what is wrong, and nothing changes.

use hyper::header::{ACCEPT, CONTENT_TYPE};
use muster_apiserver::api::Settings;
use muster_ports::store::History;
use serde_json::{Value, json};

use crate::server::{Ask, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Server, application, path, task};

const OBJECT_LIMIT: usize = 1_572_864;

/// Sends requests that must be refused with a code and a message that contains a word, and leave no trace.
pub async fn refuse(server: &Server, asks: Vec<(Ask, u16, &str)>) {
    for (ask, code, word) in asks {
        let before = server.revision();
        let shown = format!("{ask:?}").chars().take(300).collect::<String>();
        let answer = server.send(ask).await;
        let status = String::from_utf8_lossy(&answer.bytes).chars().take(600).collect::<String>();
        assert_eq!(answer.code, code, "{shown}: {status}");
        let message = answer.refused(code);
        assert!(message.contains(word), "{shown}: {message}");
        assert_eq!(server.revision(), before, "{shown}");
    }
}

pub fn post(body: impl Into<bytes::Bytes>) -> Ask {
    Ask::new("POST", &path("tasks")).body(body)
}

pub fn post_yaml(body: impl Into<bytes::Bytes>) -> Ask {
    post(body).header(CONTENT_TYPE, "application/yaml")
}

fn patch(media: &str, body: &Value) -> Ask {
    Ask::new("PATCH", &format!("{}/a", path("tasks"))).json(body).header(CONTENT_TYPE, media)
}

pub fn with(pointer: &str, value: Value) -> Value {
    let mut object = task("new");
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused_with_the_field() {
    let server = Server::start().await;
    let bad_kind =
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Application", "metadata": {"name": "a"}});
    let bad_version = json!({"apiVersion": "v2", "kind": "Task", "metadata": {"name": "a"}});
    refuse(
        &server,
        vec![
            (post(""), 400, "EOF"),
            (post("{"), 400, "EOF"),
            (post("null"), 400, "null"),
            (post("\u{feff}{}"), 400, "expected value"),
            (post(vec![b'{', 0xff, b'}']), 400, "key must be a string"),
            (post(format!("{} trailing", task("a"))), 400, "trailing"),
            (post(bad_kind.to_string()), 400, "does not match the expected kind (Task)"),
            (post(bad_version.to_string()), 400, "apiVersion"),
            (post(with("/spec/priority", json!("high")).to_string()), 400, "spec.priority"),
            (post(with("/spec/priority", json!(1e30)).to_string()), 400, "spec.priority"),
            (post(with("/spec/timeout", json!("soon")).to_string()), 400, "spec.timeout"),
            (post(with("/spec/container/command", json!("true")).to_string()), 400, "spec.container.command"),
            (post(with("/metadata/labels", json!({"a": 1})).to_string()), 400, "metadata.labels.a"),
            (post(with("/metadata/name", json!(7)).to_string()), 400, "metadata.name"),
            (
                post(r#"{"apiVersion":"muster.dev/v1alpha1","kind":"Task","kind":"Task"}"#),
                400,
                "duplicate field",
            ),
            (post_yaml("a: [1, 2"), 400, "YAML"),
            (post_yaml("just text"), 400, "Task"),
            (post_yaml(vec![0xff, 0xfe]), 400, "UTF-8"),
            (post_yaml("a: &a [*a]"), 400, "YAML"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_list_in_the_place_of_an_object_is_not_taken_for_its_fields_in_order() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let positional = json!(["muster.dev/v1alpha1", "Task", {"name": "b"}, {"kind": "k"}]);
    let delete = Ask::new("DELETE", &format!("{}/a", path("tasks")));
    refuse(
        &server,
        vec![
            (post(positional.to_string()), 400, "Task"),
            (post_yaml(positional.to_string()), 400, "Task"),
            (post(with("/spec", json!(["k"])).to_string()), 400, "spec"),
            (post(with("/metadata", json!(["b"])).to_string()), 400, "metadata"),
            (post(with("/spec/container", json!(["n", "image"])).to_string()), 400, "spec.container"),
            (
                post(with("/spec/container/env", json!([["A", "b"]])).to_string()),
                400,
                "spec.container.env[0]",
            ),
            (patch(MERGE_PATCH, &json!({"spec": {"policy": [true]}})), 400, "spec.policy"),
            (delete.clone().json(&json!([])), 400, "DeleteOptions"),
            (delete.clone().json(&json!(["Orphan"])), 400, "DeleteOptions"),
            (delete.json(&json!({"preconditions": ["uid"]})), 400, "DeleteOptions"),
        ],
    )
    .await;
}

#[tokio::test]
async fn objects_that_are_not_allowed_are_refused_with_all_their_causes() {
    let server = Server::start().await;
    let mut object = task("Not_A_Name");
    object["spec"] = json!({"priority": -1, "subject": {"kind": "", "name": "x"}});
    object["metadata"]["labels"] = json!({"a b": "c"});
    let answer = server.post(&path("tasks"), &object).await;
    answer.refused(422);
    let status = answer.json();
    let mut fields: Vec<_> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["metadata.labels", "metadata.name", "spec.kind", "spec.priority", "spec.subject.kind"]
    );
    assert_eq!((&status["details"]["kind"], &status["reason"]), (&json!("Task"), &json!("Invalid")));
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "", "controller": true});
    refuse(
        &server,
        vec![
            (post(task(&"a".repeat(254)).to_string()), 422, "metadata.name"),
            (post(with("/metadata/generateName", json!("Bad-")).to_string()), 422, "metadata.generateName"),
            (post(with("/metadata/labels", json!({"a": "b c"})).to_string()), 422, "metadata.labels"),
            (post(with("/metadata/finalizers", json!(["a b"])).to_string()), 422, "metadata.finalizers"),
            (
                post(with("/metadata/ownerReferences", json!([owner])).to_string()),
                422,
                "ownerReferences[0].uid",
            ),
            (
                post(with("/metadata/annotations", json!({"a": "x".repeat(300_000)})).to_string()),
                422,
                "annotations",
            ),
            (post(with("/metadata/resourceVersion", json!("7")).to_string()), 400, "resourceVersion"),
            (post(with("/metadata/namespace", json!("other")).to_string()), 400, "other"),
        ],
    )
    .await;
}

#[tokio::test]
async fn unknown_fields_are_refused_warned_about_or_dropped_as_asked() {
    let server = Server::start().await;
    let mut object = with("/spec/colour", json!("red"));
    object["spec"]["container"]["shape"] = json!({"round": true});
    let body = object.to_string();
    let ask = |validation: &str| {
        Ask::new("POST", &format!("{}?dryRun=All{validation}", path("tasks"))).body(body.clone())
    };
    let strict = server.send(ask("&fieldValidation=Strict")).await;
    let message = strict.refused(400);
    assert!(message.contains("spec.colour") && message.contains("spec.container.shape"), "{message}");
    for validation in ["", "&fieldValidation=Warn"] {
        let warned = server.send(ask(validation)).await;
        let warnings: Vec<_> = warned.headers.get_all("warning").iter().collect();
        assert_eq!(warnings.len(), 2, "{warned:?}");
        assert_eq!(warnings[0], "299 - \"unknown field \\\"spec.colour\\\"\"");
        assert!(warned.good()["spec"].get("colour").is_none());
    }
    let ignored = server.send(ask("&fieldValidation=Ignore")).await;
    assert!(ignored.good()["spec"].get("colour").is_none());
    assert!(!ignored.headers.contains_key("warning"));
}

#[tokio::test]
async fn warnings_fit_into_the_head_of_an_answer() {
    let server = Server::start().await;
    let mut object = task("a");
    for number in 0..1000 {
        object["spec"][format!("{number}{}", "\u{e9}".repeat(1000))] = json!(1);
    }
    let answer = server.post(&path("tasks"), &object).await;
    answer.good();
    let bytes: usize = answer.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    assert!(bytes < 8 * 1024, "{bytes} bytes of headers");
    assert!(answer.headers.contains_key("warning"));
}

#[tokio::test]
async fn bodies_and_objects_that_are_too_large_are_refused() {
    let settings = Settings { max_body: 2 * 1024 * 1024, ..Settings::default() };
    let server = Server::with(settings, History::default()).await;
    server.create(&task("a")).await;
    let filled = |bytes: usize| with("/spec/data", json!("x".repeat(bytes))).to_string();
    refuse(
        &server,
        vec![
            (post("x".repeat(3 * 1024 * 1024)), 413, "2097152"),
            (post(filled(OBJECT_LIMIT)), 413, "1572864"),
            (patch(MERGE_PATCH, &json!({"spec": {"data": "x".repeat(OBJECT_LIMIT)}})), 413, "1572864"),
            (Ask::new("GET", &format!("{}?labelSelector={}", path("tasks"), "a".repeat(9000))), 414, "8192"),
            (Ask::new("GET", &format!("/{}", "a/".repeat(5000))), 414, "8192"),
        ],
    )
    .await;
    assert_eq!(server.send(post(filled(OBJECT_LIMIT - 1000))).await.code, 201);
}

#[tokio::test]
async fn patches_that_make_no_sense_are_refused() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let raw = |media: &str, body: &'static str| {
        Ask::new("PATCH", &format!("{}/a", path("tasks"))).body(body).header(CONTENT_TYPE, media)
    };
    refuse(
        &server,
        vec![
            (raw(JSON_PATCH, "{"), 400, "JSON"),
            (patch(JSON_PATCH, &json!({"op": "add"})), 400, ""),
            (patch(JSON_PATCH, &json!([{"op": "conjure", "path": "/spec"}])), 400, "0"),
            (patch(JSON_PATCH, &json!([{"op": "add", "path": "spec", "value": 1}])), 400, "0"),
            (patch(JSON_PATCH, &json!([{"op": "remove", "path": "/spec/none"}])), 422, "/spec/none"),
            (patch(JSON_PATCH, &json!([{"op": "replace", "path": "", "value": 3}])), 400, "Task"),
            (patch(MERGE_PATCH, &json!([1])), 400, "Task"),
            (patch(MERGE_PATCH, &json!("text")), 400, "Task"),
            (patch(MERGE_PATCH, &json!({"kind": "Application"})), 400, "kind"),
            (patch(MERGE_PATCH, &json!({"spec": {"priority": "x"}})), 400, "spec.priority"),
            (patch(MERGE_PATCH, &json!({"spec": null})), 422, "spec.kind"),
            (patch(STRATEGIC_PATCH, &json!({"spec": {"containers": {"$patch": "explode"}}})), 422, ""),
            (raw("text/plain", "{}"), 415, "application/merge-patch+json"),
            (raw("application/json", "{}"), 415, "application/json-patch+json"),
            (raw(MERGE_PATCH, ""), 400, "JSON"),
        ],
    )
    .await;
    let absent =
        Ask::new("PATCH", &format!("{}/none", path("tasks"))).body("{}").header(CONTENT_TYPE, MERGE_PATCH);
    refuse(&server, vec![(absent, 404, "none")]).await;
}

#[tokio::test]
async fn requests_that_no_path_or_form_fits_are_refused() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let (all, one) = (path("tasks"), format!("{}/a", path("tasks")));
    let get = |target: &str| Ask::new("GET", target);
    refuse(
        &server,
        vec![
            (get("/"), 404, "could not find"),
            (get("/apis/none.dev"), 404, ""),
            (get("/apis/muster.dev/v9/tasks"), 404, ""),
            (get("/apis/muster.dev/v1alpha1/nones"), 404, ""),
            (get(&format!("{one}/log/more/parts")), 404, ""),
            (get(&format!("{one}/nonsense")), 404, ""),
            (get(&format!("{all}/none")), 404, "none"),
            (get("/apis/muster.dev/v1alpha1/tasks/a"), 404, ""),
            (get("/apis/muster.dev/v1alpha1/namespaces/Not_One/tasks"), 400, "Not_One"),
            (get("/apis/muster.dev/v1alpha1/namespaces/%ff/tasks"), 404, ""),
            (Ask::new("POST", "/apis/muster.dev/v1alpha1/tasks").json(&task("b")), 400, "namespace"),
            (Ask::new("POST", &one).json(&task("b")), 405, ""),
            (Ask::new("PUT", &all).json(&task("b")), 405, ""),
            (Ask::new("OPTIONS", &all), 405, ""),
            (Ask::new("DELETE", "/version"), 405, ""),
            (get(&all).header(ACCEPT, "application/vnd.kubernetes.protobuf"), 406, "application/json"),
            (get(&all).header(ACCEPT, "text/html"), 406, ""),
            (post("{}").header(CONTENT_TYPE, "text/html"), 415, "text/html"),
            (post("{}").header(CONTENT_TYPE, "application/vnd.kubernetes.protobuf"), 415, "protobuf"),
            (get(&format!("{all}?labelSelector=a%3D%3D%3Db")), 400, "labelSelector"),
            (get(&format!("{all}?labelSelector=a+in+(")), 400, "labelSelector"),
            (get(&format!("{all}?fieldSelector=nonsense")), 400, "fieldSelector"),
            (get(&format!("{all}?limit=-1")), 400, "limit"),
            (get(&format!("{all}?limit=many")), 400, "limit"),
            (get(&format!("{all}?watch=perhaps")), 400, "watch"),
            (get(&format!("{all}?resourceVersion=-1")), 400, "resourceVersion"),
            (get(&format!("{all}?labelSelector=%zz")), 400, "labelSelector"),
            (Ask::new("DELETE", &format!("{one}?dryRun=Some")), 400, "dryRun"),
            (Ask::new("DELETE", &format!("{one}?propagationPolicy=Sometimes")), 400, "propagationPolicy"),
            (Ask::new("DELETE", &one).json(&json!({"propagationPolicy": "Sometimes"})), 400, "Sometimes"),
            (
                Ask::new("DELETE", &one)
                    .json(&json!({"propagationPolicy": "Orphan", "orphanDependents": true})),
                400,
                "orphanDependents",
            ),
            (Ask::new("DELETE", &one).json(&json!({"dryRun": ["Some"]})), 400, "dryRun"),
            (Ask::new("DELETE", &one).json(&json!({"gracePeriodSeconds": "x"})), 400, "DeleteOptions"),
        ],
    )
    .await;
}

#[tokio::test]
async fn questions_that_are_no_objects_are_refused() {
    let server = Server::start().await;
    let asks = [
        "authorization.k8s.io/v1/selfsubjectaccessreviews",
        "authorization.k8s.io/v1/selfsubjectrulesreviews",
        "authentication.k8s.io/v1/selfsubjectreviews",
    ]
    .into_iter()
    .flat_map(|review| {
        ["[]", "[1]", "text", "3", "true", "{", "\"s\""]
            .map(|body| (Ask::new("POST", &format!("/apis/{review}")).body(body), 400, ""))
    });
    refuse(&server, asks.collect()).await;
}

#[tokio::test]
async fn an_object_full_of_texts_that_look_like_our_marks_is_stored_as_it_is() {
    let server = Server::start().await;
    let mut object = application("a");
    let mark = r#""resourceVersion":"7","#;
    object["metadata"]["annotations"] = json!({"a": mark, "b": "\"ownerReferences\" \"deletionTimestamp\""});
    object["spec"]["properties"] =
        json!({mark: mark, "resourceVersion": "5", "metadata": {"resourceVersion": "6"}});
    let created = server.create(&object).await;
    assert_eq!(created["spec"], object["spec"]);
    assert_eq!(created["metadata"]["annotations"], object["metadata"]["annotations"]);
    assert_eq!(created["metadata"]["resourceVersion"], server.revision().to_string());
}
