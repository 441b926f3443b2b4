//! A server that is told to stop takes back what waits at its executor and takes in what has ended: nothing runs twice for it, and
//! nothing is lost but what runs.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const COUNT: usize = 600;
const SLOTS: usize = 2;
const LONG: Duration = Duration::from_mins(2);

#[test]
fn what_has_ended_does_not_run_again_after_a_clean_stop() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let marks = tempfile::tempdir().expect("a directory");
    let ran = marks.path().join("ran");
    let script = format!("echo $MUSTER_TASK >> {}", ran.display());
    let tasks: Vec<Value> = (0..COUNT)
        .map(|number| {
            json!({
                "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": format!("t{number}")},
                "spec": {"container": {"command": ["sh", "-c", script]}, "retry": {"lostLimit": 5}},
            })
        })
        .collect();
    let list = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "TaskList", "items": tasks});
    assert_eq!(server.http().post(TASKS, &list.to_string()).code, 201);
    for _ in 0..3 {
        let before = fs::read_to_string(&ran).unwrap_or_default().lines().count();
        wait_for("some run", LONG, || {
            let now = fs::read_to_string(&ran).unwrap_or_default().lines().count();
            now > before + 20 || now >= COUNT
        });
        server.stop();
        server.restart();
    }
    let all = || {
        server.http().get(&format!("{TASKS}?limit=1000")).json()["items"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let has_succeeded = |task: &Value| task["status"]["state"] == "Succeeded";
    wait_for("all succeed", LONG, || all().iter().filter(|task| has_succeeded(task)).count() == COUNT);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for name in fs::read_to_string(&ran).expect("all ran").lines() {
        *times.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(times.len(), COUNT);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    // What runs when the server stops is killed, and may have said so already.
    assert!(twice.len() <= 3 * SLOTS, "{twice:?}");
    let has_lost_one = |task: &&Value| task["status"]["lost"].as_u64().unwrap_or(0) > 0;
    let losers = all().iter().filter(has_lost_one).count();
    assert!(losers <= 3 * SLOTS, "{losers} tasks lost an attempt: what only waited for a slot did not run");
}
