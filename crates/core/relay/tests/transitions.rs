//! Stories of objects, version by version, and what is told of each.

use muster_relay::classify::{Observed, classify};
use muster_relay::wants::Wants;
use muster_types::event_sink::EventSinkSpec;
use muster_types::{EventSink, Message, Millis};
use serde_json::{Value, json};

fn wants(spec: &Value) -> Wants {
    let spec: EventSinkSpec = serde_json::from_value(spec.clone()).expect("a spec");
    Wants::of(&EventSink::new("default", "sink", spec))
}

fn cds() -> Wants {
    wants(&json!({"amqp": {"url": "amqp://b"}}))
}

fn events() -> Wants {
    wants(&json!({"file": {"path": "a"}}))
}

fn object(kind: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": kind,
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1", "labels": {"app": "x"}},
        "spec": spec, "status": status,
    })
}

/// What is told of a story: one line per message, the id behind the topic.
fn told(wants: &Wants, resource: &str, versions: &[Value], deleted: bool) -> Vec<String> {
    let texts: Vec<Vec<u8>> = versions.iter().map(|version| version.to_string().into_bytes()).collect();
    let mut lines = Vec::new();
    let changes = texts.iter().enumerate().map(|(place, after)| {
        let before = place.checked_sub(1).map(|place| texts[place].as_slice());
        (place as u64 + 1, before, after.as_slice(), false)
    });
    let last =
        texts.last().map(|last| (texts.len() as u64 + 1, Some(last.as_slice()), last.as_slice(), true));
    for (revision, before, after, deleted) in changes.chain(last.filter(|_| deleted)) {
        let at = Millis(1_700_000_000_000);
        let observed = Observed { resource, namespace: "default", revision, at, before, after, deleted };
        let messages = classify(wants, &observed).expect("a readable object");
        lines.extend(messages.iter().map(|message| format!("{} {}", message.topic, message.id)));
    }
    lines
}

fn task(spec: &Value, status: &Value) -> Value {
    object("Task", spec, status)
}

fn told_of_task(wants: &Wants, statuses: &[Value]) -> Vec<String> {
    let versions: Vec<_> = statuses.iter().map(|status| task(&json!({}), status)).collect();
    told(wants, "tasks.muster.dev", &versions, false)
}

/// What is told of a task whose status changed.
fn told_of_change(wants: &Wants, before: &Value, after: &Value) -> Vec<Message> {
    let [before, after] = [before, after].map(|status| task(&json!({}), status).to_string().into_bytes());
    let observed = Observed {
        resource: "tasks.muster.dev",
        namespace: "default",
        revision: 2,
        at: Millis(0),
        before: Some(&before),
        after: &after,
        deleted: false,
    };
    classify(wants, &observed).expect("a readable object")
}

/// A task at an attempt, with the attempts that ran so far, and how the earlier ones ended.
fn at(state: &str, attempt: u32, ran: &[u32], ends: &[&str]) -> Value {
    let events: Vec<_> = ran
        .iter()
        .map(|number| json!({"kind": "PodRunning", "count": 1, "reason": format!("u-{number}"), "last": "2026-01-01T00:00:00Z"}))
        .collect();
    let attempts: Vec<_> =
        ends.iter().zip(1..).map(|(reason, number)| json!({"number": number, "reason": reason})).collect();
    json!({"state": state, "attempt": attempt, "events": events, "attempts": attempts})
}

#[test]
fn a_task_that_succeeds_starts_runs_and_succeeds() {
    let story =
        [json!({}), at("Pending", 1, &[], &[]), at("Running", 1, &[1], &[]), at("Succeeded", 1, &[1], &[""])];
    assert_eq!(
        told_of_task(&cds(), &story),
        ["cds.job.starting u/starting", "cds.job.running u/running", "cds.job.success u/success"]
    );
    assert_eq!(
        told_of_task(&events(), &story),
        [
            "dev.muster.task.created u/created",
            "dev.muster.task.ready u/ready",
            "dev.muster.task.pending u/pending/1",
            "dev.muster.task.running u/running/1",
            "dev.muster.task.succeeded u/succeeded",
        ]
    );
}

#[test]
fn an_attempt_that_was_written_with_its_end_ran_all_the_same() {
    let story = [json!({}), at("Pending", 1, &[], &[]), at("Succeeded", 1, &[1], &[""])];
    assert_eq!(
        told_of_task(&cds(), &story),
        ["cds.job.starting u/starting", "cds.job.running u/running", "cds.job.success u/success"]
    );
}

#[test]
fn a_second_attempt_is_a_retry_after_a_failure_and_nothing_after_preemption_or_a_clean_stop() {
    let until = |ended: &str| {
        vec![
            at("Running", 1, &[1], &[]),
            at("Ready", 1, &[1], &[ended]),
            at("Pending", 2, &[1], &[ended]),
            at("Running", 2, &[1, 2], &[ended]),
        ]
    };
    let after_failure = told_of_task(&cds(), &until(""));
    assert_eq!(after_failure.last().unwrap(), "cds.job.retry u/retry/2");
    assert_eq!(told_of_task(&cds(), &until("ExecutorLost")), after_failure);
    let after_preemption = told_of_task(&cds(), &until("Preempted"));
    assert_eq!(after_preemption, ["cds.job.starting u/starting", "cds.job.running u/running"]);
    assert_eq!(told_of_task(&cds(), &until("ServerStopped")), after_preemption);
    assert_eq!(
        told_of_task(&events(), &until("Preempted")).last().unwrap(),
        "dev.muster.task.running u/running/2"
    );
}

#[test]
fn an_attempt_that_never_ran_does_not_make_the_next_one_a_retry() {
    let story = [
        json!({}),
        at("Pending", 1, &[], &[]),
        at("Ready", 1, &[], &["StartFailed"]),
        at("Pending", 2, &[], &["StartFailed"]),
        at("Running", 2, &[2], &["StartFailed"]),
    ];
    assert_eq!(told_of_task(&cds(), &story), ["cds.job.starting u/starting", "cds.job.running u/running"]);
}

#[test]
fn an_attempt_that_failed_at_once_was_the_first_try_all_the_same() {
    let mut back = at("Ready", 1, &[1], &[""]);
    back["retries"] = json!(1);
    let messages = told_of_change(&cds(), &at("Pending", 1, &[], &[]), &back);
    assert_eq!(messages[0].topic, "cds.job.running");
    assert_eq!(serde_json::from_slice::<Value>(&messages[0].body).unwrap()["retry-count"], 0);
}

#[test]
fn waiting_is_told_to_those_who_want_every_transition_and_to_nobody_else() {
    let story = [
        json!({}),
        json!({"state": "Postponed"}),
        json!({"state": "QuotaBlocked"}),
        json!({"state": "Ready"}),
    ];
    assert_eq!(told_of_task(&cds(), &story), ["cds.job.starting u/starting"]);
    assert_eq!(
        told_of_task(&events(), &story)[2..],
        [
            "dev.muster.task.postponed u/postponed/r2",
            "dev.muster.task.quotablocked u/quotablocked/r3",
            "dev.muster.task.returned u/returned/r4",
        ]
    );
}

#[test]
fn a_message_about_a_task_that_waits_says_the_state_that_is_recorded() {
    for state in ["Postponed", "QuotaBlocked"] {
        let messages = told_of_change(&events(), &json!({"state": "Ready"}), &json!({"state": state}));
        let body: Value = serde_json::from_slice(&messages[0].body).unwrap();
        assert_eq!((messages.len(), &body["data"]["state"]), (1, &json!(state)), "{body}");
    }
}

#[test]
fn a_suspended_task_starts_when_it_is_submitted() {
    let suspended = task(&json!({"suspend": true}), &json!({}));
    let submitted = [task(&json!({}), &json!({})), task(&json!({}), &json!({"state": "Ready"}))];
    let story = [vec![suspended.clone(), suspended.clone()], submitted.to_vec()].concat();
    assert_eq!(told(&cds(), "tasks.muster.dev", &story, false), ["cds.job.starting u/starting"]);
    let canceled = [suspended, task(&json!({"suspend": true}), &json!({"state": "Canceled"}))];
    assert_eq!(told(&cds(), "tasks.muster.dev", &canceled, false), ["cds.job.failed u/failed"]);
}

#[test]
fn a_task_that_is_deleted_before_its_end_has_failed_for_those_who_wait() {
    let story = |status: Value| told(&cds(), "tasks.muster.dev", &[task(&json!({}), &status)], true);
    assert_eq!(story(at("Running", 1, &[1], &[])).last().unwrap(), "cds.job.failed u/failed");
    let ended = story(at("Succeeded", 1, &[1], &[""]));
    assert_eq!(ended.last().unwrap(), "cds.job.success u/success");
    let unsubmitted = told(&cds(), "tasks.muster.dev", &[task(&json!({"suspend": true}), &json!({}))], true);
    assert!(unsubmitted.is_empty(), "{unsubmitted:?}");
}

#[test]
fn a_task_whose_history_is_unknown_gives_what_it_must_have_had_under_the_same_ids() {
    let seen = at("Failed", 2, &[1, 2], &["", ""]);
    assert_eq!(
        told_of_task(&cds(), &[seen]),
        [
            "cds.job.starting u/starting",
            "cds.job.running u/running",
            "cds.job.retry u/retry/2",
            "cds.job.failed u/failed",
        ]
    );
}

#[test]
fn the_document_of_cds_is_that_of_the_seed() {
    let mut failed = at("Failed", 2, &[1, 2], &["", ""]);
    failed["retries"] = json!(1);
    failed["errors"] = json!([{"severity": "Error", "description": "(muster) exit code 7"}]);
    let version = task(&json!({}), &failed).to_string().into_bytes();
    let before = task(&json!({}), &at("Running", 2, &[1, 2], &["", ""])).to_string().into_bytes();
    let observed = Observed {
        resource: "tasks.muster.dev",
        namespace: "default",
        revision: 9,
        at: Millis(0),
        before: Some(&before),
        after: &version,
        deleted: false,
    };
    let messages = classify(&cds(), &observed).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&messages[0].body).unwrap(),
        json!({
            "job-id": "u", "job-name": "a", "job-namespace": "default", "retry-count": 1,
            "failure-reason": "(muster) exit code 7",
        })
    );
    assert_eq!(&*messages[0].key, "u");
}

#[test]
fn a_cloud_event_has_its_attributes_in_the_document_or_beside_it() {
    let version = task(&json!({"kind": "k"}), &at("Succeeded", 1, &[1], &[""])).to_string().into_bytes();
    let before = task(&json!({"kind": "k"}), &at("Running", 1, &[1], &[])).to_string().into_bytes();
    let observed = Observed {
        resource: "tasks.muster.dev",
        namespace: "default",
        revision: 9,
        at: Millis(1_700_000_000_123),
        before: Some(&before),
        after: &version,
        deleted: false,
    };
    let structured = classify(&events(), &observed).unwrap().remove(0);
    let event: Value = serde_json::from_slice(&structured.body).unwrap();
    let data = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "namespace": "default", "name": "a", "uid": "u",
        "state": "Succeeded", "attempt": 1, "taskKind": "k",
    });
    assert_eq!(
        event,
        json!({
            "specversion": "1.0", "id": "u/succeeded", "type": "dev.muster.task.succeeded", "subject": "default/a",
            "source": "/apis/muster.dev/v1alpha1/namespaces/default/tasks/a", "time": "2023-11-14T22:13:20.123Z",
            "partitionkey": "u", "revision": "9", "datacontenttype": "application/json", "data": data,
        })
    );
    assert_eq!(structured.content_type, "application/cloudevents+json; charset=utf-8");
    let binary = wants(&json!({"file": {"path": "a"}, "mode": "binary"}));
    let binary = classify(&binary, &observed).unwrap().remove(0);
    assert_eq!(serde_json::from_slice::<Value>(&binary.body).unwrap(), data);
    assert_eq!(binary.content_type, "application/json");
    assert!(binary.attributes.contains(&("type", "dev.muster.task.succeeded".to_owned())));
    assert_eq!(binary.id, structured.id);
}

#[test]
fn jobs_and_groups_are_told_by_their_state() {
    let versions: Vec<_> = [json!({}), json!({"state": "Running"}), json!({"state": "Failed"})]
        .iter()
        .map(|status| object("Job", &json!({}), status))
        .collect();
    assert_eq!(
        told(&events(), "jobs.muster.dev", &versions, true),
        [
            "dev.muster.job.created u/created",
            "dev.muster.job.running u/running/r2",
            "dev.muster.job.failed u/failed",
            "dev.muster.job.deleted u/deleted",
        ]
    );
    assert!(told(&cds(), "jobs.muster.dev", &versions, true).is_empty(), "CDS knows tasks alone");
}

#[test]
fn schedules_and_robots_are_told_by_what_they_do() {
    let schedule =
        |suspend: bool, made: u32| object("Schedule", &json!({"suspend": suspend}), &json!({"made": made}));
    assert_eq!(
        told(
            &events(),
            "schedules.muster.dev",
            &[schedule(false, 0), schedule(false, 1), schedule(true, 1)],
            false
        ),
        [
            "dev.muster.schedule.created u/created",
            "dev.muster.schedule.run u/run/1",
            "dev.muster.schedule.suspended u/suspended/r3",
        ]
    );
    let robot = |phase: &str| object("Robot", &json!({"robotId": "r"}), &json!({"phase": phase}));
    assert_eq!(
        told(&events(), "robots.muster.dev", &[robot("Online"), robot("Online"), robot("Offline")], false),
        [
            "dev.muster.robot.created u/created",
            "dev.muster.robot.online u/online/r1",
            "dev.muster.robot.offline u/offline/r3",
        ]
    );
}

#[test]
fn managed_resources_of_any_kind_are_told_by_generation_pulse_and_condition() {
    let version = |generation: i64, pulse: &str, ready: &str| {
        json!({
            "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "a", "namespace": "default", "uid": "u", "generation": generation},
            "status": {"pulse": {"at": pulse}, "conditions": [{"type": "Ready", "status": ready}]},
        })
    };
    assert_eq!(
        told(
            &events(),
            "clusters.resources.muster.dev",
            &[version(1, "1", "False"), version(2, "1", "False"), version(2, "2", "True")],
            false
        ),
        [
            "dev.muster.resource.clusters.created u/created",
            "dev.muster.resource.clusters.pulse u/pulse/r1",
            "dev.muster.resource.clusters.ready.false u/ready.false/r1",
            "dev.muster.resource.clusters.changed u/changed/2",
            "dev.muster.resource.clusters.pulse u/pulse/r3",
            "dev.muster.resource.clusters.ready.true u/ready.true/r3",
        ]
    );
}

#[test]
fn a_sink_hears_of_what_it_asked_for() {
    let story = [json!({}), at("Running", 1, &[1], &[]), at("Failed", 1, &[1], &[""])];
    let heard = |spec: Value| told_of_task(&wants(&spec), &story).len();
    assert_eq!(heard(json!({"amqp": {}, "filter": {"transitions": ["Failed"]}})), 1);
    assert_eq!(heard(json!({"amqp": {}, "filter": {"kinds": ["Job"]}})), 0);
    assert_eq!(heard(json!({"amqp": {}, "filter": {"labels": {"app": "x"}}})), 3);
    assert_eq!(heard(json!({"amqp": {}, "filter": {"labels": {"app": "y"}}})), 0);
    assert_eq!(heard(json!({"amqp": {}, "sources": {"work": {"namespaces": ["other"]}}})), 0);
    assert_eq!(heard(json!({"amqp": {}, "sources": {"work": {"namespaces": ["*"]}}})), 3);
}

#[test]
fn an_object_that_cannot_be_read_is_an_error_of_its_own() {
    let observed = Observed {
        resource: "tasks.muster.dev",
        namespace: "default",
        revision: 1,
        at: Millis(0),
        before: None,
        after: b"{\"status\": 7}",
        deleted: false,
    };
    assert!(classify(&cds(), &observed).is_err());
}
