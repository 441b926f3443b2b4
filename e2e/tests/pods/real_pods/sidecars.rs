//! An addon with extensions: sidecars that end with it, or take it along.

use muster_e2e::cluster::{Cluster, Tasks, records};
use serde_json::json;

#[test]
fn an_addon_with_two_extensions_and_ports_of_its_own_succeeds_with_all_three_logs() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let serve =
        "trap 'exit 0' TERM; echo port $PORT; echo $PORT > /shared/$PORT; while true; do sleep 0.1; done";
    let ask = "until [ -f /shared/8000 ] && [ -f /shared/8001 ]; do sleep 0.1; done; \
               echo java=$_EXT_JAVA_PORT node=$_EXT_NODE_PORT";
    let container = |script: &str, env: serde_json::Value| json!({ "image": Cluster::image(), "command": ["sh", "-c", script], "env": env });
    let port = json!([{ "name": "PORT", "value": "${seq:8000}" }]);
    tasks.make("Addon", "addons", "analyzer", &json!({ "container": container(ask, json!([])) }));
    for name in ["java", "node"] {
        let spec = json!({ "addon": "analyzer", "container": container(serve, port.clone()) });
        tasks.make("Extension", "extensions", name, &spec);
    }
    let spec = json!({ "addon": "analyzer", "extensions": ["java", "node"] });
    tasks.make("Task", "tasks", "analyze", &spec);
    let task = tasks.wait("analyze", "Succeeded");
    assert_eq!(tasks.log("analyze", "addon"), "java=8000 node=8001\n");
    assert_eq!(tasks.log("analyze", "java"), "port 8000\n");
    assert_eq!(tasks.log("analyze", "node"), "port 8001\n");
    let attached: Vec<_> = task["status"]["attached"].as_array().unwrap().iter().collect();
    assert_eq!(attached.len(), 4, "three logs and the pod: {attached:?}");
    assert!(records(&task).contains(&"ContainerKilled".to_owned()), "{task:#}");
}

#[test]
fn a_sidecar_that_does_not_listen_is_killed_after_its_leader() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let deaf = "trap '' TERM; while true; do sleep 0.1; done";
    let spec = json!({
        "killTimeout": "1s",
        "containers": [
            { "name": "main", "image": Cluster::image(), "command": ["sh", "-c", "echo done"] },
            { "name": "deaf", "image": Cluster::image(), "command": ["sh", "-c", deaf] },
        ],
    });
    tasks.make("Task", "tasks", "zombie", &spec);
    let task = tasks.wait("zombie", "Succeeded");
    assert_eq!(tasks.log("zombie", "main"), "done\n");
    assert!(records(&task).contains(&"ContainerKilled".to_owned()), "{task:#}");
}

#[test]
fn a_sidecar_that_fails_first_fails_the_task() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let spec = json!({
        "killTimeout": "1s",
        "containers": [
            { "name": "main", "image": Cluster::image(), "command": ["sh", "-c", "sleep 600"] },
            { "name": "side", "image": Cluster::image(), "command": ["sh", "-c", "sleep 2; exit 7"] },
        ],
    });
    tasks.make("Task", "tasks", "taken", &spec);
    let task = tasks.wait("taken", "Failed");
    assert!(task["status"]["message"].as_str().unwrap().contains("(side) failed: exit code 7"), "{task:#}");
}
