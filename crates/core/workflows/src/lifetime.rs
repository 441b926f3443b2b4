//! How long Jobs and TaskGroups are kept after they ended. Those that belong to something go with it.

use muster_types::{Duration, Job, Metadata, TaskGroup, Timestamp, WorkState};

/// What ended well or on request is kept for this time, in seconds.
const SUCCEEDED: i64 = 72 * 3600;
/// What failed is kept for this time.
const FAILED: i64 = 720 * 3600;

/// When a job is deleted, in seconds; `None` if never.
pub fn job_end_of_life(job: &Job) -> Option<i64> {
    let status = &job.status;
    end_of_life(&job.metadata, status.current_state(), status.terminated, job.spec.ttl)
}

/// When a group is deleted, in seconds; `None` if never.
pub fn group_end_of_life(group: &TaskGroup) -> Option<i64> {
    let status = &group.status;
    end_of_life(&group.metadata, status.current_state(), status.terminated, None)
}

fn end_of_life(
    metadata: &Metadata,
    state: WorkState,
    terminated: Option<Timestamp>,
    ttl: Option<Duration>,
) -> Option<i64> {
    let owned = metadata.owner_references.iter().any(|owner| owner.controller == Some(true));
    // Whoever owns it may keep a history of its own; only what the user said still holds.
    let rule = if state == WorkState::Failed { FAILED } else { SUCCEEDED };
    let kept = match ttl {
        Some(ttl) => i64::try_from(ttl.as_std().as_millis().div_ceil(1000)).unwrap_or(i64::MAX),
        None if owned => 0,
        None => rule,
    };
    let at = terminated.filter(|_| state.is_terminal() && kept > 0)?;
    Some(at.as_second().saturating_add(kept))
}
