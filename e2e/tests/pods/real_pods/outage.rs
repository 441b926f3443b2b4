//! A cluster whose API server cannot be reached for a while: nothing else stops, and all goes on when it is back.

use muster_e2e::cluster::{Cluster, POD, Tasks};
use muster_e2e::outage::Wire;
use muster_e2e::wait::wait_for;
use serde_json::json;

#[test]
fn a_cluster_that_is_away_stops_nothing_else_and_is_gone_on_with() {
    let cluster = Cluster::new();
    let wire = Wire::to(&cluster);
    let server = cluster.server_through(wire.kubeconfig(), &["--slots", "2"]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("before", "for i in $(seq 1 30); do echo line $i; sleep 0.2; done", &json!({}));
    tasks.wait("before", "Running");
    wire.cut();
    tasks.shell("meanwhile", "echo made later", &json!({}));
    wait_for("the task to say why it waits", POD, || {
        tasks.get("meanwhile")["status"]["waitingFor"]["reason"] == "ClusterUnavailable"
    });
    let local = json!({ "runtime": "process" });
    tasks.shell("local", "echo here", &local);
    tasks.wait("local", "Succeeded");
    // The pod goes on, and ends, while nobody sees it.
    let pod = tasks.get("before")["status"]["pod"].as_str().unwrap().to_owned();
    let (namespace, name) = pod.split_once('/').expect("a namespace and a name");
    assert_eq!(namespace, cluster.namespace);
    wait_for("the pod to end", POD, || {
        cluster.kubectl(&["get", "pod", name, "-o", "jsonpath={.status.phase}"]) == "Succeeded"
    });
    assert_eq!(tasks.get("before")["status"]["state"], "Running");
    wire.mend();
    let before = tasks.wait("before", "Succeeded");
    assert_eq!(before["status"]["attempt"], 1, "{before:#}");
    let expected: Vec<String> = (1..=30).map(|number| format!("line {number}")).collect();
    assert_eq!(tasks.log("before", "addon").lines().collect::<Vec<_>>(), expected);
    let meanwhile = tasks.wait("meanwhile", "Succeeded");
    assert_eq!((&meanwhile["status"]["attempt"], &meanwhile["status"]["retries"]), (&json!(1), &json!(null)));
}
