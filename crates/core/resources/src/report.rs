//! What becomes of a report (seed 002, F16–F20).
//!
//! A report is refused when it is malformed, discarded when it is late or from the future, traced when it says Unknown, and
//! otherwise becomes the adapter's current report, from which the conditions are folded anew.
//!
//! Invariants: the generation of an adapter's current report never goes down, nor its time at one generation; a report that
//! is not accepted moves no condition; the same report twice is one report.

use muster_expr::cel::Budget;
use muster_types::adapter_report::{
    AVAILABLE, AdapterReport, ReportAnswer, ReportOutcome, ReportedCondition, find_reported,
};
use muster_types::adapter_standing::ReportTrace;
use muster_types::condition::ConditionStatus;
use muster_types::managed_resource::{Pulse, PulseReason};
use muster_types::timestamp::MicroTimestamp;
use muster_types::{AdapterStanding, ManagedResource, ManagedStatus, Timestamp};

use crate::field_problem::FieldProblem;
use crate::report_check::check_report;
use crate::root_conditions::{fold_within, is_decided, reports};
use crate::type_rules::TypeRules;

/// The reason of Available while an adapter waits for something.
pub const PRECONDITIONS_NOT_MET: &str = "PreconditionsNotMet";
/// Entries of the history of one adapter.
const LONGEST_HISTORY: usize = 8;

/// What becomes of a report that is well formed.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is the adapter's current report; the resource has this status now.
    Accepted(Box<ManagedStatus>),
    /// It is kept for tracing alone; the resource has this status now.
    Traced(Box<ManagedStatus>),
    /// It changes nothing.
    Discarded(Discard),
}

/// Why a report changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// It is about another resource of the same name.
    OtherResource,
    /// It is about a generation the resource does not have yet.
    FutureGeneration,
    /// The adapter reported on a newer generation already.
    StaleGeneration,
    /// The adapter reported something seen later already.
    StaleTime,
    /// It is the current report once more.
    Duplicate,
}

impl Discard {
    /// One CamelCase word.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::OtherResource => "OtherResource",
            Self::FutureGeneration => "FutureGeneration",
            Self::StaleGeneration => "StaleGeneration",
            Self::StaleTime => "StaleTime",
            Self::Duplicate => "Duplicate",
        }
    }

    /// A sentence for people.
    pub const fn message(self) -> &'static str {
        match self {
            Self::OtherResource => "the report is about a resource of this name that is gone",
            Self::FutureGeneration => "the resource has no such generation; read it again",
            Self::StaleGeneration => "this adapter has reported on a newer generation",
            Self::StaleTime => "this adapter has reported something seen later",
            Self::Duplicate => "this report was taken in before",
        }
    }
}

impl Verdict {
    /// The status to store, if there is a new one.
    pub fn into_status(self) -> Option<ManagedStatus> {
        match self {
            Self::Accepted(status) | Self::Traced(status) => Some(*status),
            Self::Discarded(_) => None,
        }
    }

    /// What the reporter is told.
    pub fn answer(&self) -> ReportAnswer {
        let (outcome, reason, message) = match self {
            Self::Accepted(_) => (ReportOutcome::Accepted, "", ""),
            Self::Traced(_) => {
                let message = "Available is Unknown: kept for tracing, not counted";
                (ReportOutcome::Traced, "InProgress", message)
            }
            Self::Discarded(discard) => (ReportOutcome::Discarded, discard.reason(), discard.message()),
        };
        ReportAnswer { outcome, reason: reason.to_owned(), message: message.to_owned() }
    }
}

/// Takes in a report on a resource. `adapter_exists` says whether there is an Adapter of that name for this type in the
/// resource's namespace; adapters that the type requires are known without one.
pub fn accept_report(
    rules: &TypeRules,
    resource: &ManagedResource,
    report: &AdapterReport,
    adapter_exists: bool,
    now: MicroTimestamp,
) -> Result<Verdict, Vec<FieldProblem>> {
    accept_within(rules, resource, report, adapter_exists, now, &Budget::of_object())
}

/// The same; what the expressions of its type cost is taken from a budget.
pub(crate) fn accept_within(
    rules: &TypeRules,
    resource: &ManagedResource,
    report: &AdapterReport,
    adapter_exists: bool,
    now: MicroTimestamp,
    budget: &Budget,
) -> Result<Verdict, Vec<FieldProblem>> {
    let mut problems = check_report(report, now);
    if !adapter_exists && !rules.requires(&report.adapter) && !report.adapter.is_empty() {
        let why =
            "is no adapter of this type; create an Adapter of this name or add it to the type's adapters";
        problems.push(FieldProblem::new("adapter", &report.adapter, why));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let seen = report.observed_time.unwrap_or(now);
    if let Some(discard) = discard(resource, report, seen) {
        return Ok(Verdict::Discarded(discard));
    }
    let mut resource = resource.clone();
    if available_of(report).status == ConditionStatus::Unknown {
        trace(&mut resource, report, seen);
        return Ok(Verdict::Traced(Box::new(resource.status)));
    }
    take_in(rules, &mut resource, report, seen, now.into(), budget);
    Ok(Verdict::Accepted(Box::new(resource.status)))
}

/// What a report says of Available; a well-formed one says it.
fn available_of(report: &AdapterReport) -> &ReportedCondition {
    static UNKNOWN: ReportedCondition = ReportedCondition {
        r#type: String::new(),
        status: ConditionStatus::Unknown,
        reason: String::new(),
        message: String::new(),
    };
    find_reported(&report.conditions, AVAILABLE).unwrap_or(&UNKNOWN)
}

fn discard(resource: &ManagedResource, report: &AdapterReport, seen: MicroTimestamp) -> Option<Discard> {
    if !report.uid.is_empty() && report.uid != resource.metadata.uid {
        return Some(Discard::OtherResource);
    }
    if report.observed_generation > resource.metadata.generation {
        return Some(Discard::FutureGeneration);
    }
    let standing = resource.status.standing(&report.adapter)?;
    let available = available_of(report);
    if is_decided(standing) {
        if report.observed_generation < standing.observed_generation {
            return Some(Discard::StaleGeneration);
        }
        if report.observed_generation == standing.observed_generation {
            if standing.observed_time.is_some_and(|time| seen < time) {
                return Some(Discard::StaleTime);
            }
            if standing.observed_time == Some(seen)
                && standing.conditions == report.conditions
                && standing.data == report.data
            {
                return Some(Discard::Duplicate);
            }
        }
    }
    let says_the_same = |trace: &ReportTrace| {
        available.status == ConditionStatus::Unknown && trace.last == seen && is_said_by(trace, report)
    };
    standing.history.iter().any(says_the_same).then_some(Discard::Duplicate)
}

fn is_said_by(trace: &ReportTrace, report: &AdapterReport) -> bool {
    let available = available_of(report);
    trace.generation == report.observed_generation
        && trace.available == available.status
        && trace.reason == available.reason
}

/// Keeps a report of Unknown. The first one is shown, because there is nothing else to show.
fn trace(resource: &mut ManagedResource, report: &AdapterReport, seen: MicroTimestamp) {
    let standing = resource.status.standing_mut(&report.adapter);
    if !is_decided(standing) {
        show(standing, report, seen);
    }
    remember(standing, report, seen);
}

/// Makes a report the adapter's current one.
fn take_in(
    rules: &TypeRules,
    resource: &mut ManagedResource,
    report: &AdapterReport,
    seen: MicroTimestamp,
    now: Timestamp,
    budget: &Budget,
) {
    let generation = resource.metadata.generation;
    let standing = resource.status.standing_mut(&report.adapter);
    let was_done = standing.observed_generation == generation && reports(standing, ConditionStatus::True);
    let is_new_generation = report.observed_generation > standing.observed_generation;
    show(standing, report, seen);
    remember(standing, report, seen);
    standing.last_report_time = Some(Timestamp::from(seen).min(now));
    let available = available_of(report);
    if available.status == ConditionStatus::True {
        standing.failures = 0;
    } else if available.reason != PRECONDITIONS_NOT_MET {
        standing.failures = if is_new_generation { 1 } else { standing.failures.saturating_add(1) };
    }
    let is_done = report.observed_generation == generation && available.status == ConditionStatus::True;
    if is_done && !was_done && someone_waits(resource) {
        pulse(resource, PulseReason::Progress, now);
    }
    fold_within(rules, resource, now, budget);
}

fn show(standing: &mut AdapterStanding, report: &AdapterReport, seen: MicroTimestamp) {
    standing.observed_generation = report.observed_generation;
    standing.observed_time = Some(seen);
    standing.conditions.clone_from(&report.conditions);
    standing.data.clone_from(&report.data);
}

/// Adds a report to the history; those that say the same one after the other are one entry.
fn remember(standing: &mut AdapterStanding, report: &AdapterReport, seen: MicroTimestamp) {
    let history = &mut standing.history;
    if let Some(last) = history.last_mut().filter(|last| is_said_by(last, report)) {
        last.count = last.count.saturating_add(1);
        last.last = last.last.max(seen);
        return;
    }
    let available = available_of(report);
    history.push(ReportTrace {
        generation: report.observed_generation,
        available: available.status,
        reason: available.reason.clone(),
        count: 1,
        last: seen,
    });
    let over = history.len().saturating_sub(LONGEST_HISTORY);
    history.drain(..over);
}

/// True if an adapter found its preconditions not met: what another one did may have met them.
fn someone_waits(resource: &ManagedResource) -> bool {
    resource.status.adapters.iter().any(|standing| {
        let available = find_reported(&standing.conditions, AVAILABLE);
        available.is_some_and(|condition| condition.reason == PRECONDITIONS_NOT_MET)
    })
}

/// Writes down the decision to look at a resource now.
pub fn pulse(resource: &mut ManagedResource, reason: PulseReason, now: Timestamp) {
    let sequence = resource.status.pulse.as_ref().map_or(0, |pulse| pulse.sequence) + 1;
    let generation = resource.metadata.generation;
    resource.status.pulse = Some(Pulse { sequence, generation, reason, time: now });
}
