//! What a run of a schedule looks like, and how long it is kept.

use muster_types::task::RetryOn;
use muster_types::{Duration, Millis, Schedule, State, Timestamp};
use muster_workflows::schedule_history::{EndedRun, choose_forgotten};
use muster_workflows::schedule_run::{Cause, complete, render_job, render_task};
use serde_json::{Value, json};

fn schedule(spec: &Value) -> Schedule {
    let schedule = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Schedule",
        "metadata": {"name": "s", "namespace": "n", "uid": "u"}, "spec": spec,
    });
    serde_json::from_value(schedule).expect("a good schedule")
}

fn time() -> Cause {
    Cause::Time(Timestamp::from_second(0))
}

#[test]
fn a_run_belongs_to_its_schedule_and_says_what_time_it_is_for() {
    let schedule =
        schedule(&json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"kind": "k"}}}));
    let task = render_task(&schedule, schedule.spec.template.as_ref().unwrap(), Some(&time()));
    let owner = &task.metadata.owner_references[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("Schedule", "u", Some(true)));
    assert_eq!(task.metadata.name, "s-19700101t000000");
    assert_eq!(
        (task.metadata.labels["a"].as_str(), task.metadata.labels["muster.dev/schedule"].as_str()),
        ("b", "s")
    );
    assert_eq!(task.metadata.annotations["muster.dev/scheduled-at"], "1970-01-01T00:00:00Z");
}

#[test]
fn exec_timeout_is_final_and_max_restart_is_one_limit_over_all_other_failures() {
    let spec = json!({
        "schedulePolicy": {"execTimeout": 100, "maxRestart": 2},
        "template": {"spec": {"kind": "k", "timeout": "1h", "retry": {"limit": 9, "on": ["Timeout"], "lostLimit": 7}}},
    });
    let schedule = schedule(&spec);
    let task = render_task(&schedule, schedule.spec.template.as_ref().unwrap(), Some(&time()));
    assert_eq!(task.spec.timeout, Some(Duration::from_secs(100)));
    let on = [RetryOn::NonZeroExit, RetryOn::Killed, RetryOn::ExecutorLost, RetryOn::StartFailed];
    assert_eq!((task.spec.retry.limit, task.spec.retry.on.as_deref()), (Some(2), Some(&on[..])));
    assert_eq!(task.spec.retry.lost_limit, None);
}

#[test]
fn what_attempts_of_a_run_leave_is_not_kept_unless_the_template_says_so() {
    let kept = |template: Value| {
        let schedule = schedule(&json!({"template": {"spec": template}}));
        render_task(&schedule, schedule.spec.template.as_ref().unwrap(), None).spec.retention
    };
    let retention = kept(json!({"kind": "k"}));
    assert_eq!(
        (retention.succeeded, retention.failed),
        (Some(Duration::default()), Some(Duration::default()))
    );
    assert_eq!(kept(json!({"retention": {"failed": "1h"}})).failed, Some(Duration::from_secs(3600)));
}

#[test]
fn a_timeout_is_not_tried_again_though_the_template_would() {
    let spec = json!({
        "schedulePolicy": {"execTimeout": 100},
        "template": {"spec": {"kind": "k", "retry": {"on": ["Timeout", "Killed"]}}},
    });
    let schedule = schedule(&spec);
    let task = render_task(&schedule, schedule.spec.template.as_ref().unwrap(), None);
    assert_eq!(task.spec.retry.on, Some(vec![RetryOn::Killed]));
}

#[test]
fn a_job_is_made_as_its_template_says() {
    let schedule =
        schedule(&json!({"jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"priority": 7}}}));
    let mut job = render_job(&schedule, schedule.spec.job_template.as_ref().unwrap(), Some(&time()));
    complete(&mut job.metadata, &schedule, Millis(1_767_225_600_123));
    let job = serde_json::to_value(job).unwrap();
    assert_eq!((&job["kind"], &job["spec"]["priority"]), (&json!("Job"), &json!(7)));
    assert_eq!(job["metadata"]["ownerReferences"][0]["name"], "s");
}

#[test]
fn uids_of_runs_grow_with_time_and_differ_by_run() {
    let uid = |name: &str, at: i64| {
        let schedule = schedule(&json!({"template": {"spec": {"kind": "k"}}}));
        let mut task = render_task(&schedule, schedule.spec.template.as_ref().unwrap(), Some(&time()));
        task.metadata.name = name.to_owned();
        complete(&mut task.metadata, &schedule, Millis(at));
        task.metadata.uid
    };
    let now = 1_767_225_600_123;
    assert!(uid("b", now) < uid("a", now + 1));
    assert_ne!(uid("a", now), uid("b", now));
    assert_eq!((uid("a", now).len(), &uid("a", now)[14..15]), (36, "7"));
}

#[test]
fn the_oldest_runs_beyond_the_limits_go() {
    let runs: Vec<_> = [State::Succeeded, State::Failed, State::Succeeded, State::Canceled, State::Succeeded]
        .into_iter()
        .enumerate()
        .map(|(key, state)| EndedRun { at: Timestamp::from_second(0), key, state })
        .collect();
    let gone = |spec: Value| -> Vec<usize> {
        choose_forgotten(&schedule(&spec).spec, runs.iter()).iter().map(|run| run.key).collect()
    };
    assert_eq!(gone(json!({})), [] as [usize; 0]);
    assert_eq!(gone(json!({"successfulHistoryLimit": 1})), [2, 0]);
    assert_eq!(gone(json!({"successfulHistoryLimit": 0, "failedHistoryLimit": 1})), [4, 2, 1, 0]);
}
