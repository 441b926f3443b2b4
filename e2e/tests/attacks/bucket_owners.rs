//! Tasks that name somebody else's group as their owner. They get a bucket of their own, and harm nothing in the other one.

use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::{Value, json};

/// Forged tasks that are made.
const TRIES: usize = 50;
const API: &str = "/apis/muster.dev/v1alpha1/namespaces";

fn object(kind: &str, metadata: &Value, spec: &Value) -> String {
    json!({"apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}).to_string()
}

#[test]
fn a_forged_owner_opens_no_bucket_of_another_namespace_and_destroys_none() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let http = server.http();
    let (victim, attacker) = (format!("{API}/victim"), format!("{API}/attacker"));
    let command = json!({"container": {"command": ["true"]}});
    let group =
        object("TaskGroup", &json!({"name": "g"}), &json!({"tasks": [{"name": "a", "spec": command}]}));
    assert_eq!(http.post(&format!("{victim}/taskgroups"), &group).code, 201);
    let member = format!("{victim}/tasks/g-a");
    wait_for("the member to end", SOON, || http.get(&member).json()["status"]["state"] == "Succeeded");
    let secret = format!("{member}/bucket/secret.txt");
    assert_eq!(http.put(&secret, "of the victim").code, 201);
    let uid = http.get(&format!("{victim}/taskgroups/g")).json()["metadata"]["uid"].clone();
    let owner = json!([{"apiVersion": "muster.dev/v1alpha1", "kind": "TaskGroup", "name": "g", "uid": uid, "controller": true}]);
    let suspended = json!({"container": {"command": ["true"]}, "suspend": true});
    // The collector of garbage takes such a task soon: whoever attacks is faster, or tries again.
    for number in 0..TRIES {
        let name = format!("forged-{number}");
        let forged = object("Task", &json!({"name": name, "ownerReferences": owner}), &suspended);
        assert_eq!(http.post(&format!("{attacker}/tasks"), &forged).code, 201);
        let file = format!("{attacker}/tasks/{name}/bucket/secret.txt");
        assert_eq!(http.get(&file).code, 404);
        let written = http.put(&file, "of the attacker").code;
        assert!([201, 404].contains(&written), "{written}");
        http.delete(&file);
        assert_eq!(http.get(&secret).text(), "of the victim");
    }
}
