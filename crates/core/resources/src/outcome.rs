//! From what an adapter found or did to the report it makes. An adapter always reports.
//!
//! | found | Applied | Available | Health |
//! |---|---|---|---|
//! | cannot tell | False | False | False |
//! | preconditions not met | False | False | True |
//! | started, or goes on | True | Unknown | True |
//! | succeeded | True | True | True |
//! | failed | True | False, or Unknown while it is retried until it succeeds | True |
//!
//! What ended is also looked at by the adapter's own rules, whose conditions replace these. After a deletion there is
//! Finalized besides: True once everything was cleaned up.

use muster_types::AdapterReport;
use muster_types::adapter_report::{APPLIED, AVAILABLE, FINALIZED, HEALTH, ReportedCondition};
use muster_types::condition::ConditionStatus;
use muster_types::timestamp::MicroTimestamp;
use serde_json::Value as Json;

use crate::adapter_rules::AdapterRules;
use crate::inputs::{Inputs, read_params};
use crate::report::PRECONDITIONS_NOT_MET;

/// Characters of a message that are kept.
const LONGEST_MESSAGE: usize = 2048;

/// What an adapter found or did.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It cannot tell.
    Unable(String),
    /// It may not act yet.
    Unmet(String),
    /// Its work was started, or goes on.
    InProgress {
        /// What it looks at: the task, the object or the answer.
        got: Json,
    },
    /// Its work is done.
    Succeeded {
        /// What it looks at.
        got: Json,
    },
    /// Its work failed.
    Failed {
        /// One CamelCase word.
        reason: String,
        /// A sentence for people.
        message: String,
        /// What it looks at.
        got: Json,
    },
}

/// Whom and what a report is about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The adapter.
    pub rules: &'a AdapterRules,
    /// What its expressions see.
    pub inputs: &'a Inputs<'a>,
    /// The generation its work was for.
    pub generation: i64,
    /// True if it cleans up after a deletion.
    pub deleting: bool,
    /// When.
    pub now: MicroTimestamp,
}

/// The report of an outcome.
pub fn report_of(about: &About<'_>, outcome: &Outcome) -> AdapterReport {
    use ConditionStatus::{False, True, Unknown};
    let until_success = about.rules.spec.lifecycle.until_success();
    let mut finalized = False;
    let mut conditions = match outcome {
        Outcome::Unable(message) => [
            condition(APPLIED, False, "NotEvaluated", ""),
            condition(AVAILABLE, False, "NotEvaluated", message),
            condition(HEALTH, False, "EvaluationFailed", message),
        ],
        Outcome::Unmet(message) => [
            condition(APPLIED, False, PRECONDITIONS_NOT_MET, message),
            condition(AVAILABLE, False, PRECONDITIONS_NOT_MET, message),
            condition(HEALTH, True, "Evaluated", ""),
        ],
        Outcome::InProgress { .. } => [
            condition(APPLIED, True, "Started", ""),
            condition(AVAILABLE, Unknown, "InProgress", ""),
            condition(HEALTH, True, "Evaluated", ""),
        ],
        Outcome::Succeeded { .. } if about.deleting => {
            finalized = True;
            [
                condition(APPLIED, True, "Done", ""),
                condition(AVAILABLE, False, "Finalized", "cleaned up"),
                condition(HEALTH, True, "Evaluated", ""),
            ]
        }
        Outcome::Succeeded { .. } => [
            condition(APPLIED, True, "Done", ""),
            condition(AVAILABLE, True, "Succeeded", ""),
            condition(HEALTH, True, "Evaluated", ""),
        ],
        Outcome::Failed { message, .. } if until_success => [
            condition(APPLIED, True, "Retrying", ""),
            condition(AVAILABLE, Unknown, "Retrying", message),
            condition(HEALTH, True, "Evaluated", ""),
        ],
        Outcome::Failed { reason, message, .. } => [
            condition(APPLIED, True, "Done", ""),
            condition(AVAILABLE, False, reason, message),
            condition(HEALTH, True, "Evaluated", ""),
        ],
    }
    .to_vec();
    if about.deleting {
        conditions.push(condition(FINALIZED, finalized, "", ""));
    }
    let mut report = AdapterReport {
        adapter: about.rules.name.clone(),
        observed_generation: about.generation,
        observed_time: Some(about.now),
        conditions,
        ..AdapterReport::default()
    };
    match outcome {
        Outcome::Succeeded { got } if !about.deleting => say_by_rule(about, got, &mut report),
        Outcome::Failed { got, .. } if !about.deleting && !until_success => {
            say_by_rule(about, got, &mut report);
        }
        // What goes on has come to nothing yet that a rule could look at.
        Outcome::Succeeded { .. }
        | Outcome::Failed { .. }
        | Outcome::InProgress { .. }
        | Outcome::Unable(_)
        | Outcome::Unmet(_) => {}
    }
    report
}

/// Conditions and data that the adapter's own expressions say.
fn say_by_rule(about: &About<'_>, got: &Json, report: &mut AdapterReport) {
    let rules = about.rules;
    if rules.report.is_empty() && rules.report_data.is_none() {
        report.data = got.pointer("/status/result").cloned();
        return;
    }
    let params = read_params(rules, about.inputs).unwrap_or_else(|_| Json::Object(serde_json::Map::new()));
    let scope = about.inputs.scope(&params).with_json(rules.action.gets(), got);
    for (r#type, says) in &rules.report {
        match says.say(&scope) {
            Ok(said) => set(report, condition(r#type, said.status, &said.reason, &said.message)),
            Err(error) => unhealthy(report, &format!("report of {type} has no value: {error}")),
        }
    }
    if let Some(program) = &rules.report_data {
        match program.evaluate_to_json(&scope) {
            Ok(value) => report.data = Some(value),
            Err(error) => unhealthy(report, &format!("reportData has no value: {error}")),
        }
    }
}

fn unhealthy(report: &mut AdapterReport, message: &str) {
    set(report, condition(HEALTH, ConditionStatus::False, "ReportFailed", message));
}

fn set(report: &mut AdapterReport, condition: ReportedCondition) {
    match report.conditions.iter_mut().find(|old| old.r#type == condition.r#type) {
        Some(old) => *old = condition,
        None => report.conditions.push(condition),
    }
}

fn condition(r#type: &str, status: ConditionStatus, reason: &str, message: &str) -> ReportedCondition {
    ReportedCondition {
        r#type: r#type.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.chars().take(LONGEST_MESSAGE).collect(),
    }
}
