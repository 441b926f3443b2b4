//! What the cluster refuses: said on the task, and nothing else is harmed.

use muster_e2e::cluster::{Cluster, Tasks, records};
use serde_json::json;

#[test]
fn what_the_cluster_refuses_is_said_on_the_task_and_others_run() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("refused", "true", &json!({ "pod": { "priorityClassName": "no-such-class" } }));
    tasks.shell("unknown", "true", &json!({ "pod": { "containers": [] } }));
    tasks.make("Task", "tasks", "no-image", &json!({ "container": { "command": ["true"] } }));
    tasks.shell("fine", "true", &json!({}));
    let said = |name: &str| tasks.wait(name, "Failed")["status"]["message"].as_str().unwrap().to_owned();
    assert!(said("refused").contains("no-such-class"), "{}", said("refused"));
    assert!(said("unknown").contains("it may have affinity"), "{}", said("unknown"));
    assert!(said("no-image").contains("has no image"), "{}", said("no-image"));
    tasks.wait("fine", "Succeeded");
}

#[test]
fn a_namespace_that_is_missing_is_named() {
    let cluster = Cluster::new();
    let server = cluster.server(&["--pod-namespace", "no-such-namespace"]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("homeless", "true", &json!({}));
    let task = tasks.wait("homeless", "Failed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "NamespaceNotFound", "{task:#}");
}

#[test]
fn a_quota_of_no_pods_blocks_and_fails_nothing() {
    let cluster = Cluster::new();
    cluster.limit_pods(0);
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("waits", "true", &json!({}));
    let task = tasks.wait("waits", "QuotaBlocked");
    assert_eq!(task["status"]["waitingFor"]["reason"], "Quota", "{task:#}");
    assert!(records(&task).contains(&"QuotaBlocked".to_owned()));
    cluster.kubectl(&["delete", "quota", "pods"]);
    tasks.wait("waits", "Succeeded");
}
