//! What becomes of pods: canceled, deleted, kept for a while, and those that belong to nobody.

use muster_e2e::cluster::{Cluster, POD, Tasks, records};
use muster_e2e::wait::wait_for;
use serde_json::json;

const FOREVER: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

#[test]
fn a_canceled_task_ends_its_pod() {
    let cluster = Cluster::new();
    let server = cluster.server(&["--keep-failed", "1s"]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("unwanted", FOREVER, &json!({ "killTimeout": "1s" }));
    tasks.wait("unwanted", "Running");
    tasks.patch("unwanted", &json!({ "spec": { "cancel": true } }));
    let task = tasks.wait("unwanted", "Canceled");
    assert_eq!(task["status"]["attempts"][0]["reason"], "Canceled");
    wait_for("the pod to go", POD, || cluster.pods().is_empty());
}

#[test]
fn a_deleted_task_takes_its_pod_along() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("unwanted", FOREVER, &json!({ "killTimeout": "1s" }));
    tasks.wait("unwanted", "Running");
    tasks.delete("unwanted");
    wait_for("the task and its pod to go", POD, || {
        tasks.get("unwanted").is_null() && cluster.pods().is_empty()
    });
}

#[test]
fn pods_are_kept_as_long_as_their_task_says_and_logs_longer() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("short", "echo short", &json!({}));
    tasks.shell("long", "echo long", &json!({ "retention": { "succeeded": "1h" } }));
    tasks.wait("short", "Succeeded");
    tasks.wait("long", "Succeeded");
    wait_for("one pod to go", POD, || cluster.pods().len() == 1);
    let annotation = &cluster.pods()[0]["metadata"]["annotations"]["muster.dev/task-name"];
    assert_eq!(annotation, &json!(format!("{}/long", cluster.namespace)));
    assert_eq!(
        (tasks.log("short", "addon"), tasks.log("long", "addon")),
        ("short\n".into(), "long\n".into())
    );
    let secrets = || cluster.kubectl(&["get", "secrets", "-o", "name"]);
    wait_for("the secret of the pod that went to go", POD, || secrets().lines().count() == 1);
}

#[test]
fn a_pod_that_belongs_to_no_task_goes() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("own", FOREVER, &json!({}));
    tasks.wait("own", "Running");
    let mut orphan = cluster.pods()[0].clone();
    orphan["metadata"]["labels"]["muster.dev/task"] = json!("00000000-0000-0000-0000-000000000000");
    let (labels, spec) = (orphan["metadata"]["labels"].clone(), orphan["spec"]["containers"][0].clone());
    let container = json!({ "name": "addon", "image": spec["image"], "command": spec["command"] });
    cluster.create(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "orphan", "labels": labels },
        "spec": { "containers": [container], "terminationGracePeriodSeconds": 0 },
    }));
    wait_for("the orphan to go", POD, || cluster.pods().len() == 1);
    assert_eq!(tasks.get("own")["status"]["state"], "Running");
}

#[test]
fn a_pod_that_somebody_else_deleted_is_made_again_without_using_up_a_retry() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("robbed", FOREVER, &json!({ "killTimeout": "1s" }));
    tasks.wait("robbed", "Running");
    let name = cluster.pods()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.kubectl(&["delete", "pod", &name, "--wait=false"]);
    wait_for("another attempt", POD, || {
        let task = tasks.get("robbed");
        task["status"]["attempt"] == 2 && task["status"]["state"] == "Running"
    });
    let task = tasks.get("robbed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "PodDeleted", "{task:#}");
    assert_eq!((&task["status"]["lost"], &task["status"]["retries"]), (&json!(1), &json!(null)));
    assert!(records(&task).contains(&"PodNotFound".to_owned()));
}

#[test]
fn the_token_of_an_attempt_opens_nothing_after_its_end() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("reports", "until [ -f /shared/go ]; do sleep 0.1; done", &json!({}));
    tasks.wait("reports", "Running");
    let pod = cluster.pods()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let coded = cluster.kubectl(&["get", "secret", &pod, "-o", "go-template={{.data.TOKEN | base64decode}}"]);
    assert!(coded.starts_with("muster_a_"), "{coded}");
    let report = || {
        let http = server.http().with_token(Some(&coded));
        http.get(&tasks.path("reports")).code
    };
    assert_eq!(report(), 200);
    cluster.kubectl(&["exec", &pod, "-c", "addon", "--", "touch", "/shared/go"]);
    tasks.wait("reports", "Succeeded");
    assert_eq!(report(), 401);
}
