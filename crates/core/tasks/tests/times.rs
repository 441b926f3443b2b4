//! When an attempt ran: as long as its program, to the millisecond.

use muster_tasks::progress::{begin_attempt, observe_ended, observe_started, observe_lost};
use muster_tasks::settings::Settings;
use muster_types::attempt::{Cause, EXECUTOR_LOST, Ending, Handle};
use muster_types::{JsonText, Millis, State, Task, TaskSpec};
use serde_json::{Value, json};

/// When the attempt was handed to its executor.
const HANDED_OVER: i64 = 1_800_000_000_100;

fn begun() -> (Task, Handle) {
    let mut task = Task::new("default", "a", TaskSpec::default());
    "0190a0b0-0000-7000-8000-000000000001".clone_into(&mut task.metadata.uid);
    task.record_initial_state();
    let handle = begin_attempt(&mut task, None, None, &[], Millis(HANDED_OVER)).unwrap();
    (task, handle)
}

fn status(task: &Task) -> Value {
    let object: Value = serde_json::from_slice(&task.to_json().unwrap()).unwrap();
    object["status"].clone()
}

#[test]
fn a_short_attempt_says_when_its_program_ran_to_the_millisecond() {
    let (mut task, handle) = begun();
    assert_eq!((&status(&task)["started"], &status(&task)["attempts"][0]["startedAt"]), (&json!(null), &json!(null)));
    observe_started(&mut task, &handle, Millis(HANDED_OVER + 7)).unwrap();
    let ending = Ending::of_leader(0, Cause::Itself, Millis(HANDED_OVER + 19));
    observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(HANDED_OVER + 42)).unwrap();
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
        observe_started(&mut task, &handle, Millis(HANDED_OVER + 7)).unwrap();
        let ending = Ending::of_leader(0, Cause::Itself, Millis(at));
        observe_ended(&mut task, &handle, &ending, &Settings::default(), Millis(HANDED_OVER + 42)).unwrap();
        assert_eq!(status(&task)["attempts"][0]["finishedAt"], "2027-01-15T08:00:00.142Z", "{at}");
    }
}

#[test]
fn an_attempt_that_never_ran_has_no_start() {
    let (mut task, handle) = begun();
    observe_lost(&mut task, &handle, EXECUTOR_LOST, "gone", &Settings::default(), Millis(HANDED_OVER + 5)).unwrap();
    let attempt = &status(&task)["attempts"][0];
    assert_eq!((&attempt["startedAt"], &attempt["finishedAt"]), (&json!(null), &json!("2027-01-15T08:00:00.105Z")));
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
    let task = Task::from_json(stored.to_string().as_bytes()).unwrap();
    assert_eq!(task.state(), State::Succeeded);
    let took = task.status.terminated.unwrap().as_millisecond() - task.status.started.unwrap().as_millisecond();
    assert_eq!(took, 1_000);
}
