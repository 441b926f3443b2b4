//! Stories of jobs of a cluster, and what is told of each (seed 004).

use muster_relay::kube_job::{JobEnd, SeenJob, Told, tell};
use serde_json::Value;

fn job() -> SeenJob {
    SeenJob { uid: "u".into(), name: "cds-a".into(), namespace: "cds".into(), ..SeenJob::default() }
}

/// What is told of a story, and what is remembered of it.
fn told_since(mut told: Told, story: &[SeenJob]) -> (Vec<String>, Told) {
    let mut lines = Vec::new();
    for job in story {
        let (messages, now) = tell(&told, job);
        told = now;
        lines.extend(messages.iter().map(|message| format!("{} {}", message.topic, message.id)));
    }
    (lines, told)
}

fn told(story: &[SeenJob]) -> Vec<String> {
    told_since(Told::default(), story).0
}

#[test]
fn an_image_that_takes_long_keeps_a_job_starting() {
    let running = SeenJob { has_run: true, runs: true, ..job() };
    let done = SeenJob { has_run: true, succeeded: 1, end: Some(JobEnd::Complete), ..job() };
    let story = [job(), job(), running.clone(), running, done.clone(), done];
    assert_eq!(
        told(&story),
        ["cds.job.starting u/starting", "cds.job.running u/running", "cds.job.success u/success"]
    );
}

#[test]
fn between_two_tries_a_job_has_not_failed() {
    let first = SeenJob { has_run: true, runs: true, ..job() };
    let between = SeenJob { has_run: true, failed: 1, ..job() };
    let second = SeenJob { has_run: true, runs: true, failed: 1, ..job() };
    let end = JobEnd::Failed("BackoffLimitExceeded - Job has reached the specified backoff limit".into());
    let failed = SeenJob { has_run: true, failed: 2, end: Some(end), ..job() };
    assert_eq!(
        told(&[job(), first, between, second.clone(), second, failed]),
        [
            "cds.job.starting u/starting",
            "cds.job.running u/running",
            "cds.job.retry u/retry/1",
            "cds.job.failed u/failed",
        ]
    );
}

#[test]
fn one_completion_of_several_is_no_success() {
    let some = SeenJob { has_run: true, runs: true, succeeded: 1, ..job() };
    assert_eq!(told(&[job(), some]), ["cds.job.starting u/starting", "cds.job.running u/running"]);
}

#[test]
fn a_suspended_job_says_nothing_until_it_is_resumed() {
    let suspended = SeenJob { suspended: true, ..job() };
    assert_eq!(told(&[suspended.clone(), suspended, job()]), ["cds.job.starting u/starting"]);
}

#[test]
fn after_a_gap_exactly_what_was_missed_is_told() {
    let end = JobEnd::Failed("DeadlineExceeded - Job was active longer than specified deadline".into());
    let failed = SeenJob { has_run: true, failed: 1, end: Some(end), ..job() };
    let before = Told { starting: true, running: true, ..Told::default() };
    let (lines, after) = told_since(before, std::slice::from_ref(&failed));
    assert_eq!(lines, ["cds.job.failed u/failed"]);
    assert_eq!(told_since(after, &[failed]).0, [""; 0], "and once");
}

#[test]
fn the_reason_and_the_number_of_tries_are_in_the_message() {
    let end = JobEnd::Failed("BackoffLimitExceeded - limit".into());
    let (messages, _) =
        tell(&Told::default(), &SeenJob { has_run: true, failed: 7, end: Some(end), ..job() });
    let body: Value = serde_json::from_slice(&messages.last().unwrap().body).unwrap();
    assert_eq!(
        (&body["retry-count"], &body["failure-reason"]),
        (&7.into(), &"BackoffLimitExceeded - limit".into())
    );
    assert_eq!((&body["job-id"], &body["job-namespace"]), (&"u".into(), &"cds".into()));
}
