//! Server-side apply: who owns which field, from the first apply on.

use serde_json::{Value, json};

use crate::server::{APPLY_PATCH, JSON_PATCH, MERGE_PATCH, Server, name, path, task};

fn target() -> String {
    format!("{}/a", path("tasks"))
}

/// A config of the task `a` with this spec.
fn config(spec: &Value) -> Value {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "a"}, "spec": spec})
}

/// Manager, operation and subresource of each entry.
fn owners(object: &Value) -> Vec<(String, String, String)> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut owners: Vec<_> = entries
        .iter()
        .map(|entry| (text(entry, "manager"), text(entry, "operation"), text(entry, "subresource")))
        .collect();
    owners.sort();
    owners
}

fn fields_of<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    &entries.iter().find(|entry| entry["manager"] == manager).unwrap()["fieldsV1"]
}

fn owner(manager: &str, operation: &str, subresource: &str) -> (String, String, String) {
    (manager.to_owned(), operation.to_owned(), subresource.to_owned())
}

#[tokio::test]
async fn ownership_is_kept_from_the_first_apply_on() {
    let server = Server::start().await;
    let created = server.create(&task("a")).await;
    assert!(created["metadata"].get("managedFields").is_none());
    let patched = server.patch(&target(), MERGE_PATCH, &json!({"spec": {"priority": 1}})).await.good();
    assert!(patched["metadata"].get("managedFields").is_none());
    let applied = server.apply(&target(), "alice", &config(&json!({"locator": "x"}))).await.good();
    assert_eq!(fields_of(&applied, "alice"), &json!({"f:spec": {"f:locator": {}}}));
    assert!(owners(&applied).contains(&owner("before-first-apply", "Update", "")), "{:?}", owners(&applied));
    let patch = format!("{}?fieldManager=bob", target());
    let patched = server.patch(&patch, MERGE_PATCH, &json!({"spec": {"priority": 2}})).await.good();
    assert_eq!(fields_of(&patched, "bob"), &json!({"f:spec": {"f:priority": {}}}));
}

#[tokio::test]
async fn an_apply_creates_what_is_not_there() {
    let server = Server::start().await;
    let answer = server.apply(&target(), "alice", &config(&json!({"kind": "k", "priority": 1}))).await;
    assert_eq!(answer.code, 201);
    let created = answer.good();
    assert_eq!(owners(&created), [owner("alice", "Apply", "")]);
    assert_eq!(fields_of(&created, "alice"), &json!({"f:spec": {"f:kind": {}, "f:priority": {}}}));
    assert!(created["metadata"]["uid"].is_string());
    assert_eq!(server.get(&target()).await.good(), created);
}

#[tokio::test]
async fn an_apply_makes_the_object_of_the_url_and_no_other() {
    let server = Server::start().await;
    let mut nameless = config(&json!({"kind": "k"}));
    nameless["metadata"] = json!({});
    assert_eq!(name(&server.apply(&target(), "alice", &nameless).await.good()), "a");
    nameless["metadata"] = json!({"generateName": "other-"});
    let elsewhere = format!("{}/b", path("tasks"));
    assert_eq!(name(&server.apply(&elsewhere, "alice", &nameless).await.good()), "b");
    nameless["metadata"] = json!({"name": "c"});
    server.apply(&target(), "alice", &nameless).await.refused(400);
    nameless["metadata"] = json!({"namespace": "elsewhere"});
    server.apply(&target(), "alice", &nameless).await.refused(400);
}

#[tokio::test]
async fn a_field_of_another_is_a_conflict_that_force_decides() {
    let server = Server::start().await;
    server.apply(&target(), "alice", &config(&json!({"kind": "k", "priority": 1}))).await.good();
    let before = server.revision();
    let answer = server.apply(&target(), "bob", &config(&json!({"kind": "k", "priority": 2}))).await;
    let message = answer.refused(409);
    assert!(message.contains("conflict with \"alice\"") && message.contains(".spec.priority"), "{message}");
    let causes = &answer.json()["details"]["causes"];
    assert_eq!(
        (&causes[0]["reason"], &causes[0]["field"]),
        (&json!("FieldManagerConflict"), &json!(".spec.priority"))
    );
    assert_eq!(server.revision(), before);
    let forced = format!("{}?fieldManager=bob&force=true", target());
    let taken =
        server.patch(&forced, APPLY_PATCH, &config(&json!({"kind": "k", "priority": 2}))).await.good();
    assert_eq!(fields_of(&taken, "alice"), &json!({"f:spec": {"f:kind": {}}}));
    assert_eq!(fields_of(&taken, "bob"), &json!({"f:spec": {"f:kind": {}, "f:priority": {}}}));
}

#[tokio::test]
async fn a_field_that_its_only_owner_no_longer_applies_is_removed() {
    let server = Server::start().await;
    server
        .apply(&target(), "alice", &config(&json!({"kind": "k", "priority": 1, "locator": "x"})))
        .await
        .good();
    server.apply(&target(), "bob", &config(&json!({"kind": "k", "locator": "x"}))).await.good();
    let less = server.apply(&target(), "alice", &config(&json!({"kind": "k"}))).await.good();
    assert!(less["spec"].get("priority").is_none(), "nobody else had it");
    assert_eq!(less["spec"]["locator"], "x", "bob still has it");
    assert_eq!(less["metadata"]["generation"], 2);
}

#[tokio::test]
async fn the_status_has_owners_of_its_own() {
    let server = Server::start().await;
    let mut with_status = config(&json!({"kind": "k"}));
    with_status["status"] = json!({"state": "Running"});
    let created = server.apply(&target(), "alice", &with_status).await.good();
    assert_eq!(created["status"]["state"], "Ready", "a status that is sent with the spec is not written");
    assert_eq!(
        fields_of(&created, "alice"),
        &json!({"f:spec": {"f:kind": {}}}),
        "nobody owns what was not written"
    );
    let mut report = config(&json!({"kind": "other"}));
    let condition = json!({"type": "Done", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"});
    report["status"] = json!({"conditions": [condition]});
    let reported = server.apply(&format!("{}/status", target()), "runner", &report).await.good();
    assert_eq!(reported["status"]["conditions"], json!([condition]));
    assert_eq!(reported["spec"]["kind"], "k");
    assert_eq!(owners(&reported), [owner("alice", "Apply", ""), owner("runner", "Apply", "status")]);
    let owned = &fields_of(&reported, "runner")["f:status"];
    assert_eq!(owned.as_object().unwrap().keys().collect::<Vec<_>>(), ["f:conditions"]);
    let again = server.apply(&target(), "alice", &config(&json!({"kind": "k"}))).await.good();
    assert_eq!(again["status"], reported["status"], "who applies the spec leaves the status alone");
    let none = format!("{}/none/status", path("tasks"));
    let mut absent = report.clone();
    absent["metadata"]["name"] = json!("none");
    server.apply(&none, "runner", &absent).await.refused(404);
}

#[tokio::test]
async fn the_books_can_be_cleared_but_not_made_up() {
    let server = Server::start().await;
    server.apply(&target(), "alice", &config(&json!({"kind": "k"}))).await.good();
    let before = server.revision();
    let unreadable = json!([{"manager": "eve", "operation": "Apply", "apiVersion": "muster.dev/v1alpha1",
        "fieldsType": "FieldsV1", "fieldsV1": "nonsense"}]);
    for garbage in [json!({"a": 1}), json!([1]), unreadable] {
        let patch = json!({"metadata": {"managedFields": garbage}});
        let kept = server.patch(&target(), MERGE_PATCH, &patch).await.good();
        assert_eq!(owners(&kept), [owner("alice", "Apply", "")], "what cannot be read replaces nothing");
    }
    let mut own = config(&json!({"kind": "k"}));
    own["metadata"]["managedFields"] = json!([{"manager": "alice"}]);
    server.apply(&target(), "alice", &own).await.refused(400);
    assert_eq!(server.revision(), before);
    let cleared = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]);
    let cleared = server.patch(&format!("{}?fieldManager=bob", target()), JSON_PATCH, &cleared).await.good();
    assert!(!owners(&cleared).contains(&owner("alice", "Apply", "")), "{:?}", owners(&cleared));
}

#[tokio::test]
async fn an_apply_needs_a_manager_and_known_fields() {
    let server = Server::start().await;
    let message = server.patch(&target(), APPLY_PATCH, &config(&json!({"kind": "k"}))).await.refused(400);
    assert!(message.contains("fieldManager"), "{message}");
    let long = "m".repeat(129);
    server.apply(&target(), &long, &config(&json!({"kind": "k"}))).await.refused(400);
    let unknown = config(&json!({"kind": "k", "colour": "red"}));
    assert!(server.apply(&target(), "alice", &unknown).await.refused(400).contains("spec.colour"));
    assert_eq!(server.get(&target()).await.code, 404);
}

#[tokio::test]
async fn items_of_a_keyed_list_have_owners_of_their_own() {
    let server = Server::start().await;
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let two = [container("main", "a"), container("side", "b")];
    let both = config(&json!({"suspend": true, "containers": two}));
    server.apply(&target(), "alice", &both).await.good();
    let third = config(&json!({"containers": [container("third", "c")]}));
    let merged = server.apply(&target(), "bob", &third).await.good();
    let names = |object: &Value| {
        let containers = object["spec"]["containers"].as_array().unwrap();
        containers.iter().map(|each| each["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&merged), ["main", "side", "third"]);
    let less = config(&json!({"containers": [container("main", "a")]}));
    let less = server.apply(&target(), "alice", &less).await.good();
    assert_eq!(names(&less), ["main", "third"]);
}
