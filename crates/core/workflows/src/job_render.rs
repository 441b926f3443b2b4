//! What a TaskGroup of a Job looks like.

use muster_types::{Job, Millis, TaskGroup};

use crate::group_render::{JOB, made_by, merge_labels};

/// The name of a group of a job.
pub fn group_name(job: &str, group: &str) -> String {
    format!("{job}-{group}")
}

/// The group to make for a place of a job; `None` if it has no such place.
pub fn render_group(job: &Job, place: usize, now: Millis) -> Option<TaskGroup> {
    let own = job.spec.task_groups.get(place)?;
    let mut group = TaskGroup::default();
    let name = group_name(&job.metadata.name, &own.name);
    group.metadata = made_by(job, &name, u32::try_from(place).ok()?, now);
    group.metadata.labels.insert(JOB.to_owned(), job.metadata.name.clone());
    group.spec = own.group_spec();
    group.spec.priority = group.spec.priority.or(job.spec.priority);
    group.spec.robot_selector = merge_labels(&job.spec.robot_selector, &group.spec.robot_selector);
    group.spec.suspend |= job.spec.suspend;
    Some(group)
}
