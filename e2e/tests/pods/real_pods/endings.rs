//! How pods end, each in its own way.

use muster_e2e::cluster::{Cluster, POD, Tasks, records};
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

#[test]
fn a_task_runs_as_a_pod_and_its_output_is_kept() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell(
        "hello",
        "echo hello from $MUSTER_TASK; echo $ADDON_HOME $SHARED_PATH $CACHE_PATH",
        &json!({}),
    );
    let task = tasks.wait("hello", "Succeeded");
    assert_eq!(tasks.log("hello", "addon"), "hello from hello\n/addon /shared /cache\n");
    assert_eq!(task["status"]["attempts"][0]["runtime"], "pod");
    assert_eq!(task["status"]["attempts"][0]["exitCode"], 0);
    let attached = |index: usize| task["status"]["attached"][index]["name"].clone();
    assert_eq!([attached(0), attached(1)], ["addon.log", "pod.yaml"]);
    let mut seen = records(&task);
    seen.retain(|record| record != "PodDeleted");
    assert_eq!(seen[seen.len() - 2..], ["PodRunning", "PodSucceeded"], "{seen:?}");
    assert!(!seen.contains(&"ContainerKilled".to_owned()), "{seen:?}");
    wait_for("the pod to be removed, and that to be recorded", POD, || {
        records(&tasks.get("hello")).contains(&"PodDeleted".to_owned())
    });
}

#[test]
fn a_program_in_a_pod_finds_the_data_of_its_task_over_that_of_its_kind() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let kind = json!({ "data": { "rules": ["a", "b"], "mode": { "fast": true, "depth": 1 } } });
    tasks.make("TaskKind", "taskkinds", "scan", &kind);
    let script = "cat $MUSTER_TASK_DATA_FILE; echo; echo $MUSTER_TASK_DATA";
    tasks.shell("reads", script, &json!({ "kind": "scan", "data": { "mode": { "depth": 9 } } }));
    tasks.wait("reads", "Succeeded");
    let log = tasks.log("reads", "addon");
    let read: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let merged = json!({ "rules": ["a", "b"], "mode": { "fast": true, "depth": 9 } });
    assert_eq!(read, [merged.clone(), merged]);
}

#[test]
fn a_program_that_fails_fails_its_task_with_its_code() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("fails", "echo no; exit 3", &json!({}));
    let task = tasks.wait("fails", "Failed");
    assert_eq!(task["status"]["attempts"][0]["exitCode"], 3);
    assert_eq!(task["status"]["attempt"], 1);
    assert_eq!(tasks.log("fails", "addon"), "no\n");
    let kept = server.http().get(&format!("{}/attachments/pod.yaml", tasks.path("fails")));
    let text = kept.text();
    assert!(kept.code == 200 && text.contains("exitCode: 3") && text.contains("reason: Started"), "{text}");
}

#[test]
fn a_program_without_memory_is_killed_tried_once_more_and_says_why() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("greedy", "tail /dev/zero", &json!({ "resources": { "memory": "20Mi" } }));
    let task = tasks.wait("greedy", "Failed");
    assert_eq!(task["status"]["attempt"], 2);
    for attempt in task["status"]["attempts"].as_array().unwrap() {
        assert_eq!(
            (&attempt["reason"], &attempt["exitCode"]),
            (&json!("OOMKilled"), &json!(137)),
            "{task:#}"
        );
    }
    assert!(task["status"]["message"].as_str().unwrap().contains("memory"), "{task:#}");
}

#[test]
fn a_task_that_takes_too_long_times_out() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let script = "trap 'echo bye; exit 143' TERM; echo begun; while true; do sleep 0.1; done";
    tasks.shell("slow", script, &json!({ "timeout": "4s" }));
    let task = tasks.wait("slow", "Failed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "Timeout");
    assert_eq!(task["status"]["message"], "Task terminated: Task timeout");
    assert_eq!(tasks.log("slow", "addon"), "begun\nbye\n");
}

#[test]
fn an_image_that_does_not_exist_fails_its_task_at_once() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let spec = json!({
        "container": { "image": "muster.local/no-such-image:1", "command": ["true"] },
        "pod": { "nodeSelector": {} },
    });
    tasks.make("Task", "tasks", "nothing", &spec);
    let task = tasks.wait("nothing", "Failed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "ImageError", "{task:#}");
    assert!(task["status"]["message"].as_str().unwrap().contains("no-such-image"), "{task:#}");
    let events = task["status"]["events"].as_array().expect("records").clone();
    let record = events.iter().find(|record| record["kind"] == "ImageError").expect("the reason is recorded");
    assert!(record["reason"].as_str().is_some_and(|why| why.contains("Image")), "{record:#}");
    wait_for("the pod to be removed, and that to be recorded", POD, || {
        records(&tasks.get("nothing")).contains(&"PodDeleted".to_owned())
    });
}

#[test]
fn a_task_that_is_canceled_before_its_pod_runs_has_no_killed_container() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("nowhere", "true", &json!({ "pod": { "nodeSelector": { "no-such": "node" } } }));
    wait_for("the pod to be made", POD, || cluster.pods().len() == 1);
    tasks.patch("nowhere", &json!({ "spec": { "cancel": true } }));
    let task = tasks.wait("nowhere", "Canceled");
    assert!(!records(&task).contains(&"ContainerKilled".to_owned()), "{task:#}");
    wait_for("the pod to be removed, and that to be recorded", POD, || {
        records(&tasks.get("nowhere")).contains(&"PodDeleted".to_owned())
    });
}

#[test]
fn a_program_that_is_not_in_the_image_fails_its_task() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let spec = json!({ "container": { "image": Cluster::image(), "command": ["/no/such/program"] } });
    tasks.make("Task", "tasks", "nothing", &spec);
    let task = tasks.wait("nothing", "Failed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "CommandNotRun", "{task:#}");
}
