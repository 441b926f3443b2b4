//! What members and groups look like when they are made.

use muster_types::{Job, Millis, State, Task, TaskGroup, WorkState};
use muster_workflows::group_render::render_member;
use muster_workflows::job_render::render_group;
use muster_workflows::job_retry::retry_job;
use serde_json::{Value, json};

fn group(spec: &Value) -> TaskGroup {
    let metadata = json!({"name": "g", "namespace": "n", "uid": "u", "labels": {"muster.dev/job": "j"}});
    let object =
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "TaskGroup", "metadata": metadata, "spec": spec});
    serde_json::from_value(object).expect("a group")
}

fn job(spec: &Value, status: &Value) -> Job {
    let metadata = json!({"name": "j", "namespace": "n", "uid": "u"});
    let object = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status,
    });
    serde_json::from_value(object).expect("a job")
}

fn member(spec: &Value, place: u32, submitted: bool) -> Task {
    render_member(&group(spec), place, submitted, Millis(1_800_000_000_000))
}

#[test]
fn what_a_member_lacks_comes_from_its_group() {
    let spec = json!({
        "kind": "k", "addon": "a", "extensions": ["e"], "priority": 7, "policy": {"isolated": true},
        "data": {"deep": {"a": 1, "b": 1}, "list": [1]}, "robotSelector": {"zone": "a", "arm": "x"},
        "tasks": [
            {"name": "plain"},
            {"name": "own", "spec": {
                "kind": "o", "extensions": [], "priority": 1, "policy": {"preemptExempt": true},
                "container": {"command": ["true"]}, "data": {"deep": {"b": 2}, "list": [2]}, "robotSelector": {"arm": "y"},
            }},
        ],
    });
    let plain = serde_json::to_value(member(&spec, 0, true).spec).unwrap();
    for field in ["kind", "addon", "extensions", "priority", "policy", "data", "robotSelector"] {
        assert_eq!(plain[field], spec[field], "{field}");
    }
    let own = serde_json::to_value(member(&spec, 1, true).spec).unwrap();
    assert_eq!(own["kind"], "o");
    assert_eq!(own["addon"], Value::Null);
    assert_eq!(own["extensions"], json!([]));
    assert_eq!(own["priority"], 1);
    assert_eq!(own["policy"], json!({"preemptExempt": true}));
    assert_eq!(own["data"], json!({"deep": {"a": 1, "b": 2}, "list": [2]}));
    assert_eq!(own["robotSelector"], json!({"zone": "a", "arm": "y"}));
}

#[test]
fn a_member_is_named_labelled_and_owned_by_its_group() {
    let spec = json!({"count": 2, "tasks": [{"name": "a"}, {"metadata": {"labels": {"x": "y"}}}]});
    let task = member(&spec, 3, false);
    let metadata = serde_json::to_value(&task.metadata).unwrap();
    assert_eq!(metadata["name"], "g-t1-1");
    assert_eq!(metadata["namespace"], "n");
    assert_eq!(
        metadata["labels"],
        json!({"muster.dev/group": "g", "muster.dev/index": "1", "muster.dev/job": "j", "x": "y"})
    );
    assert_eq!(metadata["annotations"], json!({"muster.dev/place": "3"}));
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": "muster.dev/v1alpha1", "kind": "TaskGroup", "name": "g", "uid": "u", "controller": true,
            "blockOwnerDeletion": true,
        }])
    );
    assert!(task.spec.suspend);
    assert_eq!(member(&json!({"tasks": [{"name": "a"}]}), 0, true).metadata.name, "g-a");
}

#[test]
fn a_member_is_kept_as_long_as_its_group_unless_it_says_otherwise() {
    let spec = json!({"tasks": [{"spec": {"ttl": {"failed": "1h", "running": "2h"}}}]});
    let ttl = serde_json::to_value(member(&spec, 0, true).spec.ttl).unwrap();
    let zero = "0s";
    assert_eq!(
        ttl,
        json!({"created": zero, "running": "2h", "succeeded": zero, "failed": "1h", "canceled": zero})
    );
}

#[test]
fn a_member_that_waits_for_its_turn_has_no_limit_of_its_own() {
    let spec = json!({"mode": "pipeline", "tasks": [{}, {"spec": {"ttl": {"created": "1s"}}}]});
    let ttl = member(&spec, 1, false).spec.ttl;
    assert_eq!(ttl.created, Some(muster_types::Duration::default()));
}

#[test]
fn a_group_of_a_job_has_its_name_priority_and_robots() {
    let job = job(
        &json!({
            "priority": 5, "robotSelector": {"zone": "a", "arm": "x"}, "suspend": true,
            "taskGroups": [{"name": "one", "robotSelector": {"arm": "y"}, "tasks": [{}]}],
        }),
        &json!({}),
    );
    let group = render_group(&job, 0, Millis(0)).unwrap();
    assert_eq!(group.metadata.name, "j-one");
    assert_eq!(group.metadata.owner_references[0].kind, "Job");
    assert_eq!(group.spec.priority, Some(5));
    assert!(group.spec.suspend);
    assert_eq!(serde_json::to_value(&group.spec.robot_selector).unwrap(), json!({"zone": "a", "arm": "y"}));
    assert!(render_group(&job, 1, Millis(0)).is_none());
}

#[test]
fn a_retry_has_only_what_did_not_succeed_and_what_depends_on_it() {
    let job = job(
        &json!({"cancel": true, "taskGroups": [
            {"name": "fetch", "tasks": [{}]},
            {"name": "work", "dependsOn": ["fetch"], "count": 3, "parallelism": 2, "tasks": [{"name": "w"}]},
            {"name": "alarm", "dependsOn": ["work"], "when": "failed", "tasks": [{}]},
            {"name": "quiet", "dependsOn": ["fetch"], "when": "failed", "tasks": [{}]},
            {"name": "ship", "dependsOn": ["work"], "tasks": [{}]},
        ]}),
        &json!({"state": "Failed", "groups": [
            {"name": "fetch", "state": "Succeeded"}, {"name": "work", "state": "Failed"},
            {"name": "alarm", "state": "Succeeded"}, {"name": "quiet", "state": "Skipped"},
            {"name": "ship", "state": "Skipped"},
        ]}),
    );
    let ended = |group: &str, place: u32| {
        assert_eq!(group, "work");
        Some(if place == 1 { State::Failed } else { State::Succeeded })
    };
    let spec = retry_job(&job, ended).unwrap();
    assert_eq!(
        serde_json::to_value(&spec).unwrap(),
        json!({"taskGroups": [
            {"name": "work", "mode": "batch", "parallelism": 2,
             "tasks": [{"name": "w-1", "metadata": {"labels": {"muster.dev/index": "1"}}}]},
            {"name": "alarm", "dependsOn": ["work"], "when": "failed", "tasks": [{}]},
            {"name": "ship", "dependsOn": ["work"], "tasks": [{}]},
        ]})
    );
}

#[test]
fn a_retry_of_a_pipeline_goes_on_where_it_broke() {
    let job = job(
        &json!({"taskGroups": [{"name": "p", "mode": "pipeline", "tasks": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}]}),
        &json!({"state": "Failed", "groups": [{"name": "p", "state": "Failed"}]}),
    );
    let ended =
        |_: &str, place: u32| [State::Succeeded, State::Failed, State::Canceled].get(place as usize).copied();
    let spec = retry_job(&job, ended).unwrap();
    let names: Vec<_> = spec.task_groups[0].tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
}

#[test]
fn there_is_nothing_to_retry_when_all_succeeded() {
    let mut job = job(
        &json!({"taskGroups": [{"name": "a", "tasks": [{}]}]}),
        &json!({"state": "Succeeded", "groups": [{"name": "a", "state": "Succeeded"}]}),
    );
    assert_eq!(retry_job(&job, |_, _| None), None);
    job.status.groups[0].state = WorkState::Canceled;
    assert!(retry_job(&job, |_, _| None).is_some());
}
