//! What is taken in and what is not: changes by state, circles of kinds, patterns and selectors, values out of range.

use serde_json::{Value, json};

use crate::server::{MERGE_PATCH, Server, path, task};

fn place() -> String {
    format!("{}/a", path("tasks"))
}

fn kind(name: &str, dependencies: &[&str]) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "TaskKind",
        "metadata": {"name": name}, "spec": {"dependencies": dependencies},
    })
}

/// The fields that a refusal blames.
fn blamed(answer: &crate::server::Answer) -> Vec<String> {
    let status = answer.json();
    let causes = status["details"]["causes"].as_array().unwrap();
    causes.iter().map(|cause| cause["field"].as_str().unwrap().to_owned()).collect()
}

/// One change of each field that some state allows or refuses.
fn changes() -> Vec<(&'static str, Value)> {
    vec![
        ("name", json!("another title")),
        ("locator", json!("elsewhere")),
        ("policy", json!({"isolated": true})),
        ("ttl", json!({"running": "1h"})),
        ("cancel", json!(true)),
        ("priority", json!(7)),
        ("suspend", json!(true)),
        ("kind", json!("other")),
        ("container", json!({"command": ["false"]})),
        ("timeout", json!("5m")),
        ("retry", json!({"limit": 5})),
        ("data", json!({"n": 1})),
        ("subject", json!({"kind": "Application", "name": "x"})),
        ("runtime", json!("pod")),
        ("resources", json!({"cpu": "1"})),
    ]
}

#[tokio::test]
async fn what_may_change_depends_on_the_state() {
    let waiting = &["name", "locator", "policy", "ttl", "cancel", "priority"][..];
    let running = &["name", "locator", "ttl", "cancel"][..];
    for (state, allowed) in [
        (json!("Created"), None),
        (json!("Ready"), Some(waiting)),
        (json!("Postponed"), Some(waiting)),
        (json!("QuotaBlocked"), Some(waiting)),
        (json!("Pending"), Some(waiting)),
        (json!("Running"), Some(running)),
        (json!("Succeeded"), Some(&[][..])),
        (json!("Failed"), Some(&[][..])),
        (json!("Canceled"), Some(&[][..])),
    ] {
        for (field, value) in changes() {
            let server = Server::start().await;
            let mut made = task("a");
            made["spec"]["suspend"] = json!(state == "Created");
            server.create(&made).await;
            // The first two states are what the spec says before anything is recorded.
            if !["Created", "Ready"].contains(&state.as_str().unwrap()) {
                server.set_status("a", &json!({ "state": state })).await;
            }
            let change = json!({"spec": {field: value}});
            let before = server.revision();
            let answer = server.patch(&place(), MERGE_PATCH, &change).await;
            if allowed.is_none_or(|allowed| allowed.contains(&field)) {
                assert_eq!(answer.code, 200, "{state} {field}: {answer:?}");
            } else {
                let message = answer.refused(422);
                assert_eq!(blamed(&answer), [format!("spec.{field}")], "{state}");
                assert!(message.contains(state.as_str().unwrap()), "{message}");
                assert_eq!(server.revision(), before);
            }
        }
    }
}

#[tokio::test]
async fn a_task_is_submitted_once_and_not_held_back_again() {
    let server = Server::start().await;
    let mut held = task("a");
    held["spec"]["suspend"] = json!(true);
    server.create(&held).await;
    server.patch(&place(), MERGE_PATCH, &json!({"spec": {"suspend": false}})).await.good();
    let message = server.patch(&place(), MERGE_PATCH, &json!({"spec": {"suspend": true}})).await.refused(422);
    assert!(message.contains("spec.suspend") && message.contains("submitted"), "{message}");
}

#[tokio::test]
async fn all_refused_fields_of_a_change_are_named() {
    let server = Server::start().await;
    server.run_task(&task("a"), 1).await;
    let change = json!({"spec": {"priority": 3, "timeout": "1m", "locator": "fine"}});
    let answer = server.patch(&place(), MERGE_PATCH, &change).await;
    answer.refused(422);
    assert_eq!(blamed(&answer), ["spec.priority", "spec.timeout"]);
}

#[tokio::test]
async fn labels_of_a_task_change_in_every_state() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    for state in ["Ready", "Running", "Succeeded"] {
        server.set_status("a", &json!({ "state": state })).await;
        let change = json!({"metadata": {"labels": {"seen": state.to_lowercase()}}});
        server.patch(&place(), MERGE_PATCH, &change).await.good();
    }
}

#[tokio::test]
async fn a_circle_of_kinds_is_refused_with_its_name() {
    let server = Server::start().await;
    let kinds = path("taskkinds");
    server.post(&kinds, &kind("a", &["b"])).await.good();
    server.post(&kinds, &kind("b", &["c"])).await.good();
    let before = server.revision();
    let answer = server.post(&kinds, &kind("c", &["a"])).await;
    let message = answer.refused(422);
    assert!(message.contains("c -> a -> b -> c"), "{message}");
    assert_eq!(blamed(&answer), ["spec.dependencies"]);
    let alone = server.post(&kinds, &kind("alone", &["alone"])).await.refused(422);
    assert!(alone.contains("itself"), "{alone}");
    assert_eq!(server.revision(), before);
    server.post(&kinds, &kind("c", &[])).await.good();
    let change = json!({"spec": {"dependencies": ["a"]}});
    let message = server.patch(&format!("{kinds}/c"), MERGE_PATCH, &change).await.refused(422);
    assert!(message.contains("c -> a -> b -> c"), "{message}");
    let applied = server.apply(&format!("{kinds}/c"), "me", &kind("c", &["b"])).await.refused(422);
    assert!(applied.contains("c -> b -> c"), "{applied}");
}

#[tokio::test]
async fn kinds_of_another_namespace_make_no_circle() {
    let server = Server::start().await;
    server.post(&path("taskkinds"), &kind("a", &["b"])).await.good();
    server.post(&crate::server::path_in("other", "taskkinds"), &kind("b", &["a"])).await.good();
}

#[tokio::test]
async fn a_circle_can_be_taken_apart_again() {
    let server = Server::start().await;
    let kinds = path("taskkinds");
    server.post(&kinds, &kind("a", &["b"])).await.good();
    server.post(&kinds, &kind("b", &[])).await.good();
    server.patch(&format!("{kinds}/a"), MERGE_PATCH, &json!({"spec": {"dependencies": null}})).await.good();
    server.patch(&format!("{kinds}/b"), MERGE_PATCH, &json!({"spec": {"dependencies": ["a"]}})).await.good();
}

#[tokio::test]
async fn selectors_and_patterns_that_do_not_parse_are_refused_with_the_place() {
    let server = Server::start().await;
    for (plural, kind, field, text, word) in [
        ("addons", "Addon", "selector", "tag:Language=Java &&", "column"),
        ("addons", "Addon", "selector", "tag:A || (tag:B", "column"),
        ("addons", "Addon", "selector", "platform:kind=x", "column 1"),
        ("addons", "Addon", "task", "analyzer(", "unclosed group"),
        ("addons", "Addon", "task", "a{99999}{99999}", "memory"),
        ("extensions", "Extension", "selector", "!", "column"),
        ("extensions", "Extension", "addon", "[z-a]", "range"),
    ] {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"},
            "spec": {field: text, "container": {"command": ["true"]}},
        });
        let answer = server.post(&path(plural), &object).await;
        let message = answer.refused(422);
        assert!(message.contains(word), "{text}: {message}");
        assert_eq!(blamed(&answer), [format!("spec.{field}")]);
    }
}

/// Stores an object as only a former version allowed it, and says where it is.
async fn store_old(server: &Server, kind: &str, plural: &str, spec: &Value) -> String {
    use muster_ports::store::{Batch, Draft, Key, Precondition, ResourceName, Write};
    let before = format!(
        r#"{{"apiVersion":"muster.dev/v1alpha1","kind":"{kind}","metadata":{{"name":"old","namespace":"default","resourceVersion":""#
    );
    let after = format!(r#"","uid":"u","generation":1}},"spec":{spec}}}"#);
    let key = Key::new(&ResourceName::new(&format!("{plural}.muster.dev")), "default", "old");
    let write = Write::Put { key, expect: Precondition::Absent, draft: Draft::joined(&before, &after) };
    server.store.commit(Batch::of(write)).await.unwrap();
    format!("{}/old", path(plural))
}

#[tokio::test]
async fn an_object_that_was_allowed_once_keeps_its_status_and_can_go() {
    let server = Server::start().await;
    let spec = json!({"selector": "((", "container": {"command": ["true"]}});
    let place = store_old(&server, "Addon", "addons", &spec).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    server.patch(&place, MERGE_PATCH, &label).await.good();
    server.patch(&place, MERGE_PATCH, &json!({"spec": {"task": "x"}})).await.refused(422);
    server.patch(&place, MERGE_PATCH, &json!({"spec": {"selector": "tag:A"}})).await.good();
    server.delete(&place).await.good();
}

#[tokio::test]
async fn a_task_that_was_allowed_once_can_be_canceled() {
    let server = Server::start().await;
    let spec = json!({"container": {"command": ["true"]}, "resources": {"memory": "1"}});
    let place = store_old(&server, "Task", "tasks", &spec).await;
    server.patch(&place, MERGE_PATCH, &json!({"spec": {"name": "other"}})).await.refused(422);
    server.patch(&place, MERGE_PATCH, &json!({"spec": {"cancel": true}})).await.good();
}

#[tokio::test]
async fn values_out_of_range_are_refused_with_the_field() {
    let server = Server::start().await;
    for (field, value, code, word) in [
        ("timeout", json!("-5s"), 400, "negative"),
        ("timeout", json!(-5), 400, "negative"),
        ("killTimeout", json!("-1m"), 400, "negative"),
        ("ttl", json!({"created": "-1h"}), 400, "negative"),
        ("retention", json!({"failed": "-PT1H"}), 400, "negative"),
        ("priority", json!(-1), 422, "priority"),
        ("priority", json!(2_147_483_648_i64), 400, "priority"),
        ("priority", json!(1e300), 400, "priority"),
        ("priority", json!("high"), 400, "priority"),
        (
            "container",
            json!({"command": ["true"], "env": [{"name": "A", "value": "a\u{0}b"}]}),
            422,
            "env[0].value",
        ),
        (
            "container",
            json!({"command": ["true"], "env": [{"name": "A\u{0}", "value": ""}]}),
            422,
            "env[0].name",
        ),
        ("container", json!({"command": ["a\u{0}b"]}), 422, "NUL"),
        (
            "resources",
            json!({"memory": "1"}),
            422,
            "resources.memory: Invalid value: \"1\": must be at least 4Mi",
        ),
        ("resources", json!({"memory": 128}), 422, "did you mean 128Mi?"),
        (
            "container",
            json!({"command": ["true"], "resources": {"memory": "128Ki"}}),
            422,
            "container.resources.memory",
        ),
    ] {
        let mut object = task("a");
        object["spec"][field] = value.clone();
        let before = server.revision();
        let message = server.post(&path("tasks"), &object).await.refused(code);
        assert!(message.contains(word), "{field} {value}: {message}");
        assert_eq!(server.revision(), before);
    }
}
