//! What is written down about a task.

use std::collections::BTreeMap;

use muster_tasks::records::{MAX_ERRORS, MAX_RECORDS, MAX_TEXT, add_error, add_record};
use muster_types::Timestamp;
use muster_types::task_status::{Record, RecordKind, TaskError};
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second)
}

/// Each thing that happened, one second after the other.
fn record(happened: &[(RecordKind, &str)]) -> Vec<Record> {
    let mut records = vec![];
    for (second, (kind, reason)) in (1..).zip(happened) {
        add_record(&mut records, *kind, reason, at(second));
    }
    records
}

fn written(records: &[Record]) -> String {
    let line = |record: &Record| {
        format!("{} x{} at {}: {}", record.kind, record.count, record.last.as_second(), record.reason)
    };
    records.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_again_is_counted() {
    let records = record(&[(RecordKind::Postponed, "Unique"), (RecordKind::Postponed, "Unique")]);
    assert_eq!(written(&records), "Postponed x2 at 2: Unique");
}

#[test]
fn another_reason_is_another_record() {
    let records = record(&[
        (RecordKind::Postponed, "Unique"),
        (RecordKind::Postponed, "Isolated"),
        (RecordKind::Postponed, "Unique"),
    ]);
    assert_eq!(
        written(&records),
        "Postponed x1 at 1: Unique\nPostponed x1 at 2: Isolated\nPostponed x1 at 3: Unique"
    );
}

#[test]
fn what_happened_in_between_does_not_matter() {
    let records = record(&[
        (RecordKind::QuotaBlocked, "slots"),
        (RecordKind::Postponed, "Unique"),
        (RecordKind::QuotaBlocked, "slots"),
        (RecordKind::Postponed, "Unique"),
    ]);
    assert_eq!(written(&records), "QuotaBlocked x2 at 3: slots\nPostponed x2 at 4: Unique");
}

#[test]
fn no_task_has_too_many_records() {
    let reasons: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let happened: Vec<_> = reasons.iter().map(|reason| (RecordKind::QuotaBlocked, reason.as_str())).collect();
    let records = record(&happened);
    assert_eq!(records.len(), MAX_RECORDS);
    assert_eq!((records[0].reason.as_str(), records[MAX_RECORDS - 1].reason.as_str()), ("936", "999"));
}

#[test]
fn outcomes_outlive_waiting() {
    let reasons: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let mut happened = vec![(RecordKind::PodFailed, "first"), (RecordKind::PodFailed, "second")];
    happened.extend(reasons.iter().map(|reason| (RecordKind::Postponed, reason.as_str())));
    let records = record(&happened);
    assert_eq!(records.len(), MAX_RECORDS);
    assert!(written(&records[..2]).contains("first") && written(&records[..2]).contains("second"));
}

#[test]
fn the_latest_of_each_kind_stays() {
    let reasons: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let mut happened: Vec<_> = RecordKind::ALL.iter().map(|kind| (*kind, "once")).collect();
    happened.extend(reasons.iter().map(|reason| (RecordKind::PodFailed, reason.as_str())));
    let records = record(&happened);
    assert_eq!(records.len(), MAX_RECORDS);
    assert!(RecordKind::ALL.iter().all(|kind| records.iter().any(|record| record.kind == *kind)));
}

#[test]
fn a_list_that_was_stored_too_long_is_shortened() {
    let one =
        |second| Record { kind: RecordKind::PodPending, count: 1, reason: String::new(), last: at(second) };
    let mut records: Vec<Record> = (0..10_000).map(one).collect();
    add_record(&mut records, RecordKind::PodRunning, "", at(10_000));
    assert_eq!(records.len(), MAX_RECORDS);
}

#[test]
fn counting_stops_at_the_largest_number() {
    let mut records =
        vec![Record { kind: RecordKind::Postponed, count: u32::MAX, reason: String::new(), last: at(1) }];
    add_record(&mut records, RecordKind::Postponed, "", at(2));
    assert_eq!(written(&records), format!("Postponed x{} at 2: ", u32::MAX));
}

#[test]
fn a_long_reason_is_cut_and_still_counted() {
    let long = "é".repeat(MAX_TEXT);
    let records = record(&[(RecordKind::PodFailed, &long), (RecordKind::PodFailed, &long)]);
    assert_eq!((records.len(), records[0].count), (1, 2));
    assert!(records[0].reason.len() <= MAX_TEXT && records[0].reason.ends_with("é…"));
}

fn error(severity: &str, description: &str) -> TaskError {
    TaskError { severity: severity.to_owned(), description: description.to_owned() }
}

#[test]
fn an_error_says_who_reports_it() {
    let mut errors = vec![];
    add_error(&mut errors, "Error", "muster", "no addon selected");
    add_error(&mut errors, "Warning", "java-analyzer", "3 files skipped");
    assert_eq!(
        errors,
        [error("Error", "(muster) no addon selected"), error("Warning", "(java-analyzer) 3 files skipped")]
    );
}

#[test]
fn the_same_error_again_adds_nothing() {
    let mut errors = vec![];
    for _ in 0..3 {
        add_error(&mut errors, "Error", "muster", "killed");
    }
    add_error(&mut errors, "Warning", "muster", "killed");
    assert_eq!(errors, [error("Error", "(muster) killed"), error("Warning", "(muster) killed")]);
}

#[test]
fn of_too_many_errors_the_first_and_the_latest_stay() {
    let mut errors = vec![];
    for number in 0..1000 {
        add_error(&mut errors, "Error", "addon", &number.to_string());
    }
    assert_eq!(errors.len(), MAX_ERRORS);
    assert_eq!(errors[0].description, "(addon) 0");
    assert_eq!(errors[1].description, "(addon) 937");
    assert_eq!(errors[MAX_ERRORS - 1].description, "(addon) 999");
}

proptest! {
    #[test]
    fn any_records_stay_bounded_and_true(
        happened in prop::collection::vec((prop::sample::select(RecordKind::ALL), "[a-c]?|[a-z]{3}"), 0..300),
    ) {
        let mut records = vec![];
        let mut latest: BTreeMap<RecordKind, (String, i64)> = BTreeMap::new();
        for (second, (kind, reason)) in (1..).zip(&happened) {
            add_record(&mut records, *kind, reason, at(second));
            latest.insert(*kind, (reason.clone(), second));
            prop_assert!(records.len() <= MAX_RECORDS);
        }
        // When a thing last happened, and why, is always known.
        for (kind, (reason, second)) in latest {
            let last = records.iter().rev().find(|record| record.kind == kind).unwrap();
            prop_assert_eq!((last.reason.as_str(), last.last), (reason.as_str(), at(second)));
        }
    }

    #[test]
    fn any_error_is_written_down(severity in ".{0,9}", reporter in ".{0,9}", text in ".{0,2000}") {
        let mut errors = vec![];
        add_error(&mut errors, &severity, &reporter, &text);
        prop_assert!(errors.len() == 1 && errors[0].description.len() <= MAX_TEXT);
    }
}
