//! What a Job does next (seed 003 R1, R2, R10, R15): which groups are made, ended, held and let go, and how it stands.
//!
//! A group is made when the groups it depends on ended as it says, and skipped as soon as that can no longer be. A group is
//! made once: what was made is written down together with making it, so one that was deleted counts as Canceled.
//! Aggregation goes upward only: the job is told by its groups, never by tasks.

use muster_types::job::{FailurePolicy, GroupSummary, JobGroup, JobStatus, JobStopping, When};
use muster_types::task_group::GroupMode;
use muster_types::{Counts, Job, Timestamp, WorkState};

use crate::group_status::end_conditions;
use crate::job_graph;

/// A group of the job that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupStand {
    /// Where it is in its life.
    pub state: WorkState,
    /// Its tasks.
    pub counts: Counts,
    /// How many tasks it has.
    pub total: u32,
    /// How it stands, in a sentence.
    pub message: String,
    /// Its end was asked for.
    pub cancel: bool,
    /// It is suspended.
    pub suspend: bool,
}

/// What is to be done, and what is to be written down with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobPlan {
    /// Places of groups to make.
    pub make: Vec<usize>,
    /// Places of groups to end.
    pub cancel: Vec<usize>,
    /// Places of groups to suspend, or to let go on.
    pub suspend: Vec<(usize, bool)>,
    /// How the job stands then.
    pub status: JobStatus,
    /// When to look again even if nothing happens, in seconds.
    pub wake_at: Option<i64>,
}

/// Decides for a job that has not ended; `stands` has each of its groups that is there, in the order of the spec.
pub fn plan_job(job: &Job, stands: &[Option<GroupStand>], now: Timestamp) -> JobPlan {
    let mut status = job.status.clone();
    if status.current_state().is_terminal() {
        return JobPlan { status, ..JobPlan::default() };
    }
    let resumed = fold_suspension(job, &mut status, now);
    status.stopping = status.stopping.or_else(|| why_stop(job, &status, now));
    let mut summaries = summarize(job, stands);
    let make = choose_next(job, status.stopping, &mut summaries);
    let cancel = choose_canceled(job, status.stopping, stands, &summaries);
    let suspend = choose_suspended(job, resumed, stands);
    if !make.is_empty() && status.started.is_none() {
        status.started = Some(now);
    }
    fold(&mut status, summaries, now);
    let wake_at = deadline(job, &status).filter(|_| status.stopping.is_none() && !job.spec.suspend);
    JobPlan { make, cancel, suspend, status, wake_at }
}

/// Notes when the job was suspended and for how long. True if it goes on from now.
fn fold_suspension(job: &Job, status: &mut JobStatus, now: Timestamp) -> bool {
    match (job.spec.suspend, status.suspended_since) {
        (true, None) => {
            status.suspended_since = Some(now);
            false
        }
        (false, Some(since)) => {
            status.suspended_since = None;
            // What came before the start does not count for the deadline anyway.
            if let Some(started) = status.started {
                let from = since.as_second().max(started.as_second());
                status.suspended_seconds += (now.next_second() - from).max(0);
            }
            true
        }
        (true, Some(_)) | (false, None) => false,
    }
}

/// When the deadline is over, in seconds.
fn deadline(job: &Job, status: &JobStatus) -> Option<i64> {
    let limit = job.spec.deadline?.seconds_rounded_up();
    let start = status.started?.next_second();
    Some(start.saturating_add(limit).saturating_add(status.suspended_seconds))
}

fn why_stop(job: &Job, status: &JobStatus, now: Timestamp) -> Option<JobStopping> {
    if job.spec.cancel {
        return Some(JobStopping::Canceled);
    }
    let over = deadline(job, status).is_some_and(|at| at <= now.as_second()) && !job.spec.suspend;
    over.then_some(JobStopping::DeadlineExceeded)
}

/// How each group stands now: as it is stored, else as was written down.
fn summarize(job: &Job, stands: &[Option<GroupStand>]) -> Vec<GroupSummary> {
    let groups = job.spec.task_groups.iter().enumerate();
    let summaries = groups.map(|(place, group)| {
        let before = job.status.groups.get(place).filter(|before| before.name == group.name);
        match (stands.get(place).and_then(Option::as_ref), before) {
            // What ended has ended, whatever becomes of the group afterwards.
            (_, Some(before)) if before.state.is_terminal() => before.clone(),
            (Some(stand), _) => GroupSummary {
                name: group.name.clone(),
                state: stand.state,
                counts: stand.counts,
                total: stand.total,
                message: stand.message.clone(),
            },
            (None, Some(before)) if before.state != WorkState::Waiting => GroupSummary {
                state: WorkState::Canceled,
                message: "it was deleted".to_owned(),
                // What had not ended was deleted with it.
                counts: before.counts.canceled(before.total),
                ..before.clone()
            },
            (None, _) => GroupSummary {
                name: group.name.clone(),
                state: WorkState::Waiting,
                total: total_of(group),
                ..GroupSummary::default()
            },
        }
    });
    summaries.collect()
}

/// How many tasks a group will have; its spec may be large and is not copied for that.
fn total_of(group: &JobGroup) -> u32 {
    let default = if group.count.is_some() { GroupMode::Replicas } else { GroupMode::Batch };
    let replicas = group.mode.unwrap_or(default) == GroupMode::Replicas;
    let tasks = u32::try_from(group.tasks.len()).unwrap_or(u32::MAX);
    tasks.saturating_mul(group.count.filter(|_| replicas).unwrap_or(1))
}

/// What becomes of a group that was not made.
enum Next {
    Wait,
    Make,
    Skip(String),
}

/// Decides on the groups that were not made, in their order, so that one that is skipped is known to those behind it.
fn choose_next(job: &Job, stopping: Option<JobStopping>, summaries: &mut [GroupSummary]) -> Vec<usize> {
    let groups = &job.spec.task_groups;
    let order = job_graph::order(groups);
    let places = job_graph::places(groups);
    let failed = stopped_by(job, summaries);
    let mut make = Vec::new();
    for &place in &order {
        if summaries[place].state != WorkState::Waiting {
            continue;
        }
        let group = &groups[place];
        let needs = group.depends_on.iter().map(|name| {
            let need = places.get(name.as_str()).and_then(|place| summaries.get(*place));
            (name.as_str(), need.map_or(WorkState::Skipped, |need| need.state))
        });
        let next = match (stopping, &failed) {
            (Some(JobStopping::Canceled), _) => Next::Skip("the job was canceled".to_owned()),
            (Some(JobStopping::DeadlineExceeded), _) => {
                Next::Skip("the deadline of the job is over".to_owned())
            }
            (None, Some(failed)) if group.when() == When::Succeeded => {
                Next::Skip(format!("group {failed} failed, and the failure policy is stop"))
            }
            (None, _) => decide(group, &needs.collect::<Vec<_>>()),
        };
        match next {
            Next::Make if !job.spec.suspend => {
                make.push(place);
                summaries[place].state = WorkState::Created;
            }
            Next::Make | Next::Wait => {}
            Next::Skip(why) => skip(&mut summaries[place], why),
        }
    }
    // Groups that wait for each other are refused when a job is stored; should one be there all the same, it ends.
    let known: std::collections::BTreeSet<usize> = order.into_iter().collect();
    for (place, summary) in summaries.iter_mut().enumerate() {
        if !known.contains(&place) && summary.state == WorkState::Waiting {
            skip(summary, "it waits for itself".to_owned());
        }
    }
    make.sort_unstable();
    make
}

fn skip(summary: &mut GroupSummary, why: String) {
    summary.state = WorkState::Skipped;
    summary.message = why;
    summary.total = 0;
}

/// The group whose failure stops the others, if one does.
fn stopped_by(job: &Job, summaries: &[GroupSummary]) -> Option<String> {
    let stop = job.spec.failure_policy == Some(FailurePolicy::Stop);
    let failed = summaries.iter().find(|summary| stop && summary.state == WorkState::Failed)?;
    Some(failed.name.clone())
}

fn decide(group: &JobGroup, needs: &[(&str, WorkState)]) -> Next {
    let all_ended = needs.iter().all(|(_, state)| state.is_terminal());
    match group.when() {
        When::Succeeded => {
            let lost = |state: WorkState| state.is_terminal() && state != WorkState::Succeeded;
            if let Some((name, state)) = needs.iter().find(|(_, state)| lost(*state)) {
                return Next::Skip(format!("group {name} {}", how_it_ended(*state)));
            }
            if all_ended { Next::Make } else { Next::Wait }
        }
        _ if !all_ended => Next::Wait,
        When::Completed => Next::Make,
        When::Failed if needs.iter().any(|(_, state)| *state == WorkState::Failed) => Next::Make,
        When::Failed => Next::Skip("none of the groups it depends on failed".to_owned()),
    }
}

fn how_it_ended(state: WorkState) -> &'static str {
    match state {
        WorkState::Failed => "failed",
        WorkState::Canceled => "was canceled",
        WorkState::Skipped => "was skipped",
        _ => "did not succeed",
    }
}

/// Groups that are to end: all of them if the job is stopped, those that wait for success if the failure policy says so.
fn choose_canceled(
    job: &Job,
    stopping: Option<JobStopping>,
    stands: &[Option<GroupStand>],
    summaries: &[GroupSummary],
) -> Vec<usize> {
    let failed = stopped_by(job, summaries).is_some();
    let ends = |place: &usize| {
        let goes_on = |stand: &GroupStand| !stand.state.is_terminal() && !stand.cancel;
        let there = stands.get(*place).and_then(Option::as_ref).is_some_and(goes_on);
        let when = job.spec.task_groups[*place].when();
        there && (stopping.is_some() || (failed && when == When::Succeeded))
    };
    (0..job.spec.task_groups.len()).filter(ends).collect()
}

/// Groups that do not stand as the job says. One the user suspended stays so until the job goes on again.
fn choose_suspended(job: &Job, resumed: bool, stands: &[Option<GroupStand>]) -> Vec<(usize, bool)> {
    let suspend = job.spec.suspend;
    if !suspend && !resumed {
        return Vec::new();
    }
    let differs = |stand: &GroupStand| !stand.state.is_terminal() && stand.suspend != suspend;
    let stands = stands.iter().enumerate();
    let chosen = stands.filter(|(_, stand)| stand.as_ref().is_some_and(differs));
    chosen.map(|(place, _)| (place, suspend)).collect()
}

fn fold(status: &mut JobStatus, summaries: Vec<GroupSummary>, now: Timestamp) {
    let state = state(status, &summaries);
    let counted = summaries.iter().filter(|summary| summary.state != WorkState::Skipped);
    status.total = counted.fold(0, |total, summary| total.saturating_add(summary.total));
    status.counts = summaries.iter().fold(Counts::default(), |counts, summary| counts.plus(summary.counts));
    status.state = Some(state);
    status.groups = summaries;
    status.message = describe(status);
    if state.is_terminal() {
        status.terminated = Some(now);
        end_conditions(&mut status.conditions, state, &status.message, now);
    }
}

fn state(status: &JobStatus, summaries: &[GroupSummary]) -> WorkState {
    let any = |wanted: WorkState| summaries.iter().any(|summary| summary.state == wanted);
    let over = summaries.iter().all(|summary| summary.state.is_terminal());
    match (over, status.stopping) {
        (true, Some(JobStopping::Canceled)) => WorkState::Canceled,
        (true, Some(JobStopping::DeadlineExceeded)) => WorkState::Failed,
        (true, None) if any(WorkState::Failed) => WorkState::Failed,
        (true, None) if any(WorkState::Canceled) => WorkState::Canceled,
        (true, None) => WorkState::Succeeded,
        (false, _) => {
            let under_way =
                [WorkState::Running, WorkState::Succeeded, WorkState::Failed, WorkState::Canceled];
            if under_way.into_iter().any(any) {
                WorkState::Running
            } else if any(WorkState::Ready) {
                WorkState::Ready
            } else {
                WorkState::Created
            }
        }
    }
}

fn describe(status: &JobStatus) -> String {
    let named = |wanted: WorkState| {
        let names =
            status.groups.iter().filter(|group| group.state == wanted).map(|group| group.name.as_str());
        names.take(3).collect::<Vec<_>>().join(", ")
    };
    let ended = status.groups.iter().filter(|group| group.state.is_terminal()).count();
    let mut parts = vec![format!("{ended} of {} groups ended", status.groups.len())];
    if status.stopping == Some(JobStopping::DeadlineExceeded) {
        parts.push("the deadline is over".to_owned());
    }
    let failed = named(WorkState::Failed);
    if !failed.is_empty() {
        parts.push(format!("failed: {failed}"));
    }
    let running = named(WorkState::Running);
    if !running.is_empty() {
        parts.push(format!("running: {running}"));
    }
    if status.suspended_since.is_some() {
        parts.push("suspended".to_owned());
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use muster_types::task_group::GroupTask;

    use super::*;

    #[test]
    fn a_group_that_waits_has_as_many_tasks_as_it_will_have() {
        let modes = GroupMode::ALL.iter().copied().map(Some).chain([None]);
        for (mode, count) in modes.flat_map(|mode| [(mode, None), (mode, Some(3))]) {
            let tasks = vec![GroupTask::default(); 2];
            let group = JobGroup { mode, count, tasks, ..JobGroup::default() };
            assert_eq!(total_of(&group), group.group_spec().total(), "{mode:?} {count:?}");
        }
    }
}
