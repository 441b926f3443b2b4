//! The examples of `docs/reference/messages.md` that are not of tasks are what is sent.

use muster_relay::classify::{Observed, classify};
use muster_relay::job_board::JobBoard;
use muster_relay::kube_job::{KUBE_JOBS, KeptJob, Sight};
use muster_relay::wants::Wants;
use muster_types::{EventSink, KubeJobEnd, KubeJobView, Message, Millis};
use serde_json::{Value, json};

const REFERENCE: &str = include_str!("../../../../docs/reference/messages.md");
/// 2026-11-15T12:00:00Z.
const NOON: Millis = Millis(1_794_744_000_000);

/// The example under a name.
fn example(name: &str) -> Value {
    let block =
        REFERENCE.split(&format!("```json {name}\n")).nth(1).and_then(|rest| rest.split("```").next());
    serde_json::from_str(block.unwrap_or_else(|| missing(name))).expect("an example is JSON")
}

fn missing(name: &str) -> &'static str {
    assert!(name.is_empty(), "the reference has no example {name}");
    ""
}

fn sink(spec: &Value) -> Wants {
    let sink = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink",
        "metadata": {"name": "s", "namespace": "default", "uid": "sink"}, "spec": spec,
    });
    Wants::of(&serde_json::from_value::<EventSink>(sink).expect("a sink"))
}

fn told(wants: &Wants, resource: &str, namespace: &str, before: &Value, after: &Value) -> Vec<Message> {
    let (before, after) = (before.to_string(), after.to_string());
    let observed = Observed {
        resource,
        namespace,
        revision: 42,
        at: NOON,
        before: Some(before.as_bytes()),
        after: after.as_bytes(),
        deleted: false,
    };
    classify(wants, &observed).expect("it can be read")
}

/// The last message about a change is the example of its type.
fn check(kind: &str, resource: &str, name: &str, before: &Value, after: &Value) {
    let group =
        if resource.ends_with(".resources.muster.dev") { "resources.muster.dev" } else { "muster.dev" };
    let object = |more: &Value| {
        let mut object = json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": kind,
            "metadata": {"name": name, "namespace": "default", "uid": "UID", "generation": 1},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object
    };
    let wants = sink(&json!({"file": {"path": "a"}}));
    let messages = told(&wants, resource, "default", &object(before), &object(after));
    let message = messages.last().expect("something is told");
    let sent: Value = serde_json::from_slice(&message.body).expect("JSON");
    assert_eq!(sent, example(&message.topic), "{sent:#}");
}

#[test]
fn every_kind_of_work_has_an_example() {
    let state = |state: &str| json!({"status": {"state": state}});
    check("TaskGroup", "taskgroups.muster.dev", "load", &state("Ready"), &state("Running"));
    check("Job", "jobs.muster.dev", "nightly", &state("Running"), &state("Succeeded"));
    let made = |made: u32| json!({"status": {"made": made}});
    check("Schedule", "schedules.muster.dev", "nightly", &made(6), &made(7));
    let robot = |phase: &str| json!({"spec": {"robotId": "r1"}, "status": {"phase": phase}});
    check("Robot", "robots.muster.dev", "r1", &robot("Offline"), &robot("Online"));
    let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "AllAdaptersReady"}]}});
    check("Cluster", "clusters.resources.muster.dev", "east", &ready("False"), &ready("True"));
}

fn kube_job(wants: &Wants) -> Message {
    let reason = "BackoffLimitExceeded - Job has reached the specified backoff limit";
    let job = KubeJobView {
        uid: "UID".to_owned(),
        name: "cds-a".to_owned(),
        namespace: "media".to_owned(),
        ..KubeJobView::default()
    };
    let mut board = JobBoard::default();
    let mut kept = |job: KubeJobView| {
        board.observe_job(job);
        serde_json::to_value(KeptJob::new(board.look("UID").expect("a job"), Sight::Live)).expect("JSON")
    };
    let before = kept(job.clone());
    let after = kept(KubeJobView { failed: 7, end: Some(KubeJobEnd::Failed(reason.to_owned())), ..job });
    told(wants, KUBE_JOBS, "sink", &before, &after).pop().expect("its end is told")
}

#[test]
fn jobs_of_a_cluster_have_an_example_in_each_profile() {
    for (spec, name) in [
        (json!({"amqp": {"url": "amqp://b"}}), "cds.job.failed of a KubeJob"),
        (json!({"file": {"path": "a"}}), "dev.muster.kubejob.failed"),
    ] {
        let mut spec = spec;
        spec["sources"] = json!({"kubeJobs": {}});
        let sent: Value = serde_json::from_slice(&kube_job(&sink(&spec)).body).expect("JSON");
        assert_eq!(sent, example(name), "{sent:#}");
    }
}

#[test]
fn in_binary_mode_the_body_is_the_data() {
    let wants = sink(&json!({"webhook": {"url": "http://a"}, "mode": "binary", "sources": {"kubeJobs": {}}}));
    let message = kube_job(&wants);
    let body: Value = serde_json::from_slice(&message.body).expect("JSON");
    assert_eq!(body, example("dev.muster.kubejob.failed")["data"]);
    let headers: Value =
        message.attributes.iter().map(|(name, value)| (format!("ce-{name}"), json!(value))).collect();
    assert_eq!(headers, example("headers of dev.muster.kubejob.failed"), "{headers:#}");
}
