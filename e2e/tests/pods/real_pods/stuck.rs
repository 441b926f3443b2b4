//! Pods that do not go when they are told to.

use muster_e2e::cluster::{Cluster, POD, Tasks, records};
use muster_e2e::wait::wait_for;
use serde_json::json;

#[test]
fn a_pod_that_nobody_ends_is_removed_by_force_after_its_grace() {
    let cluster = Cluster::new();
    // A node without a kubelet: what is bound to it never runs, and never ends.
    let ghost = format!("ghost-{}", cluster.namespace);
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": ghost } }));
    let server = cluster.server(&["--pod-stuck-after", "2s"]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("stuck", "true", &json!({ "killTimeout": "1s", "pod": { "nodeName": ghost } }));
    wait_for("the pod to be made", POD, || cluster.pods().len() == 1);
    tasks.patch("stuck", &json!({ "spec": { "cancel": true } }));
    tasks.wait("stuck", "Canceled");
    wait_for("the pod to be gone", POD, || cluster.pods().is_empty());
    cluster.kubectl(&["delete", "node", &ghost]);
}

#[test]
fn a_victim_whose_pod_cannot_be_deleted_does_not_hold_up_whoever_took_its_place() {
    let cluster = Cluster::new();
    cluster.limit_pods(1);
    let server = cluster.server(&["--preempt-delay", "2s", "--preempt-rest", "10m"]);
    let tasks = Tasks::of(&server, &cluster);
    let stays = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
    tasks.shell("victim", stays, &json!({ "killTimeout": "1s" }));
    let victim = tasks.wait("victim", "Running");
    let pod = victim["status"]["pod"].as_str().unwrap().split_once('/').expect("a namespace").1.to_owned();
    let held = json!({ "metadata": { "finalizers": ["example.org/held"] } }).to_string();
    cluster.kubectl(&["patch", "pod", &pod, "--type=merge", "-p", &held]);
    let more = json!({ "priority": 10, "policy": { "preemptEnabled": true } });
    tasks.shell("urgent", "echo at last", &more);
    tasks.wait("urgent", "Succeeded");
    assert!(records(&tasks.get("victim")).contains(&"Preempted".to_owned()));
    assert!(
        cluster.pods().iter().any(|found| found["metadata"]["name"] == pod.as_str()),
        "it is still there"
    );
    cluster.kubectl(&["patch", "pod", &pod, "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
}
