//! Whether a report is well formed. What is not is refused as a whole and changes nothing (seed 002, F16, F19).

use std::collections::BTreeSet;

use muster_types::adapter_report::{AdapterReport, MANDATORY, find_reported};
use muster_types::timestamp::MicroTimestamp;

use crate::field_problem::FieldProblem;

/// Conditions of one report.
const MOST_CONDITIONS: usize = 32;
/// Characters of the type of a condition.
const LONGEST_TYPE: usize = 100;
/// Characters of a reason.
const LONGEST_REASON: usize = 256;
/// Characters of a message.
const LONGEST_MESSAGE: usize = 2048;
/// Bytes of the data document.
const LARGEST_DATA: usize = 64 * 1024;
/// Microseconds a report may be late.
const LATE: i64 = 30 * 60 * 1_000_000;
/// Microseconds a reporter's clock may be ahead.
const AHEAD: i64 = 5 * 60 * 1_000_000;

/// Everything that is wrong with a report by itself.
pub fn check_report(report: &AdapterReport, now: MicroTimestamp) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    if report.adapter.is_empty() {
        problems.push(FieldProblem::new("adapter", "", "name the adapter that reports"));
    }
    if report.observed_generation < 1 {
        let why = "must be the generation of the resource that was seen, at least 1";
        problems.push(FieldProblem::new("observedGeneration", report.observed_generation, why));
    }
    check_time(report, now, &mut problems);
    check_conditions(report, &mut problems);
    if let Some(data) = &report.data {
        let bytes = data.to_string().len();
        if bytes > LARGEST_DATA {
            let why = format!(
                "must have at most {LARGEST_DATA} bytes; keep large documents elsewhere and report where"
            );
            problems.push(FieldProblem::new("data", format!("{bytes} bytes"), why));
        }
    }
    problems
}

fn check_time(report: &AdapterReport, now: MicroTimestamp, problems: &mut Vec<FieldProblem>) {
    let Some(time) = report.observed_time else { return };
    let age = now.as_microsecond().saturating_sub(time.as_microsecond());
    if age > LATE {
        let why = "is more than 30 minutes ago; report what is seen now";
        problems.push(FieldProblem::new("observedTime", time, why));
    } else if age < -AHEAD {
        let why = "is more than 5 minutes in the future; set the clock of the adapter";
        problems.push(FieldProblem::new("observedTime", time, why));
    }
}

fn check_conditions(report: &AdapterReport, problems: &mut Vec<FieldProblem>) {
    if report.conditions.len() > MOST_CONDITIONS {
        let why = format!("at most {MOST_CONDITIONS} conditions can be reported");
        problems.push(FieldProblem::new("conditions", report.conditions.len(), why));
        return;
    }
    for mandatory in MANDATORY {
        if find_reported(&report.conditions, mandatory).is_none() {
            let why =
                format!("condition {mandatory} is missing; every report needs {}", MANDATORY.join(", "));
            problems.push(FieldProblem::new("conditions", "", why));
        }
    }
    let mut types = BTreeSet::new();
    for (index, condition) in report.conditions.iter().enumerate() {
        let field = |name: &str| format!("conditions[{index}].{name}");
        if let Some(why) = refuse_condition_type(&condition.r#type) {
            problems.push(FieldProblem::new(field("type"), cut(&condition.r#type), why));
        } else if !types.insert(condition.r#type.as_str()) {
            problems.push(FieldProblem::new(field("type"), &condition.r#type, "is reported twice"));
        }
        for (name, text, most) in
            [("reason", &condition.reason, LONGEST_REASON), ("message", &condition.message, LONGEST_MESSAGE)]
        {
            if text.chars().count() > most {
                let why = format!("must have at most {most} characters");
                problems.push(FieldProblem::new(field(name), cut(text), why));
            }
        }
    }
}

/// Why a text cannot be the type of a condition.
pub fn refuse_condition_type(text: &str) -> Option<String> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if text.is_empty() {
        Some("must not be empty".to_owned())
    } else if text.chars().count() > LONGEST_TYPE {
        Some(format!("must have at most {LONGEST_TYPE} characters"))
    } else if !text.starts_with(|c: char| c.is_ascii_alphabetic()) || !text.chars().all(inside) {
        Some("must start with a letter and consist of letters, digits, '-', '_', '.' and '/'".to_owned())
    } else {
        None
    }
}

/// The first characters of a text, for messages.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
