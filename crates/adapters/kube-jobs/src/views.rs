//! What is read out of a Job and a Pod. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use muster_ports::kube_jobs::{FinishedPod, PodContainer};
use muster_types::{KubeJobEnd, KubeJobView, KubePodView};

use crate::objects::{ContainerStatus, Job, Pod};

/// What is seen of a job.
pub fn view_job(job: &Job) -> KubeJobView {
    let metadata = job.metadata.clone();
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    KubeJobView {
        uid: metadata.uid.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        namespace: metadata.namespace.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default().into_iter().collect(),
        suspended: job.spec.suspend,
        failed: count(job.status.failed),
        succeeded: count(job.status.succeeded),
        end: end_of(job),
    }
}

/// The conditions alone say how a job ended: its counters pass through zero between two tries.
fn end_of(job: &Job) -> Option<KubeJobEnd> {
    let conditions = &job.status.conditions;
    let last =
        conditions.iter().find(|it| it.status == "True" && ["Complete", "Failed"].contains(&&*it.kind))?;
    if last.kind == "Complete" {
        return Some(KubeJobEnd::Complete);
    }
    let parts: Vec<&str> =
        [&*last.reason, &*last.message].into_iter().filter(|part| !part.is_empty()).collect();
    Some(KubeJobEnd::Failed(if parts.is_empty() { "Unknown".to_owned() } else { parts.join(" - ") }))
}

/// What is seen of a pod; `None` if it is not one of a job.
pub fn view_pod(pod: &Pod) -> Option<KubePodView> {
    let metadata = &pod.metadata;
    let owner = metadata.owner_references.as_ref()?.iter().find(|owner| owner.kind == "Job")?;
    let containers = &pod.status.container_statuses;
    let deleted = metadata.deletion_timestamp.as_ref().map(seconds);
    let ended = containers.iter().filter_map(|it| it.state.terminated.finished_at.as_ref().map(seconds));
    let made = metadata.creation_timestamp.as_ref().map(seconds);
    let failed = match pod.status.phase.as_str() {
        "Succeeded" => None,
        "Failed" => ended.max().or(deleted).or(made),
        _ => deleted,
    };
    Some(KubePodView {
        uid: metadata.uid.clone()?,
        job: owner.uid.clone(),
        started: containers.iter().filter_map(last_start).max(),
        failed,
        deleted: deleted.is_some(),
        restarts: restarts(containers),
    })
}

fn restarts(containers: &[ContainerStatus]) -> u32 {
    let most = containers.iter().map(|container| container.restart_count).max();
    u32::try_from(most.unwrap_or(0)).unwrap_or(0)
}

/// When a container last began to run. One that could not be started has a time long ago.
fn last_start(container: &ContainerStatus) -> Option<i64> {
    let states = [&container.state, &container.last_state].into_iter();
    let starts = states.flat_map(|state| [&state.running.started_at, &state.terminated.started_at]);
    starts.flatten().map(seconds).filter(|at| *at > 0).max()
}

fn seconds(time: &Time) -> i64 {
    time.0.as_second()
}

/// The containers of a pod that ran, those that prepared it first.
pub fn view_finished(pod: &Pod) -> FinishedPod {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let all = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    let mut containers = Vec::new();
    for container in all {
        let run = |previous| PodContainer { pod: name.clone(), container: container.name.clone(), previous };
        if container.restart_count > 0 {
            containers.push(run(true));
        }
        if last_start(container).is_some() {
            containers.push(run(false));
        }
    }
    FinishedPod { name, containers }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(status: &Value) -> KubeJobView {
        let job = json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"k": "v"}},
            "spec": {"template": {}, "suspend": true}, "status": status,
        });
        view_job(&serde_json::from_value(job).unwrap())
    }

    fn pod(status: &Value, more: &Value) -> KubePodView {
        let mut pod = json!({
            "metadata": {
                "uid": "p", "creationTimestamp": "2026-11-15T12:00:00Z",
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u"}],
            },
            "status": status,
        });
        for (key, value) in more.as_object().unwrap() {
            pod["metadata"][key] = value.clone();
        }
        view_pod(&serde_json::from_value(pod).unwrap()).unwrap()
    }

    const START: &str = "1970-01-01T00:01:00Z";
    const END: &str = "1970-01-01T00:02:00Z";

    #[test]
    fn conditions_alone_say_that_a_job_ended() {
        assert_eq!(job(&json!({"failed": 1, "startTime": START})).end, None, "between two tries");
        let target = json!({"conditions": [{"type": "FailureTarget", "status": "True"}]});
        assert_eq!(job(&target).end, None, "its pods still end");
        let complete = json!({"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]});
        let seen = job(&complete);
        assert_eq!((seen.end, seen.succeeded, seen.suspended), (Some(KubeJobEnd::Complete), 2, true));
        let reason =
            json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"});
        let failed = job(&json!({"conditions": [reason]})).end;
        assert_eq!(failed, Some(KubeJobEnd::Failed("BackoffLimitExceeded - limit".into())));
        let bare = job(&json!({"conditions": [{"type": "Failed", "status": "True"}]})).end;
        assert_eq!(bare, Some(KubeJobEnd::Failed("Unknown".into())));
    }

    fn containers(state: &Value) -> Value {
        json!([{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": state}])
    }

    #[test]
    fn a_container_ran_if_it_was_really_started() {
        let pulling = containers(&json!({"waiting": {"reason": "ContainerCreating"}}));
        assert_eq!(pod(&json!({"phase": "Pending", "containerStatuses": pulling}), &json!({})).started, None);
        let running = containers(&json!({"running": {"startedAt": START}}));
        let seen = pod(&json!({"phase": "Running", "containerStatuses": running}), &json!({}));
        assert_eq!((seen.started, seen.failed, seen.restarts), (Some(60), None, 1));
        let epoch = "1970-01-01T00:00:00Z";
        let ended = |start| json!({"terminated": {"exitCode": 128, "startedAt": start, "finishedAt": END}});
        let never = json!({"phase": "Failed", "containerStatuses": containers(&ended(epoch))});
        let seen = pod(&never, &json!({}));
        assert_eq!((seen.started, seen.failed), (None, Some(120)), "its command was not there");
        let ran = json!({"phase": "Failed", "containerStatuses": containers(&ended(START))});
        assert_eq!(pod(&ran, &json!({})).started, Some(60));
    }

    #[test]
    fn a_pod_that_was_deleted_failed_unless_it_succeeded() {
        let gone = json!({"deletionTimestamp": END});
        let seen = pod(&json!({"phase": "Running"}), &gone);
        assert_eq!((seen.failed, seen.deleted), (Some(120), true));
        assert_eq!(pod(&json!({"phase": "Succeeded"}), &gone).failed, None);
        let evicted = pod(&json!({"phase": "Failed"}), &json!({}));
        assert!(evicted.failed.is_some() && !evicted.deleted);
    }
}
