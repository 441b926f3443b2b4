//! Runs that other work makes by ending.

use muster_types::schedule::TriggerKind;
use muster_types::schedule_status::RunRef;
use muster_types::{Schedule, State, Timestamp};
use muster_workflows::schedule::{Plan, Situation, plan_schedule};
use muster_workflows::schedule_run::{Cause, TRIGGER_DEPTH, depth_of, render_task};
use muster_workflows::trigger::{EndedWork, MAX_DEPTH, MAX_PER_MINUTE, is_waited_for};
use serde_json::{Value, json};

fn schedule(on: &Value, policy: &Value) -> Schedule {
    let schedule = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Schedule",
        "metadata": {"name": "s", "namespace": "n", "uid": "u", "creationTimestamp": "1970-01-01T00:01:40Z"},
        "spec": {"schedulePolicy": policy, "triggers": [{"on": on}], "template": {"spec": {"kind": "k"}}},
    });
    serde_json::from_value(schedule).expect("a good schedule")
}

fn ended(name: &str, at: i64, state: State) -> EndedWork {
    let (kind, at) = (TriggerKind::Task, Timestamp::from_second(at));
    EndedWork { kind, name: name.to_owned(), uid: format!("uid-{name}"), at, state, depth: 0 }
}

/// Plans, and keeps the status.
fn look(schedule: &mut Schedule, ended: &[EndedWork], active: &[RunRef], now: i64) -> Plan {
    let now = Timestamp::from_second(now);
    let plan = plan_schedule(&Situation {
        schedule,
        active,
        replaceable: &[],
        results: &[],
        ended,
        missing: None,
        now,
        steady: now,
    });
    schedule.status = plan.status.clone();
    plan
}

fn names(plan: &Plan) -> Vec<&str> {
    let name = |cause: &'_ Cause| -> Option<String> {
        let Cause::Trigger { work } = cause else { return None };
        Some(work.name.clone())
    };
    plan.runs.iter().filter_map(name).map(|name| &*name.leak()).collect()
}

fn triggering(schedule: &Schedule) -> &str {
    let found = schedule.status.conditions.iter().find(|condition| condition.r#type == "Triggering");
    found.map_or("", |found| found.reason.as_str())
}

#[test]
fn work_is_waited_for_by_kind_name_labels_and_outcome() {
    let labels = [("a".to_owned(), "b".to_owned())].into();
    let waits = |on: Value, state| is_waited_for(&schedule(&on, &json!({})), &ended("x", 1, state), &labels);
    assert!(waits(json!({"kind": "Task", "name": "x"}), State::Failed));
    assert!(waits(json!({"kind": "Task", "selector": {"a": "b"}, "outcome": "Succeeded"}), State::Succeeded));
    assert!(waits(json!({"kind": "Task", "name": "x", "outcome": "Completed"}), State::Canceled));
    assert!(!waits(json!({"kind": "Task", "name": "x", "outcome": "Succeeded"}), State::Failed));
    assert!(!waits(json!({"kind": "Task", "name": "x", "outcome": "Failed"}), State::Canceled));
    assert!(!waits(json!({"kind": "Task", "name": "y"}), State::Succeeded));
    assert!(!waits(json!({"kind": "Job", "name": "x"}), State::Succeeded));
    assert!(!waits(json!({"kind": "Task", "selector": {"a": "c"}}), State::Succeeded));
    assert!(!waits(json!({"kind": "Task", "name": "x"}), State::Running));
}

#[test]
fn each_end_makes_one_run_however_often_it_is_seen() {
    let mut schedule = schedule(&json!({"kind": "Task", "name": "x"}), &json!({"allowConcurrent": true}));
    let work = [ended("x", 200, State::Succeeded), ended("y", 201, State::Succeeded)];
    assert_eq!(names(&look(&mut schedule, &work, &[], 201)), ["x", "y"]);
    assert_eq!(names(&look(&mut schedule, &work, &[], 202)), [] as [&str; 0]);
    assert_eq!(schedule.status.made, 2);
}

#[test]
fn what_ended_before_creation_makes_nothing() {
    let mut schedule = schedule(&json!({"kind": "Task", "name": "x"}), &json!({}));
    assert_eq!(names(&look(&mut schedule, &[ended("x", 99, State::Failed)], &[], 200)), [] as [&str; 0]);
}

#[test]
fn triggered_runs_wait_for_each_other_unless_they_may_overlap() {
    let mut schedule = schedule(&json!({"kind": "Task", "name": "x"}), &json!({}));
    let work = [ended("x", 200, State::Succeeded), ended("y", 201, State::Succeeded)];
    assert_eq!(names(&look(&mut schedule, &work, &[], 201)), ["x"]);
    let active = [RunRef { kind: "Task".to_owned(), name: "r".to_owned(), ..RunRef::default() }];
    assert_eq!(names(&look(&mut schedule, &work, &active, 202)), [] as [&str; 0]);
    assert_eq!(names(&look(&mut schedule, &work, &[], 203)), ["y"]);
}

#[test]
fn memory_is_bounded_and_what_was_forgotten_makes_nothing_again() {
    let mut schedule = schedule(&json!({"kind": "Task", "name": "x"}), &json!({"allowConcurrent": true}));
    let work: Vec<_> = (0..1000).map(|n| ended(&format!("w{n:04}"), 200 + n * 2, State::Succeeded)).collect();
    let mut made = 0;
    for upto in 1..=work.len() {
        let seen = &work[upto.saturating_sub(400)..upto];
        made += look(&mut schedule, seen, &[], 200 + i64::try_from(upto).unwrap() * 2).runs.len();
    }
    assert_eq!((made, schedule.status.triggered.len()), (1000, 256));
    assert!(look(&mut schedule, &work, &[], 5000).runs.is_empty());
}

#[test]
fn a_chain_of_runs_that_trigger_each_other_ends_and_says_so() {
    let mut schedule = schedule(&json!({"kind": "Task", "selector": {"a": "b"}}), &json!({}));
    let mut work = ended("x", 200, State::Succeeded);
    for step in 0..MAX_DEPTH {
        work.uid = format!("uid-{step}");
        let plan = look(&mut schedule, &[work.clone()], &[], 200 + i64::from(step) * 60);
        let [cause] = &plan.runs[..] else { panic!("step {step} made {} runs", plan.runs.len()) };
        let template = schedule.spec.template.clone().unwrap();
        let task = render_task(&schedule, &template, Some(cause));
        assert_eq!(task.metadata.annotations[TRIGGER_DEPTH], (step + 1).to_string());
        work.depth = depth_of(&task.metadata.annotations);
        work.at = Timestamp::from_second(260 + i64::from(step) * 60);
    }
    work.uid = "the last".to_owned();
    assert!(look(&mut schedule, &[work], &[], 5000).runs.is_empty());
    assert_eq!(triggering(&schedule), "TooDeep");
}

#[test]
fn too_many_triggers_in_a_minute_are_made_later_and_the_condition_says_so() {
    let mut schedule = schedule(&json!({"kind": "Task", "name": "x"}), &json!({"allowConcurrent": true}));
    let work: Vec<_> = (0..100).map(|n| ended(&format!("w{n:04}"), 200, State::Succeeded)).collect();
    let plan = look(&mut schedule, &work, &[], 201);
    assert_eq!((plan.runs.len(), triggering(&schedule)), (MAX_PER_MINUTE, "RateLimited"));
    assert_eq!(plan.wake_at, Some(Timestamp::from_second(260)));
    let plan = look(&mut schedule, &work, &[], 261);
    assert_eq!((plan.runs.len(), triggering(&schedule)), (100 - MAX_PER_MINUTE, "Triggers"));
}

#[test]
fn another_trigger_makes_nothing_for_what_ended_before_it() {
    let mut schedule = schedule(&json!({"kind": "Task", "name": "x"}), &json!({}));
    look(&mut schedule, &[], &[], 150);
    schedule.metadata.generation += 1;
    let work = [ended("y", 200, State::Succeeded), ended("z", 260, State::Succeeded)];
    assert_eq!(names(&look(&mut schedule, &work[..1], &[], 250)), [] as [&str; 0]);
    assert_eq!(names(&look(&mut schedule, &work, &[], 260)), ["z"]);
}

#[test]
fn work_that_ends_after_the_wall_clock_jumped_makes_its_run() {
    for lead in [7200, -7200] {
        // The schedule was made on the wall clock, just after the jump or just before it.
        for created in [20_000 + lead, 20_000] {
            let mut schedule = schedule(&json!({"kind": "Task", "name": "x"}), &json!({}));
            schedule.metadata.creation_timestamp = Some(Timestamp::from_second(created));
            let work = [ended("x", 20_005, State::Succeeded)];
            let steady = Timestamp::from_second(20_010);
            let now = Timestamp::from_second(20_010 + lead);
            let situation = Situation {
                schedule: &schedule,
                active: &[],
                replaceable: &[],
                results: &[],
                ended: &work,
                missing: None,
                now,
                steady,
            };
            assert_eq!(names(&plan_schedule(&situation)), ["x"], "{lead} {created}");
        }
    }
}
