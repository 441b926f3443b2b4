//! Every path through the states of seed 004, with real pods.

use muster_e2e::cluster::{Cluster, POD};
use muster_e2e::wait::wait_for;
use serde_json::json;

use crate::world::World;

#[test]
fn a_job_that_succeeds_starts_runs_and_succeeds() {
    let world = World::new(&json!({}));
    world.job("good", "echo hello", &json!({}));
    let last = world.expect("good", &["starting", "running", "success"]);
    assert_eq!((&last["retry-count"], &last["job-namespace"]), (&json!(0), &json!(world.cluster.namespace)));
    assert_eq!(last["job-id"], world.field("good", ".metadata.uid"));
    assert_eq!(last.get("failure-reason"), None);
}

#[test]
fn a_job_that_fails_twice_is_tried_again_and_fails_once() {
    let world = World::new(&json!({}));
    world.job("bad", "exit 3", &json!({"backoffLimit": 1}));
    let last = world.expect("bad", &["starting", "running", "retry", "failed"]);
    assert_eq!(last["retry-count"], 2);
    let reason = last["failure-reason"].as_str().unwrap();
    assert!(reason.starts_with("BackoffLimitExceeded - "), "{reason}");
}

#[test]
fn a_container_that_is_started_again_is_a_retry_and_may_succeed() {
    let world = World::new(&json!({}));
    let script = "test -e /scratch/seen && exit 0; touch /scratch/seen; exit 1";
    world.job("second", script, &json!({"restartPolicy": "OnFailure", "backoffLimit": 3}));
    let last = world.expect("second", &["starting", "running", "retry", "success"]);
    assert_eq!(last["retry-count"], 1);
}

#[test]
fn a_job_that_takes_too_long_fails_for_its_deadline() {
    let world = World::new(&json!({}));
    world.job("slow", "sleep 300", &json!({"activeDeadlineSeconds": 5}));
    let last = world.expect("slow", &["starting", "running", "failed"]);
    let reason = last["failure-reason"].as_str().unwrap();
    assert!(reason.starts_with("DeadlineExceeded - "), "{reason}");
}

#[test]
fn a_suspended_job_says_nothing_and_one_that_is_resumed_is_not_tried_again() {
    let world = World::new(&json!({}));
    world.job("later", "sleep 300", &json!({"suspend": true}));
    // Something that came after it was told, and nothing of it.
    world.job("other", "true", &json!({}));
    world.expect("other", &["starting", "running", "success"]);
    assert_eq!(world.told("later"), []);
    let suspend = |suspend: bool| {
        let patch = json!({"spec": {"suspend": suspend}}).to_string();
        world.cluster.kubectl(&["patch", "job", "later", "--type", "merge", "-p", &patch]);
    };
    suspend(false);
    world.expect("later", &["starting", "running"]);
    suspend(true);
    wait_for("its pod to go", POD, || {
        world
            .cluster
            .pods()
            .iter()
            .all(|pod| !pod["metadata"]["name"].as_str().unwrap_or_default().starts_with("later"))
    });
    suspend(false);
    wait_for("it to run again", POD, || world.field("later", ".status.ready") == "1");
    let patch = json!({"spec": {"activeDeadlineSeconds": 1}}).to_string();
    world.cluster.kubectl(&["patch", "job", "later", "--type", "merge", "-p", &patch]);
    world.expect("later", &["starting", "running", "failed"]);
}

#[test]
fn a_job_of_several_completions_runs_once_and_succeeds_with_the_last() {
    let world = World::new(&json!({}));
    world.job("three", "true", &json!({"completions": 3, "parallelism": 2}));
    world.expect("three", &["starting", "running", "success"]);
    assert_eq!(world.field("three", ".status.succeeded"), "3");
}

#[test]
fn an_image_that_is_not_there_yet_keeps_a_job_starting() {
    let world = World::new(&json!({}));
    world.job("pull", "true", &json!({"image": "localhost/muster-none:none"}));
    let waits = || -> Option<String> {
        let pod = world.cluster.pods().into_iter().next()?;
        let reason = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
        let name = pod["metadata"]["name"].as_str()?.to_owned();
        ["ErrImagePull", "ImagePullBackOff"].iter().any(|known| reason == known).then_some(name)
    };
    wait_for("the image to be asked for", POD, || waits().is_some());
    // The cluster counts the pod as active all the while.
    wait_for("the pod to be counted", POD, || world.field("pull", ".status.active") == "1");
    world.expect("pull", &["starting"]);
    let name = waits().unwrap_or_default();
    world.cluster.kubectl(&["set", "image", &format!("pod/{name}"), &format!("main={}", Cluster::image())]);
    world.expect("pull", &["starting", "running", "success"]);
}
