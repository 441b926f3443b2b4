//! The state of a task: one answer from the answer to its create on, wherever it is asked for.

use hyper::header::ACCEPT;
use muster_ports::explain::Explanation;
use muster_types::State;
use serde_json::{Value, json};

use crate::server::{Ask, MERGE_PATCH, Server, TABLE, names, path, task};

fn held(name: &str) -> Value {
    let mut held = task(name);
    held["spec"]["suspend"] = json!(true);
    held
}

fn place(name: &str) -> String {
    format!("{}/{name}", path("tasks"))
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or("none")
}

/// The state of a task as each way to ask for it says it: get, status, list, table, selector and explain.
async fn states(server: &Server, name: &str) -> Vec<String> {
    let mut said = Vec::new();
    for path in [place(name), format!("{}/status", place(name))] {
        said.push(state(&server.get(&path).await.good()).to_owned());
    }
    let listed = server.get(&path("tasks")).await.good();
    let listed = listed["items"].as_array().unwrap().iter().find(|task| task["metadata"]["name"] == name);
    said.push(state(listed.unwrap()).to_owned());
    let table = server.send(Ask::new("GET", &place(name)).header(ACCEPT, TABLE)).await.good();
    said.push(table["rows"][0]["cells"][1].as_str().unwrap().to_owned());
    for state in State::ALL {
        let selected =
            format!("{}?fieldSelector=status.state%3D{state},metadata.name%3D{name}", path("tasks"));
        if !names(&server.get(&selected).await.good()).is_empty() {
            said.push(state.to_string());
        }
    }
    let explained = server.get(&format!("{}/explain", place(name))).await.good();
    said.push(explained["state"].as_str().unwrap().to_owned());
    said
}

#[tokio::test]
async fn the_answer_to_a_create_says_the_state() {
    let server = Server::start().await;
    let mut watch =
        server.watch(&format!("{}?watch=1&resourceVersion={}", path("tasks"), server.revision())).await;
    assert_eq!(state(&server.create(&task("a")).await), "Ready");
    assert_eq!(state(&server.create(&held("b")).await), "Created");
    let list = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "TaskList", "items": [task("c"), held("d")],
    });
    let listed = server.post(&path("tasks"), &list).await.good();
    assert_eq!(
        listed["items"].as_array().unwrap().iter().map(state).collect::<Vec<_>>(),
        ["Ready", "Created"]
    );
    let seen = watch.ready();
    assert_eq!(
        seen.iter().map(|event| state(&event.object)).collect::<Vec<_>>(),
        ["Ready", "Created", "Ready", "Created"]
    );
    assert_eq!(state(&server.apply(&place("e"), "m", &held("e")).await.good()), "Created");
    let dry = server.post(&format!("{}?dryRun=All", path("tasks")), &task("f")).await.good();
    assert_eq!(state(&dry), "Ready");
}

#[tokio::test]
async fn every_way_to_ask_says_the_same_state() {
    let server = Server::start().await;
    server.create(&task("ready")).await;
    server.create(&held("created")).await;
    let uid = server.create(&task("blocked")).await["metadata"]["uid"].as_str().unwrap().to_owned();
    // The engine has not written down yet what it knows.
    let told = Explanation { state: State::QuotaBlocked, ..Explanation::default() };
    server.explain.tell(&uid, told);
    assert_eq!(states(&server, "ready").await, ["Ready"; 6]);
    assert_eq!(states(&server, "created").await, ["Created"; 6]);
    assert_eq!(states(&server, "blocked").await, ["Ready"; 6]);
    server.set_status("blocked", &json!({"state": "QuotaBlocked"})).await;
    assert_eq!(states(&server, "blocked").await, ["QuotaBlocked"; 6]);
}

#[tokio::test]
async fn a_task_that_is_submitted_is_ready_in_the_answer() {
    let server = Server::start().await;
    server.create(&held("a")).await;
    server.clock.advance(60_000);
    let submitted = server.patch(&place("a"), MERGE_PATCH, &json!({"spec": {"suspend": false}})).await.good();
    assert_eq!(state(&submitted), "Ready");
    assert_eq!(submitted["status"]["submitted"], "2023-11-14T22:14:20Z");
    assert_eq!(submitted["status"]["stateSince"], submitted["status"]["submitted"]);
    assert_eq!(states(&server, "a").await, ["Ready"; 6]);
    let relabelled =
        server.patch(&place("a"), MERGE_PATCH, &json!({"metadata": {"labels": {"l": "1"}}})).await.good();
    assert_eq!(relabelled["status"], submitted["status"], "it is submitted once");
}

#[tokio::test]
async fn a_task_of_an_older_version_without_a_state_is_where_its_spec_says() {
    let server = Server::start().await;
    server.create(&held("a")).await;
    server.set_status("a", &json!({"state": null})).await;
    let table = server.send(Ask::new("GET", &place("a")).header(ACCEPT, TABLE)).await.good();
    assert_eq!(table["rows"][0]["cells"][1], "Created");
    let submitted = server.patch(&place("a"), MERGE_PATCH, &json!({"spec": {"suspend": false}})).await.good();
    assert_eq!(state(&submitted), "Ready");
}
