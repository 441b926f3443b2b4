//! When an attempt ran: as long as its program, to the millisecond.

use muster_tasks::progress::{begin_attempt, observe_ended, observe_lost, observe_started, request_stop};
use muster_tasks::settings::Settings;
use muster_types::attempt::{Cause, EXECUTOR_LOST, Ending, Handle};
use muster_types::task_status::Stopping;
use muster_types::{JsonText, Millis, State, Task, TaskSpec};
use serde_json::{Value, json};

/// When the attempt was handed to its executor.
const HANDED_OVER: i64 = 1_800_000_000_100;

fn begun() -> (Task, Handle) {
    let mut task = Task::new("default", "a", TaskSpec::default());
    "0190a0b0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.record_initial_state();
    let handle = begin_attempt(&mut task, None, None, &[], Millis(HANDED_OVER))
        .expect("the steps of this test are in order");
    (task, handle)
}

fn status(task: &Task) -> Value {
    let object: Value = serde_json::from_slice(&task.to_json().expect("the steps of this test are in order"))
        .expect("the steps of this test are in order");
    object["status"].clone()
}

#[test]
fn a_short_attempt_says_when_its_program_ran_to_the_millisecond() {
    let (mut task, handle) = begun();
    assert_eq!(
        (&status(&task)["started"], &status(&task)["attempts"][0]["startedAt"]),
        (&json!(null), &json!(null))
    );
    observe_started(&mut task, &handle, Millis(HANDED_OVER + 7))
        .expect("the steps of this test are in order");
    let ending = Ending::of_leader(0, Cause::Itself, Millis(HANDED_OVER + 19));
    observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(HANDED_OVER + 42))
        .expect("the steps of this test are in order");
    let status = status(&task);
    assert_eq!(
        [&status["started"], &status["terminated"]],
        ["2027-01-15T08:00:00.107Z", "2027-01-15T08:00:00.119Z"]
    );
    let attempt = &status["attempts"][0];
    assert_eq!([&attempt["startedAt"], &attempt["finishedAt"]], [&status["started"], &status["terminated"]]);
    assert_eq!(status["stateSince"], "2027-01-15T08:00:00Z");
}

#[test]
fn an_end_by_a_clock_that_is_wrong_is_the_time_of_the_news() {
    for at in [0, HANDED_OVER, HANDED_OVER + 60_000] {
        let (mut task, handle) = begun();
        observe_started(&mut task, &handle, Millis(HANDED_OVER + 7))
            .expect("the steps of this test are in order");
        let ending = Ending::of_leader(0, Cause::Itself, Millis(at));
        observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(HANDED_OVER + 42))
            .expect("the steps of this test are in order");
        assert_eq!(status(&task)["attempts"][0]["finishedAt"], "2027-01-15T08:00:00.142Z", "{at}");
    }
}

#[test]
fn an_attempt_that_never_ran_has_no_start() {
    let (mut task, handle) = begun();
    observe_lost(&mut task, &handle, EXECUTOR_LOST, "gone", &Settings::default(), Millis(HANDED_OVER + 5))
        .expect("the steps of this test are in order");
    let attempt = &status(&task)["attempts"][0];
    assert_eq!(
        (&attempt["startedAt"], &attempt["finishedAt"]),
        (&json!(null), &json!("2027-01-15T08:00:00.105Z"))
    );
}

#[test]
fn times_in_whole_seconds_of_an_older_version_are_read() {
    let stored = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "a"}, "spec": {},
        "status": {
            "state": "Succeeded", "started": "2026-11-15T14:00:00Z", "terminated": "2026-11-15T14:00:01Z",
            "attempts": [{"number": 1, "startedAt": "2026-11-15T14:00:00Z", "finishedAt": "2026-11-15T14:00:01Z"}],
        },
    });
    let task = Task::from_json(stored.to_string().as_bytes()).expect("the steps of this test are in order");
    assert_eq!(task.state(), State::Succeeded);
    let took = task.status.terminated.expect("the steps of this test are in order").as_millisecond()
        - task.status.started.expect("the steps of this test are in order").as_millisecond();
    assert_eq!(took, 1_000);
}

#[test]
fn restarts_are_numbered_anew_after_each_reschedule() {
    let (mut task, mut handle) = begun();
    let spec =
        json!({"restart": {"attempts": 2, "delay": "2s"}, "reschedule": {"attempts": 2, "delay": "3s"}});
    task.spec = serde_json::from_value(spec).expect("the steps of this test are in order");
    let mut said = Vec::new();
    loop {
        let ending = Ending::of_leader(3, Cause::Itself, Millis(HANDED_OVER));
        observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(HANDED_OVER))
            .expect("the steps of this test are in order");
        let Some(waiting) = &task.status.waiting_for else { break };
        said.push(waiting.message.split(" at ").next().unwrap_or_default().to_owned());
        handle = begin_attempt(&mut task, None, None, &[], Millis(HANDED_OVER))
            .expect("the steps of this test are in order");
    }
    let restarts = ["restart 1 of 2", "restart 2 of 2"];
    let expected = [&restarts[..], &["reschedule 1 of 2"], &restarts, &["reschedule 2 of 2"], &restarts];
    assert_eq!(
        (said, task.state()),
        (expected.concat().into_iter().map(String::from).collect(), State::Failed)
    );
}

/// What a task waits for whose attempt ended with code 1.
fn rests_after_a_failure(spec: Value) -> (String, String) {
    let (mut task, handle) = begun();
    task.spec = serde_json::from_value(spec).expect("the steps of this test are in order");
    observe_started(&mut task, &handle, Millis(HANDED_OVER)).expect("the steps of this test are in order");
    let ending = Ending::of_leader(1, Cause::Itself, Millis(HANDED_OVER));
    observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(HANDED_OVER))
        .expect("the steps of this test are in order");
    let waiting = task.status.waiting_for.expect("it is tried again later");
    (waiting.reason, waiting.message)
}

#[test]
fn a_task_that_is_tried_again_later_says_as_what_and_when() {
    let (reason, message) = rests_after_a_failure(json!({"restart": {"attempts": 2, "delay": "20s"}}));
    assert_eq!(reason, "Restart");
    assert!(message.starts_with("restart 1 of 2 at 2027-01-15T08:00:21Z, after: "), "{message}");
    assert!(message.contains("exit code 1"), "{message}");
    let (reason, message) = rests_after_a_failure(json!({"reschedule": {"attempts": 3, "delay": "40s"}}));
    assert_eq!(reason, "Reschedule");
    assert!(message.starts_with("reschedule 1 of 3 at 2027-01-15T08:00:41Z, after: "), "{message}");
    let retry = json!({"retry": {"limit": 3, "on": ["NonZeroExit"], "backoff": {"initial": "10s"}}});
    let (reason, message) = rests_after_a_failure(retry);
    assert_eq!(reason, "Retry");
    assert!(message.starts_with("retry 1 of 3 at 2027-01-15T08:00:"), "{message}");
}

#[test]
fn a_preempted_task_says_that_it_was_preempted() {
    let (mut task, handle) = begun();
    observe_started(&mut task, &handle, Millis(HANDED_OVER)).expect("the steps of this test are in order");
    request_stop(&mut task, Stopping::Preempted, None, Millis(HANDED_OVER))
        .expect("the steps of this test are in order");
    let ending = Ending::of_leader(143, Cause::Stopped, Millis(HANDED_OVER));
    observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(HANDED_OVER))
        .expect("the steps of this test are in order");
    let waiting = task.status.waiting_for.expect("it rests");
    assert_eq!(waiting.reason, "Preempted");
    assert_eq!(waiting.message, "preempted; it starts again at 2027-01-15T08:01:01Z at the earliest");
}
