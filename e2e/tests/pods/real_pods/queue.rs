//! Quotas of the cluster, priority, escalation and preemption, seen in the pods that are made.

use std::collections::BTreeMap;

use muster_e2e::cluster::{Cluster, Tasks, records};
use serde_json::{Value, json};

fn uid(task: &Value) -> String {
    task["metadata"]["uid"].as_str().expect("a task has a uid").to_owned()
}

/// Which task a pod belongs to.
fn task_of<'a>(names: &'a BTreeMap<String, String>, pod: &str) -> &'a str {
    names.iter().find(|(uid, _)| pod.contains(uid.as_str())).map_or("nobody", |(_, name)| name)
}

/// Waits until the task has lost its place. Whoever takes it may have succeeded before that is written.
fn preempted(tasks: &Tasks, name: &str) {
    muster_e2e::wait::wait_for("the task to be preempted", muster_e2e::cluster::POD, || {
        records(&tasks.get(name)).contains(&"Preempted".to_owned())
    });
}

#[test]
fn a_quota_of_two_pods_is_used_in_order_of_priority() {
    let cluster = Cluster::new();
    cluster.limit_pods(2);
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let priorities = [3, 9, 1, 7, 5, 0, 8, 2, 6, 4];
    let mut names = BTreeMap::new();
    for priority in priorities {
        let name = format!("p{priority}");
        let more = json!({ "priority": priority, "suspend": true });
        names.insert(uid(&tasks.shell(&name, "sleep 1", &more)), name);
    }
    let mut created = cluster.watch_created();
    // From low to high: only a queue starts the highest first.
    let mut ascending = priorities;
    ascending.sort_unstable();
    // Whoever is first may start before the others are there.
    for priority in ascending.iter().rev() {
        tasks.patch(&format!("p{priority}"), &json!({ "spec": { "suspend": false } }));
    }
    let mut order = Vec::new();
    while order.len() < priorities.len() {
        let pod = created.next_name().expect("a pod is made for every task");
        order.push(task_of(&names, &pod).to_owned());
    }
    let expected: Vec<String> = ascending.iter().rev().map(|priority| format!("p{priority}")).collect();
    assert_eq!(order, expected);
    for name in names.values() {
        let task = tasks.wait(name, "Succeeded");
        assert_eq!(task["status"]["retries"], Value::Null, "{task:#}");
        assert_eq!(task["status"]["attempt"], 1, "refusals use up no numbers: {task:#}");
    }
    let last = tasks.get("p0");
    assert!(records(&last).contains(&"QuotaBlocked".to_owned()), "{last:#}");
}

#[test]
fn what_an_important_task_depends_on_goes_before_what_it_does_not() {
    let cluster = Cluster::new();
    cluster.limit_pods(1);
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.make("TaskKind", "taskkinds", "first", &json!({ "priority": 1 }));
    tasks.make("TaskKind", "taskkinds", "second", &json!({ "priority": 9, "dependencies": ["first"] }));
    let subject = json!({ "kind": "Application", "name": "a" });
    tasks.make("Application", "applications", "a", &json!({}));
    let blocker = tasks.shell("blocker", "sleep 3", &json!({ "priority": 99 }));
    tasks.wait("blocker", "Running");
    let mut names = BTreeMap::from([(uid(&blocker), "blocker".to_owned())]);
    for (name, more) in [
        ("between", json!({ "priority": 5 })),
        ("low", json!({ "kind": "first", "subject": subject })),
        ("high", json!({ "kind": "second", "subject": subject })),
    ] {
        names.insert(uid(&tasks.shell(name, "true", &more)), name.to_owned());
    }
    let mut created = cluster.watch_created();
    // The place that `low` leaves may be given away before its end is known; who goes next is not what is tested.
    let first = created.next_name().expect("a pod is made");
    assert_eq!(task_of(&names, &first), "low");
    assert!(records(&tasks.wait("low", "Succeeded")).contains(&"Escalated".to_owned()));
}

#[test]
fn an_important_task_takes_the_place_of_another_when_the_quota_is_used_up() {
    let cluster = Cluster::new();
    cluster.limit_pods(1);
    let server = cluster.server(&["--preempt-delay", "2s", "--preempt-rest", "1s"]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell(
        "victim",
        "trap 'exit 0' TERM; while true; do sleep 0.1; done",
        &json!({ "killTimeout": "1s" }),
    );
    tasks.wait("victim", "Running");
    let more = json!({ "priority": 10, "policy": { "preemptEnabled": true } });
    tasks.shell("urgent", "echo at last", &more);
    let urgent = tasks.wait("urgent", "Succeeded");
    assert!(records(&urgent).contains(&"QuotaBlocked".to_owned()), "{urgent:#}");
    preempted(&tasks, "victim");
    let victim = tasks.wait("victim", "Running");
    assert_eq!(victim["status"]["retries"], Value::Null);
}

#[test]
fn while_a_pod_finds_no_node_only_those_like_it_wait() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    let nowhere = json!({ "pod": { "nodeSelector": { "no-such": "node" } }, "priority": 5 });
    tasks.shell("nowhere", "true", &nowhere);
    let stuck = |task: &Value| task["status"]["waitingFor"]["reason"] == "Unschedulable";
    muster_e2e::wait::wait_for("the pod to find no node", muster_e2e::cluster::POD, || {
        stuck(&tasks.get("nowhere"))
    });
    tasks.shell("alike", "true", &nowhere);
    let alike = tasks.wait("alike", "QuotaBlocked");
    let waits = &alike["status"]["waitingFor"];
    assert_eq!(waits["reason"], "Unschedulable", "{alike:#}");
    assert!(waits["task"].as_str().is_some_and(|task| task.ends_with("/nowhere")), "{alike:#}");
    tasks.shell("other", "true", &json!({}));
    tasks.wait("other", "Succeeded");
    tasks.patch("nowhere", &json!({ "spec": { "cancel": true } }));
    tasks.wait("nowhere", "Canceled");
    let made = |task: &Value| records(task).contains(&"PodCreated".to_owned());
    muster_e2e::wait::wait_for("the one like it to be tried", muster_e2e::cluster::POD, || {
        made(&tasks.get("alike"))
    });
}

#[test]
fn an_important_pod_that_finds_no_node_takes_the_place_of_another() {
    let cluster = Cluster::new();
    let server = cluster.server(&["--preempt-delay", "2s", "--preempt-rest", "1s"]);
    let tasks = Tasks::of(&server, &cluster);
    let cpu = cluster.kubectl(&["get", "nodes", "-o", "jsonpath={.items[0].status.allocatable.cpu}"]);
    let cores: u32 = cpu.trim().parse().expect("whole cores");
    // More than half of the node: two of them do not fit.
    let most = format!("{}m", cores * 1000 * 6 / 10);
    let stays = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
    tasks.shell("victim", stays, &json!({ "killTimeout": "1s", "resources": { "cpu": most } }));
    tasks.wait("victim", "Running");
    tasks.shell("bystander", stays, &json!({ "killTimeout": "1s" }));
    tasks.wait("bystander", "Running");
    let more = json!({ "priority": 10, "policy": { "preemptEnabled": true }, "resources": { "cpu": most } });
    tasks.shell("urgent", "echo at last", &more);
    let urgent = tasks.wait("urgent", "Succeeded");
    assert!(records(&urgent).contains(&"PodPending".to_owned()), "{urgent:#}");
    preempted(&tasks, "victim");
    tasks.wait("victim", "Running");
    let bystander = tasks.get("bystander");
    assert!(
        !records(&bystander).contains(&"Preempted".to_owned()),
        "it has none of what was lacking: {bystander:#}"
    );
}
