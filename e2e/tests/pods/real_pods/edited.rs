//! Pods that somebody edits by hand.

use muster_e2e::cluster::{Cluster, POD, Tasks};
use muster_e2e::wait::wait_for;
use serde_json::json;

#[test]
fn a_pod_whose_labels_were_taken_away_does_not_run_on_beside_its_successor() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let script = "if [ -e /shared/go ]; then exit 0; fi; trap 'exit 1' TERM; while true; do sleep 0.1; done";
    tasks.shell("edited", script, &json!({ "killTimeout": "1s" }));
    let task = tasks.wait("edited", "Running");
    let pod = task["status"]["pod"].as_str().unwrap().split_once('/').expect("a namespace").1.to_owned();
    cluster.kubectl(&["label", "pod", &pod, "muster.dev/server-"]);
    wait_for("a new attempt to run", POD, || {
        let task = tasks.get("edited");
        task["status"]["attempt"] == 2 && task["status"]["state"] == "Running"
    });
    let task = tasks.get("edited");
    assert_eq!(task["status"]["attempts"][0]["reason"], "PodDeleted", "{task:#}");
    assert_eq!(task["status"]["retries"], json!(null), "{task:#}");
    wait_for("the old pod to go", POD, || {
        cluster.pods().iter().all(|found| found["metadata"]["name"] != pod.as_str())
    });
}
