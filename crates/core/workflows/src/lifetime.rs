//! How long Jobs and TaskGroups are kept after they ended. Those that belong to something go with it.
//!
//! What succeeded or was canceled is deleted. What failed is released: its files and those of its tasks are let go, and the
//! objects stay, as for a task that failed. A `ttl` of its own deletes a job however it ended.

use muster_types::{Duration, Job, Metadata, TaskGroup, Timestamp, WorkState};

/// How long they are kept where they say nothing themselves, in seconds; zero is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// What succeeded or was canceled is deleted after this time.
    pub succeeded: i64,
    /// What failed is released after this time.
    pub failed: i64,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { succeeded: 72 * 3600, failed: 720 * 3600 }
    }
}

/// What happens when the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndOfLife {
    /// It is deleted with all that belongs to it.
    Delete,
    /// Its files and those of its tasks are let go.
    Release,
}

/// When the time of a job is over, in seconds, and what happens then; `None` if never.
pub fn job_end_of_life(job: &Job, lifetimes: &Lifetimes) -> Option<(i64, EndOfLife)> {
    let status = &job.status;
    let ended =
        Ended { state: status.current_state(), at: status.terminated?, released: status.released.is_some() };
    end_of_life(&job.metadata, ended, job.spec.ttl, lifetimes)
}

/// When the time of a group is over, in seconds, and what happens then; `None` if never.
pub fn group_end_of_life(group: &TaskGroup, lifetimes: &Lifetimes) -> Option<(i64, EndOfLife)> {
    let status = &group.status;
    let ended =
        Ended { state: status.current_state(), at: status.terminated?, released: status.released.is_some() };
    end_of_life(&group.metadata, ended, None, lifetimes)
}

/// How and when something ended.
#[derive(Clone, Copy)]
struct Ended {
    state: WorkState,
    at: Timestamp,
    released: bool,
}

fn end_of_life(
    metadata: &Metadata,
    ended: Ended,
    ttl: Option<Duration>,
    lifetimes: &Lifetimes,
) -> Option<(i64, EndOfLife)> {
    let owned = metadata.owner_references.iter().any(|owner| owner.controller == Some(true));
    let failed = ended.state == WorkState::Failed;
    let (kept, what) = match ttl {
        Some(ttl) => (ttl.seconds_rounded_up(), EndOfLife::Delete),
        // Whoever owns it may keep a history of its own; only what the user said still holds.
        None if owned || (failed && ended.released) => return None,
        None if failed => (lifetimes.failed, EndOfLife::Release),
        None => (lifetimes.succeeded, EndOfLife::Delete),
    };
    let is_over = ended.state.is_terminal() && kept > 0;
    is_over.then(|| (ended.at.next_second().saturating_add(kept), what))
}

#[cfg(test)]
mod tests {
    use muster_types::job::JobSpec;

    use super::*;

    fn ended(state: WorkState) -> Job {
        let mut job = Job::new("n", "j", JobSpec::default());
        (job.status.state, job.status.terminated) = (Some(state), Some(Timestamp::from_second(1000)));
        job
    }

    #[test]
    fn what_failed_is_released_once_and_all_else_is_deleted() {
        let lifetimes = Lifetimes { succeeded: 10, failed: 20 };
        let end = |job: &Job| job_end_of_life(job, &lifetimes);
        assert_eq!(end(&ended(WorkState::Succeeded)), Some((1011, EndOfLife::Delete)));
        assert_eq!(end(&ended(WorkState::Canceled)), Some((1011, EndOfLife::Delete)));
        let mut failed = ended(WorkState::Failed);
        assert_eq!(end(&failed), Some((1021, EndOfLife::Release)));
        failed.status.released = Some(Timestamp::from_second(1020));
        assert_eq!(end(&failed), None);
        failed.spec.ttl = Some(Duration::from_secs(5));
        assert_eq!(end(&failed), Some((1006, EndOfLife::Delete)));
        assert_eq!(
            job_end_of_life(&ended(WorkState::Succeeded), &Lifetimes { succeeded: 0, failed: 0 }),
            None
        );
    }
}
