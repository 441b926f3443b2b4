//! Tasks that ask for less memory than any program needs. They must not end what runs beside them.

use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::{Value, json};

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";

fn task(name: &str, command: &[&str], memory: &Value) -> String {
    let spec = json!({"container": {"command": command}, "resources": {"memory": memory}});
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

#[test]
fn a_limit_without_its_unit_is_refused_and_one_that_is_too_small_ends_its_own_task_alone() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "8"]);
    let http = server.http();
    let state = |name: &str| http.get(&format!("{TASKS}/{name}")).json()["status"].clone();
    let gate = server.data().join("gate");
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    for (name, memory) in [("plain", Value::Null), ("limited", json!("64Mi"))] {
        assert_eq!(http.post(TASKS, &task(name, &["sh", "-c", &wait], &memory)).code, 201);
        wait_for("a neighbor to run", SOON, || state(name)["state"] == "Running");
    }
    for memory in [json!("1"), json!("4Ki"), json!("128Ki"), json!(128), json!("128m")] {
        let answer = http.post(TASKS, &task("typo", &["true"], &memory));
        assert_eq!(answer.code, 422, "{memory}: {}", answer.text());
        let message = answer.json()["message"].to_string();
        assert!(message.contains("spec.resources.memory") && message.contains("at least 4Mi"), "{message}");
    }
    assert_eq!(http.post(TASKS, &task("greedy", &["tail", "/dev/zero"], &json!("4Mi"))).code, 201);
    wait_for("the greedy one to end", SOON, || state("greedy")["state"] == "Failed");
    std::fs::write(&gate, "").expect("a file can be written");
    for name in ["plain", "limited"] {
        wait_for("a neighbor to end", SOON, || state(name)["state"] == "Succeeded");
        assert_eq!(state(name)["attempt"], 1, "it ran once, to its end");
    }
}
