//! The sentinel: when a managed resource is looked at (seed 002, F24–F28).
//!
//! At once when it is new, when its spec changed and when it is deleted. Otherwise when the oldest report of its required
//! adapters is strictly older than the interval of its type, counted from the last pulse at least, so that a resource whose
//! adapters stay silent is not pulsed without end. Adapters whose task goes on are not waited for: its end reports. While an
//! adapter keeps failing, the interval doubles with each failure, up to that of a Ready resource.

use muster_expr::cel::Budget;
use muster_types::managed_resource::PulseReason;
use muster_types::{AdapterStanding, Duration, ManagedResource, Millis, Timestamp};

use crate::type_rules::TypeRules;

/// What the sentinel decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Look now.
    Now(PulseReason),
    /// Ask again at this time.
    At(Millis),
    /// Only a change can be a reason.
    Never,
}

/// Whether a resource is looked at now, or when to ask again.
pub fn decide_pulse(rules: &TypeRules, resource: &ManagedResource, now: Millis, budget: &Budget) -> Look {
    let status = &resource.status;
    let Some(pulse) = &status.pulse else { return Look::Now(PulseReason::Created) };
    if pulse.generation != resource.metadata.generation {
        let reason = if resource.is_deleting() { PulseReason::Deleted } else { PulseReason::Changed };
        return Look::Now(reason);
    }
    let Some(oldest) = oldest_report(rules, resource) else { return Look::Never };
    let interval = interval(rules, resource);
    let due = just_after(oldest.max(pulse.time), interval);
    if now < due {
        return Look::At(due);
    }
    match rules.pulses_now(resource, oldest, now.to_timestamp(), budget) {
        Ok(false) => Look::At(just_after(now.to_timestamp(), interval)),
        // A rule without a value must not stop a resource from being looked at.
        Ok(true) | Err(_) => Look::Now(PulseReason::Stale),
    }
}

/// The first moment at which something of this age is strictly older than the interval.
fn just_after(since: Timestamp, interval: Duration) -> Millis {
    let millis = i64::try_from(interval.as_std().as_millis()).unwrap_or(i64::MAX);
    Millis(since.as_second().saturating_mul(1000).saturating_add(millis).saturating_add(1))
}

/// When the required adapter that was silent for longest last reported, of those that are not at work.
fn oldest_report(rules: &TypeRules, resource: &ManagedResource) -> Option<Timestamp> {
    let report_time = |adapter: &String| {
        let standing = resource.status.standing(adapter);
        if standing.is_some_and(is_at_work) {
            return None;
        }
        Some(standing.and_then(|standing| standing.last_report_time).unwrap_or(Timestamp::MIN))
    };
    rules.required().iter().filter_map(report_time).min()
}

/// True if a task of the adapter goes on.
pub fn is_at_work(standing: &AdapterStanding) -> bool {
    standing.work.as_ref().is_some_and(|work| work.goes_on() && !work.task.is_empty())
}

/// How old the oldest report may be.
fn interval(rules: &TypeRules, resource: &ManagedResource) -> Duration {
    if resource.status.is_ready() {
        return rules.spec().interval(true);
    }
    let failures = rules.required().iter().filter_map(|adapter| resource.status.standing(adapter));
    backoff(rules, failures.map(|standing| standing.failures).max().unwrap_or(0))
}

/// How long to wait after so many failures in a row.
pub fn backoff(rules: &TypeRules, failures: u32) -> Duration {
    let (first, most) = (rules.spec().interval(false), rules.spec().interval(true));
    let doubled = first.as_secs().max(1).saturating_mul(1 << failures.saturating_sub(1).min(32));
    Duration::from_secs(doubled).min(most.max(first))
}
