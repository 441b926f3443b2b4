//! Which member of a pipeline comes after another.
//!
//! A pipeline goes on in the same commit that says its member succeeded: whoever writes the one down finds the other by its
//! name. The group's own loop sees to everything else, and to members that do not name the next.

use muster_types::metadata::OwnerReference;
use muster_types::task_group::TaskGroupSpec;
use muster_types::{Resource, Task};

use crate::group_render::PLACE;

/// Annotation of a member of a pipeline that names the one to submit when it has succeeded.
pub const NEXT: &str = "muster.dev/next";

/// What a member of a pipeline says of the one after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Succession {
    /// Name of the group.
    pub group: String,
    /// Uid of the group.
    pub uid: String,
    /// Name of the next member.
    pub next: String,
    place: u32,
}

impl Succession {
    /// `None` if nothing comes after it.
    pub fn of(task: &Task) -> Option<Self> {
        let next = task.metadata.annotations.get(NEXT)?.clone();
        let (owner, place) = (group_of(task)?, place_of(task)?);
        Some(Self { group: owner.name.clone(), uid: owner.uid.clone(), next, place: place.checked_add(1)? })
    }

    /// True if a task is what comes next. Annotations are anybody's to write, so a name alone is not believed.
    pub fn leads_to(&self, next: &Task) -> bool {
        group_of(next).is_some_and(|owner| owner.uid == self.uid) && place_of(next) == Some(self.place)
    }
}

pub(crate) fn group_of(task: &Task) -> Option<&OwnerReference> {
    let owners = &task.metadata.owner_references;
    owners.iter().find(|owner| owner.controller == Some(true) && owner.kind == TaskGroupSpec::NAMES.kind)
}

fn place_of(task: &Task) -> Option<u32> {
    task.metadata.annotations.get(PLACE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use muster_types::task_group::{GroupMode, GroupTask};
    use muster_types::{Millis, TaskGroup};

    use super::*;
    use crate::group_render::render_member;

    fn members(mode: GroupMode) -> Vec<Task> {
        let tasks = vec![GroupTask::default(); 3];
        let mut group =
            TaskGroup::new("n", "g", TaskGroupSpec { mode: Some(mode), tasks, ..TaskGroupSpec::default() });
        group.metadata.uid = "u".to_owned();
        (0..3).map(|place| render_member(&group, place, place == 0, Millis(0))).collect()
    }

    #[test]
    fn a_member_of_a_pipeline_names_the_next_and_the_last_names_none() {
        let tasks = members(GroupMode::Pipeline);
        for (former, next) in [(0, 1), (1, 2)] {
            let succession = Succession::of(&tasks[former]).unwrap();
            assert_eq!(succession.next, tasks[next].metadata.name);
            assert_eq!((&*succession.group, &*succession.uid), ("g", "u"));
            assert!(succession.leads_to(&tasks[next]));
        }
        assert_eq!(Succession::of(&tasks[2]), None);
    }

    #[test]
    fn members_of_other_groups_name_none() {
        for mode in [GroupMode::Batch, GroupMode::Replicas] {
            assert!(members(mode).iter().all(|task| Succession::of(task).is_none()), "{mode:?}");
        }
    }

    #[test]
    fn a_task_of_another_group_or_place_is_not_the_next() {
        let mut tasks = members(GroupMode::Pipeline);
        let succession = Succession::of(&tasks[0]).unwrap();
        assert!(!succession.leads_to(&tasks[0]));
        assert!(!succession.leads_to(&tasks[2]));
        tasks[1].metadata.owner_references[0].uid = "other".to_owned();
        assert!(!succession.leads_to(&tasks[1]));
        tasks[0].metadata.owner_references.clear();
        assert_eq!(Succession::of(&tasks[0]), None);
    }
}
