//! How a TaskGroup stands, from the tally of its members (seed 003 R15: aggregation goes upward only).

use muster_types::condition::{Condition, ConditionStatus, set_condition};
use muster_types::task_group::{TaskGroupSpec, TaskGroupStatus};
use muster_types::{Timestamp, WorkState};

use crate::group_members::Members;
use crate::group_plan::end_reason;

/// The condition of what has succeeded.
pub const COMPLETE: &str = "Complete";
/// The condition of what ended otherwise.
pub const FAILED: &str = "Failed";

/// The status to store. One that is final does not change any more.
pub fn fold_group(
    spec: &TaskGroupSpec,
    members: &Members,
    before: &TaskGroupStatus,
    now: Timestamp,
) -> TaskGroupStatus {
    let mut status = before.clone();
    if before.current_state().is_terminal() {
        return status;
    }
    let counts = members.counts();
    let state = state(spec, members);
    status.state = Some(state);
    status.counts = counts;
    status.gone = members.gone();
    status.total = members.total();
    status.made = members.made();
    if status.started.is_none() && (counts.pending + counts.running + counts.ended() > 0) {
        status.started = Some(now);
    }
    status.message = describe(spec, members, state);
    if state.is_terminal() {
        status.terminated = Some(now);
        end_conditions(&mut status.conditions, state, &status.message, now);
    }
    status
}

fn state(spec: &TaskGroupSpec, members: &Members) -> WorkState {
    let counts = members.counts();
    let no_more = members.made() == members.total() || end_reason(spec, members).is_some();
    if no_more && counts.ended() == members.made() && counts.all() == members.made() {
        return if counts.failed > 0 {
            WorkState::Failed
        } else if counts.canceled > 0 || members.made() < members.total() {
            WorkState::Canceled
        } else {
            WorkState::Succeeded
        };
    }
    if counts.pending + counts.running + counts.ended() > 0 {
        WorkState::Running
    } else if counts.ready > 0 {
        WorkState::Ready
    } else {
        WorkState::Created
    }
}

fn describe(spec: &TaskGroupSpec, members: &Members, state: WorkState) -> String {
    let (counts, total) = (members.counts(), members.total());
    let mut parts = vec![format!("{} of {total} succeeded", counts.succeeded)];
    for (number, word) in [(counts.failed, "failed"), (counts.canceled, "canceled")] {
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    if state.is_terminal() && members.made() < total {
        parts.push(format!("{} never made", total - members.made()));
    }
    if spec.suspend && !state.is_terminal() {
        parts.push("suspended".to_owned());
    }
    parts.join(", ")
}

/// Writes down that something ended.
pub(crate) fn end_conditions(
    conditions: &mut Vec<Condition>,
    state: WorkState,
    message: &str,
    now: Timestamp,
) {
    let r#type = if state == WorkState::Succeeded { COMPLETE } else { FAILED };
    set_condition(conditions, Condition::new(r#type, ConditionStatus::True, state.as_str(), message, now));
}
