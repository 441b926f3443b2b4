//! A Job like one that ended, with only what did not succeed.
//!
//! A job that ended does not change, so a retry is a new job. It has the groups that did not succeed and those that depend
//! on them; a group that succeeded is taken for done. Of a batch and of replicas only the members that did not succeed are
//! made, with the numbers they had; a pipeline goes on with the first that did not succeed.

use std::collections::BTreeSet;

use muster_types::job::{JobGroup, JobSpec, When};
use muster_types::task_group::{GroupMode, GroupTask};
use muster_types::{Job, State, WorkState};

use crate::group_render::INDEX;
use crate::job_graph;

/// The spec of the new job; `None` if everything succeeded. `members` tells how the member of a group at a place ended.
pub fn retry_job(job: &Job, members: impl Fn(&str, u32) -> Option<State>) -> Option<JobSpec> {
    let groups = &job.spec.task_groups;
    let state = |place: usize| job.status.groups.get(place).map_or(WorkState::Waiting, |group| group.state);
    let places = job_graph::places(groups);
    let mut again: BTreeSet<usize> = BTreeSet::new();
    for place in job_graph::order(groups) {
        let needs = || groups[place].depends_on.iter().filter_map(|name| places.get(name.as_str()));
        let follows = needs().any(|need| again.contains(need));
        // It waited for a failure that did not come.
        let idle = groups[place].when() == When::Failed && state(place) == WorkState::Skipped;
        if follows || (state(place) != WorkState::Succeeded && !idle) {
            again.insert(place);
        }
    }
    let names: BTreeSet<&str> = again.iter().map(|place| groups[*place].name.as_str()).collect();
    let task_groups: Vec<JobGroup> = again
        .iter()
        .map(|place| {
            let whole =
                matches!(state(*place), WorkState::Waiting | WorkState::Skipped | WorkState::Succeeded);
            let mut group = groups[*place].clone();
            if !whole {
                keep_unsuccessful(&mut group, &members);
            }
            group.cancel = false;
            group.suspend = false;
            group.depends_on.retain(|name| names.contains(name.as_str()));
            if group.depends_on.is_empty() {
                group.when = None;
            }
            group
        })
        .collect();
    let spec = JobSpec { task_groups, suspend: false, cancel: false, ..job.spec.clone() };
    (!spec.task_groups.is_empty()).then_some(spec)
}

/// Leaves the members that did not succeed.
fn keep_unsuccessful(group: &mut JobGroup, members: &impl Fn(&str, u32) -> Option<State>) {
    let spec = group.group_spec();
    let succeeded = |place: u32| members(&group.name, place) == Some(State::Succeeded);
    let left: Vec<u32> = (0..spec.total()).filter(|place| !succeeded(*place)).collect();
    // Nothing left means that it did not fail by its members; then all of it is tried again.
    if left.is_empty() || left.len() == spec.total() as usize {
        return;
    }
    let templates = u32::try_from(spec.tasks.len()).unwrap_or(u32::MAX).max(1);
    let replicas = spec.mode() == GroupMode::Replicas;
    let one = |place: u32| {
        let at = (place % templates) as usize;
        let copy = place / templates;
        let mut task = spec.tasks.get(at).cloned().unwrap_or_default();
        task.name = spec.task_name(at);
        let index = if replicas { copy } else { place };
        if replicas {
            task.name = format!("{}-{copy}", task.name);
        }
        task.metadata.labels.entry(INDEX.to_owned()).or_insert_with(|| index.to_string());
        task
    };
    let tasks: Vec<GroupTask> = left.into_iter().map(one).collect();
    group.tasks = tasks;
    if replicas {
        group.mode = Some(GroupMode::Batch);
        group.count = None;
    }
}
