//! What becomes of reports: what is added, what is replaced, what comes too late, what is too much.

use muster_tasks::report::{
    Earlier, Ignored, MAX_LINE, MAX_LINES, MAX_RESULT, NotNow, Report, Unfit, clear_report, fold_report,
};
use muster_types::State;
use muster_types::task_status::{TaskError, TaskStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

fn running(attempt: u32) -> TaskStatus {
    TaskStatus { state: Some(State::Running), attempt, ..TaskStatus::default() }
}

fn report(document: Value) -> Report {
    serde_json::from_value(document).expect("a report")
}

fn add(status: &mut TaskStatus, document: Value) -> Result<(), Unfit> {
    fold_report(status, &report(document), Earlier::Kept)
}

fn refused_field(outcome: Result<(), Unfit>) -> String {
    match outcome {
        Err(Unfit::Invalid { field, .. }) => field,
        other => format!("{other:?}"),
    }
}

#[test]
fn lists_grow_and_numbers_are_replaced() {
    let mut status = running(1);
    let first = json!({"activity": ["a"], "total": 10, "completed": 1, "errors": [{"description": "x"}]});
    add(&mut status, first).unwrap();
    add(&mut status, json!({"activity": ["b"], "completed": 5, "result": {"n": 1}})).unwrap();
    add(&mut status, json!({"errors": [{"severity": "Warning", "description": "y"}]})).unwrap();
    assert_eq!(status.activity, ["a", "b"]);
    assert_eq!((status.total, status.completed), (Some(10), Some(5)));
    assert_eq!(status.result, Some(json!({"n": 1})));
    let errors: Vec<_> = status.errors.iter().map(|e| format!("{} {}", e.severity, e.description)).collect();
    assert_eq!(errors, ["Error (addon) x", "Warning (addon) y"]);
}

#[test]
fn an_increment_adds_to_what_is_done() {
    let mut status = running(1);
    add(&mut status, json!({"increment": 2})).unwrap();
    add(&mut status, json!({"increment": 3})).unwrap();
    assert_eq!(status.completed, Some(5));
    add(&mut status, json!({"increment": u64::MAX})).unwrap();
    assert_eq!(status.completed, Some(u64::MAX));
    assert_eq!(refused_field(add(&mut status, json!({"increment": 1, "completed": 1}))), "increment");
}

#[test]
fn replacing_forgets_what_was_reported_and_nothing_else() {
    let mut status = running(1);
    let own = TaskError { severity: "Error".to_owned(), description: "(engine) no room".to_owned() };
    status.errors.push(own.clone());
    add(&mut status, json!({"activity": ["a"], "total": 3, "errors": [{"description": "x"}]})).unwrap();
    fold_report(&mut status, &report(json!({"completed": 1})), Earlier::Replaced).unwrap();
    assert_eq!((status.activity.len(), status.total, status.completed), (0, None, Some(1)));
    assert_eq!(status.errors, [own]);
}

#[test]
fn what_was_read_can_be_sent_back() {
    let mut status = running(1);
    add(&mut status, json!({"errors": [{"description": "x"}]})).unwrap();
    let shown = json!({"errors": status.errors});
    fold_report(&mut status, &report(shown), Earlier::Replaced).unwrap();
    assert_eq!(status.errors.len(), 1);
    assert_eq!(status.errors[0].description, "(addon) x");
}

#[test]
fn an_older_attempt_changes_nothing() {
    let mut status = running(3);
    let outcome = add(&mut status, json!({"attempt": 2, "completed": 9}));
    assert_eq!(outcome, Err(Unfit::Ignored(Ignored::OldAttempt { reported: 2, latest: 3 })));
    assert_eq!(status, running(3));
    assert_eq!(refused_field(add(&mut status, json!({"attempt": 4}))), "attempt");
}

#[test]
fn the_same_report_twice_counts_once() {
    let mut status = running(1);
    add(&mut status, json!({"sequence": 1, "increment": 1})).unwrap();
    let again = add(&mut status, json!({"sequence": 1, "increment": 1}));
    assert_eq!(again, Err(Unfit::Ignored(Ignored::OldSequence { reported: 1, last: 1 })));
    add(&mut status, json!({"sequence": 7, "increment": 1})).unwrap();
    assert!(add(&mut status, json!({"sequence": 6, "increment": 1})).is_err());
    assert_eq!(status.completed, Some(2));
}

#[test]
fn a_new_attempt_counts_from_the_start() {
    let mut status = running(1);
    add(&mut status, json!({"sequence": 9})).unwrap();
    status.attempt = 2;
    add(&mut status, json!({"sequence": 1, "completed": 1})).unwrap();
    assert_eq!(status.completed, Some(1));
    assert!(add(&mut status, json!({"sequence": 1})).is_err());
}

#[test]
fn a_task_without_an_attempt_and_one_that_ended_take_no_reports() {
    let mut waiting = TaskStatus { state: Some(State::Ready), ..TaskStatus::default() };
    assert_eq!(add(&mut waiting, json!({"completed": 1})), Err(Unfit::NotNow(NotNow::NoAttempt)));
    for state in [State::Succeeded, State::Failed, State::Canceled] {
        let mut ended = TaskStatus { state: Some(state), ..running(1) };
        assert_eq!(add(&mut ended, json!({"completed": 1})), Err(Unfit::NotNow(NotNow::Ended(state))));
        assert_eq!(clear_report(&mut ended), Err(NotNow::Ended(state)));
        assert_eq!(ended.completed, None);
    }
}

#[test]
fn clearing_keeps_the_place_of_the_last_report() {
    let mut status = running(1);
    add(&mut status, json!({"sequence": 5, "activity": ["a"], "completed": 1, "result": 1})).unwrap();
    clear_report(&mut status).unwrap();
    assert_eq!((status.activity.len(), status.completed, &status.result), (0, None, &None));
    assert!(add(&mut status, json!({"sequence": 5})).is_err());
}

#[test]
fn more_than_is_kept_is_refused_with_the_field() {
    let lines = |count: usize| vec!["x"; count];
    let mut status = running(1);
    add(&mut status, json!({"activity": lines(MAX_LINES)})).unwrap();
    let full = status.clone();
    assert_eq!(refused_field(add(&mut status, json!({"activity": ["x"]}))), "activity");
    let long = "x".repeat(MAX_LINE + 1);
    assert_eq!(refused_field(add(&mut status, json!({"activity": ["x", long]}))), "activity[1]");
    assert_eq!(refused_field(add(&mut status, json!({"result": "x".repeat(MAX_RESULT)}))), "result");
    let errors: Vec<_> = (0..65).map(|n| json!({"description": format!("e{n}")})).collect();
    assert_eq!(refused_field(add(&mut status, json!({"errors": errors}))), "errors");
    let severity = "x".repeat(65);
    let odd = json!({"errors": [{"description": "x", "severity": severity}]});
    assert_eq!(refused_field(add(&mut status, odd)), "errors[0].severity");
    assert_eq!(refused_field(add(&mut status, json!({"errors": [{}]}))), "errors[0].description");
    assert_eq!(status, full, "a refused report changes nothing");
}

#[test]
fn sixty_four_errors_fit() {
    let mut status = running(1);
    let errors: Vec<_> = (0..64).map(|n| json!({"description": format!("e{n}")})).collect();
    add(&mut status, json!({"errors": errors})).unwrap();
    assert_eq!(status.errors.len(), 64);
    assert_eq!(refused_field(add(&mut status, json!({"errors": [{"description": "one more"}]}))), "errors");
    add(&mut status, json!({"errors": [{"description": "e0"}]})).unwrap();
}

proptest! {
    #[test]
    fn reports_that_are_doubled_and_reordered_never_count_twice(order in prop::collection::vec(0_u64..20, 0..60)) {
        let mut status = running(1);
        let mut taken = 0;
        for sequence in order {
            let outcome = add(&mut status, json!({"sequence": sequence, "increment": 1}));
            taken += u64::from(outcome.is_ok());
        }
        prop_assert!(taken <= 20);
        prop_assert_eq!(status.completed.unwrap_or(0), taken);
    }

    #[test]
    fn no_report_passes_the_bounds(
        lines in prop::collection::vec(0_usize..1500, 0..5),
        errors in prop::collection::vec(0_usize..80, 0..5),
    ) {
        let mut status = running(1);
        for (lines, errors) in lines.into_iter().zip(errors) {
            let errors: Vec<_> = (0..errors).map(|n| json!({"description": n.to_string()})).collect();
            drop(add(&mut status, json!({"activity": vec!["x"; lines], "errors": errors})));
            prop_assert!(status.activity.len() <= MAX_LINES && status.errors.len() <= 64);
        }
    }
}
