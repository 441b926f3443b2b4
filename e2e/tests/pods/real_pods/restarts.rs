//! A server that is killed at any moment: every task ends once, and no line of a log is lost or doubled.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_e2e::cluster::{Cluster, POD, Tasks};
use muster_e2e::wait::{holds_within, wait_for};
use serde_json::json;

#[test]
fn a_server_that_is_killed_goes_on_with_its_pods_and_their_logs() {
    let cluster = Cluster::new();
    let mut server = cluster.server(&[]);
    let script = "for i in $(seq 1 60); do echo line $i; sleep 0.1; done";
    Tasks::of(&server, &cluster).shell("steady", script, &json!({ "retention": { "succeeded": "1h" } }));
    Tasks::of(&server, &cluster).wait("steady", "Running");
    for _ in 0..2 {
        let lines = Tasks::of(&server, &cluster).log("steady", "addon").lines().count();
        wait_for("a few lines more", POD, || {
            Tasks::of(&server, &cluster).log("steady", "addon").lines().count() > lines + 2
        });
        server.kill();
        server.restart();
    }
    let tasks = Tasks::of(&server, &cluster);
    let task = tasks.wait("steady", "Succeeded");
    assert_eq!(task["status"]["attempt"], 1, "{task:#}");
    let expected: Vec<String> = (1..=60).map(|number| format!("line {number}")).collect();
    assert_eq!(tasks.log("steady", "addon").lines().collect::<Vec<_>>(), expected);
    assert_eq!(cluster.pods().len(), 1);
}

#[test]
fn fifty_tasks_end_once_although_the_server_is_killed_ten_times() {
    const TASKS: usize = 50;
    let cluster = Cluster::new();
    let mut server = cluster.server(&["--pod-slots", "12", "--keep-succeeded", "1h"]);
    for number in 0..TASKS {
        let name = format!("t{number:02}");
        Tasks::of(&server, &cluster).shell(&name, "echo begun; sleep 1; echo done", &json!({}));
    }
    let ended = |server: &muster_e2e::server::Server| {
        let all = Tasks::of(server, &cluster).all();
        all.iter().filter(|task| task["status"]["state"] == "Succeeded").count()
    };
    for round in 1..=10 {
        // Not at the same moment of the cycle each time.
        let enough = round * TASKS / 12;
        holds_within(Duration::from_secs(30), || ended(&server) >= enough);
        server.kill();
        server.restart();
    }
    wait_for("all tasks to end", POD * 2, || ended(&server) == TASKS);
    let tasks = Tasks::of(&server, &cluster);
    let mut pods_of: BTreeMap<String, usize> = BTreeMap::new();
    for pod in cluster.pods() {
        let name =
            pod["metadata"]["annotations"]["muster.dev/task-name"].as_str().unwrap_or_default().to_owned();
        *pods_of.entry(name).or_default() += 1;
    }
    assert_eq!(pods_of.len(), TASKS, "every task has its pod");
    for (name, pods) in &pods_of {
        assert_eq!(*pods, 1, "{name} has one pod only");
    }
    for task in tasks.all() {
        assert_eq!(task["status"]["attempt"], 1, "{task:#}");
        let name = task["metadata"]["name"].as_str().unwrap();
        assert_eq!(tasks.log(name, "addon"), "begun\ndone\n");
    }
}
