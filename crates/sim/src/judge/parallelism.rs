//! No more members of a group are submitted at once than its `parallelism` allows.

use super::task::Task;
use super::{Moment, Statement};

pub struct Parallelism;

impl Statement for Parallelism {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some(task) = moment.task.filter(|task| task.is_submitted()) else { return };
        if moment.before.is_some_and(Task::is_submitted) {
            return;
        }
        let Some(owner) = task.metadata.owner_references.iter().find(|it| it.kind == "TaskGroup") else {
            return;
        };
        let path = format!("{}/{}", task.metadata.namespace, owner.name);
        let group = moment.present.object("taskgroups.muster.dev", &path);
        let Some(most) = group.and_then(|group| group["spec"]["parallelism"].as_u64()) else { return };
        moment.present.compared();
        let is_member = |it: &&Task| it.metadata.owner_references.iter().any(|it| it.uid == owner.uid);
        // One whose end was asked for makes room for the next.
        let open = moment.present.open().filter(is_member).filter(|it| !it.is_unwanted()).count();
        if open as u64 > most {
            let name = &task.metadata.name;
            broken.push(format!("{name} was submitted as one of {open} of its group, {most} are allowed"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn members(states: &[(&str, &str)]) -> Vec<String> {
        let mut story = Story::new();
        story.object("taskgroups.muster.dev", "d/g", json!({"spec": {"parallelism": 2}}));
        for (name, state) in states {
            story.write(&json!({
                "metadata": {"name": name, "namespace": "d", "uid": name,
                    "ownerReferences": [{"kind": "TaskGroup", "name": "g", "uid": "g"}]},
                "status": {"state": state},
            }));
        }
        story.broken("parallelism")
    }

    #[test]
    fn as_many_members_as_allowed_are_as_promised() {
        let states = [("a", "Ready"), ("b", "Running"), ("c", "Created"), ("a", "Failed"), ("c", "Ready")];
        assert!(members(&states).is_empty());
    }

    #[test]
    fn one_member_more_than_allowed_is_found() {
        assert_eq!(members(&[("a", "Ready"), ("b", "Running"), ("c", "Ready")]).len(), 1);
    }
}
