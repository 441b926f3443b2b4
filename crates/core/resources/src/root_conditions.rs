//! The root conditions of a managed resource, folded from the reports of its adapters (seed 002, F1–F9).
//!
//! - Available: True at generation g when all required adapters report True at g; it stays True at g until one of them
//!   reports False *at g*, whatever is reported at other generations and whoever has not reported yet; while it is False its
//!   generation is the one it was last True or False at.
//! - Ready: Available is True at the latest generation. A change of the spec makes it False at once.
//! - Further conditions are said by the rules of the type, after these two; a rule without a value says Unknown.
//!
//! Invariants: the generation of Available never goes down; folding twice changes nothing, times included.

use muster_expr::cel::Budget;
use muster_types::adapter_report::{AVAILABLE, find_reported};
use muster_types::condition::{Condition, ConditionStatus, find_condition};
use muster_types::managed_resource::{EVALUATED, FORCE_DELETED, READY};
use muster_types::{AdapterStanding, ManagedResource, Timestamp};

use crate::type_rules::TypeRules;

/// Names listed in a message.
const MOST_NAMES: usize = 8;

/// Brings the conditions and the observed generation of a resource up to its reports and its generation.
pub fn fold_conditions(rules: &TypeRules, resource: &mut ManagedResource, now: Timestamp) {
    fold_within(rules, resource, now, &Budget::of_object());
}

/// The same; what the expressions of its type cost is taken from a budget.
pub(crate) fn fold_within(
    rules: &TypeRules,
    resource: &mut ManagedResource,
    now: Timestamp,
    budget: &Budget,
) {
    let generation = resource.metadata.generation;
    let available = fold_available(rules, resource, now);
    let ready = fold_ready(rules, resource, &available, now);
    let further = rules.ruled_conditions(resource, available.is_true(), ready.is_true(), now, budget);
    let status = &mut resource.status;
    let kept = [FORCE_DELETED, EVALUATED].map(|kept| find_condition(&status.conditions, kept).cloned());
    let folded = [available, ready].into_iter().chain(kept.into_iter().flatten()).chain(further);
    let folded: Vec<_> = folded.map(|condition| keep_time(&status.conditions, condition)).collect();
    status.conditions = folded;
    status.observed_generation = Some(generation);
}

/// The time of the last transition stays unless the status flips.
fn keep_time(before: &[Condition], mut condition: Condition) -> Condition {
    if let Some(old) = find_condition(before, &condition.r#type)
        && old.status == condition.status
    {
        condition.last_transition_time = old.last_transition_time;
    }
    condition
}

fn fold_available(rules: &TypeRules, resource: &ManagedResource, now: Timestamp) -> Condition {
    let before = find_condition(&resource.status.conditions, AVAILABLE);
    let tracked = before.and_then(|before| before.observed_generation);
    let say = |status, generation, reason: &str, message: String| Condition {
        observed_generation: Some(generation),
        ..Condition::new(AVAILABLE, status, reason, message, now)
    };
    if let Some(generation) = common_generation(rules, resource)
        && tracked.is_none_or(|tracked| generation >= tracked)
    {
        let message = format!("all required adapters are available at generation {generation}");
        return say(ConditionStatus::True, generation, "AllAdaptersAvailable", message);
    }
    let tracked = tracked.unwrap_or(resource.metadata.generation);
    let failing = names(rules, resource, |standing| {
        standing.observed_generation == tracked && reports(standing, ConditionStatus::False)
    });
    let was_true = before.is_some_and(Condition::is_true);
    if was_true && failing.is_empty() {
        let message = format!("generation {tracked} was available and no required adapter says otherwise");
        return say(ConditionStatus::True, tracked, "LastKnownGood", message);
    }
    let (reason, message) = why_not(rules, resource, &failing);
    say(ConditionStatus::False, tracked, reason, message)
}

fn fold_ready(
    rules: &TypeRules,
    resource: &ManagedResource,
    available: &Condition,
    now: Timestamp,
) -> Condition {
    let generation = resource.metadata.generation;
    let at_latest = available.observed_generation == Some(generation);
    let (status, reason, message) = if resource.is_deleting() {
        (ConditionStatus::False, "Deleting", "the resource is being deleted".to_owned())
    } else if available.is_true() && at_latest {
        let message = format!("available at the latest generation {generation}");
        (ConditionStatus::True, "AllAdaptersReady", message)
    } else {
        let failing = names(rules, resource, |standing| {
            standing.observed_generation == generation && reports(standing, ConditionStatus::False)
        });
        let (reason, message) = why_not(rules, resource, &failing);
        (ConditionStatus::False, reason, message)
    };
    Condition { observed_generation: Some(generation), ..Condition::new(READY, status, reason, message, now) }
}

/// The generation at which all required adapters report True, if they agree on one.
fn common_generation(rules: &TypeRules, resource: &ManagedResource) -> Option<i64> {
    let mut common = None;
    for adapter in rules.required() {
        let standing = resource.status.standing(adapter)?;
        let agrees = *common.get_or_insert(standing.observed_generation) == standing.observed_generation;
        if !agrees || !reports(standing, ConditionStatus::True) {
            return None;
        }
    }
    common
}

/// True if the current report of an adapter says this of Available.
pub fn reports(standing: &AdapterStanding, status: ConditionStatus) -> bool {
    find_reported(&standing.conditions, AVAILABLE).is_some_and(|condition| condition.status == status)
}

/// True if the current report of an adapter decides anything: it says True or False.
pub fn is_decided(standing: &AdapterStanding) -> bool {
    reports(standing, ConditionStatus::True) || reports(standing, ConditionStatus::False)
}

fn why_not(rules: &TypeRules, resource: &ManagedResource, failing: &[&str]) -> (&'static str, String) {
    let generation = resource.metadata.generation;
    if rules.required().is_empty() {
        return (
            "NoRequiredAdapters",
            "its type requires no adapters; name some in spec.adapters".to_owned(),
        );
    }
    if !failing.is_empty() {
        let message = format!("not available according to {}", join(failing));
        return ("AdapterReportedNotAvailable", message);
    }
    let missing: Vec<_> = rules
        .required()
        .iter()
        .map(String::as_str)
        .filter(|adapter| !resource.status.standing(adapter).is_some_and(is_decided))
        .collect();
    if !missing.is_empty() {
        return ("AdaptersMissingReports", format!("no report yet from {}", join(&missing)));
    }
    let elsewhere = names(rules, resource, |standing| reports(standing, ConditionStatus::False));
    if !elsewhere.is_empty() {
        let message = format!("not available according to {}", join(&elsewhere));
        return ("AdapterReportedNotAvailable", message);
    }
    let behind = names(rules, resource, |standing| standing.observed_generation != generation);
    ("AdaptersNotAtLatestGeneration", format!("not yet at generation {generation}: {}", join(&behind)))
}

/// Required adapters of which something is true, in the order the type names them.
fn names<'a>(
    rules: &'a TypeRules,
    resource: &ManagedResource,
    is_true: impl Fn(&AdapterStanding) -> bool,
) -> Vec<&'a str> {
    let standing_is = |adapter: &&str| resource.status.standing(adapter).is_some_and(&is_true);
    rules.required().iter().map(String::as_str).filter(standing_is).collect()
}

fn join(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MOST_NAMES) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}
