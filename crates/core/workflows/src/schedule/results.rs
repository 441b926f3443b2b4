//! How the runs of a schedule end: the latest of them, and how many failed in a row.

use muster_types::condition::{ConditionStatus, find_condition};
use muster_types::schedule_status::RunResult;
use muster_types::{ScheduleStatus, State, Timestamp};

use super::conditions::set;

/// Failures in a row after which a schedule is Failing.
const FAILING_AFTER: u64 = 3;
/// Results kept in the status.
const RECENT: usize = 10;
/// Whether runs fail again and again.
const FAILING: &str = "Failing";

/// Takes in how runs ended. `known` are those that are still there, the latest first; others were deleted after they were
/// counted.
pub fn observe_results(status: &mut ScheduleStatus, known: &[RunResult], now: Timestamp) {
    status.consecutive_failures = count_failures(status, known);
    let mut recent = status.recent_runs.clone();
    recent.extend(known.iter().take(RECENT).filter(|run| !status.recent_runs.contains(run)).cloned());
    recent.sort_by(|one, other| rank(other).cmp(&rank(one)));
    recent.truncate(RECENT);
    status.recent_runs = recent;
    say(status, now);
}

fn rank(run: &RunResult) -> (Timestamp, &str) {
    (run.at, &run.name)
}

/// How many runs failed since one succeeded. Where no success is known, what was counted before counts on.
fn count_failures(status: &ScheduleStatus, known: &[RunResult]) -> u64 {
    let failed = |run: &&RunResult| run.state == State::Failed;
    let is_success = |run: &RunResult| run.state == State::Succeeded;
    let trailing = known.iter().take_while(|run| !is_success(run)).filter(failed).count() as u64;
    if known.iter().any(is_success) {
        return trailing;
    }
    let latest = status.recent_runs.first().map(rank);
    let new = known.iter().filter(|run| latest.is_none_or(|latest| rank(run) > latest)).filter(failed);
    trailing.max(status.consecutive_failures + new.count() as u64)
}

fn say(status: &mut ScheduleStatus, now: Timestamp) {
    let failures = status.consecutive_failures;
    if failures >= FAILING_AFTER {
        let latest = status.recent_runs.iter().find(|run| run.state == State::Failed);
        let latest = latest.map_or_else(String::new, |run| {
            let (kind, name) = (run.kind.to_lowercase(), &run.name);
            format!(", the latest is {name}; see muster describe {kind} {name}")
        });
        let message = format!("the last {failures} runs failed{latest}");
        set(status, FAILING, ConditionStatus::True, "ConsecutiveFailures", &message, now);
    } else if failures == 0 && find_condition(&status.conditions, FAILING).is_some() {
        set(status, FAILING, ConditionStatus::False, "RunSucceeded", "", now);
    }
}
