//! A member of a pipeline is submitted only after the member before it has succeeded.

use std::collections::BTreeMap;

use super::task::Task;
use super::{Moment, Statement};

const PLACE: &str = "muster.dev/place";

#[derive(Default)]
pub struct PipelineOrder {
    /// Uids of members, by the uid of their group and their place.
    members: BTreeMap<(String, u64), String>,
}

impl Statement for PipelineOrder {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some(task) = moment.task else { return };
        let Some((group, name, place)) = place_of(task) else { return };
        self.members.insert((group.clone(), place), task.metadata.uid.clone());
        let path = format!("{}/{name}", task.metadata.namespace);
        let found = moment.present.object("taskgroups.muster.dev", &path);
        let is_pipeline = found.is_some_and(|group| group["spec"]["mode"] == "pipeline");
        let was_submitted = moment.before.is_some_and(Task::is_submitted);
        if !is_pipeline || place == 0 || was_submitted || !task.is_submitted() {
            return;
        }
        moment.present.compared();
        let former = self.members.get(&(group, place - 1)).and_then(|uid| moment.present.tasks.get(uid));
        if former.is_none_or(|former| former.state() != "Succeeded") {
            let (member, stood) = (&task.metadata.name, former.map(Task::state));
            broken.push(format!("{member} was submitted when the member before it was {stood:?}"));
        }
    }
}

/// The group of a member, its name, and the place of the member in it.
fn place_of(task: &Task) -> Option<(String, String, u64)> {
    let owner = task.metadata.owner_references.iter().find(|owner| owner.kind == "TaskGroup")?;
    let place = task.metadata.annotations.get(PLACE)?.parse().ok()?;
    Some((owner.uid.clone(), owner.name.clone(), place))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn pipeline() -> Story {
        let mut story = Story::new();
        story.object("taskgroups.muster.dev", "d/g", json!({"spec": {"mode": "pipeline"}}));
        story
    }

    fn member(story: &mut Story, place: u64, state: &str) {
        story.write(&json!({
            "metadata": {
                "name": format!("m{place}"), "namespace": "d", "uid": format!("m{place}"),
                "annotations": {"muster.dev/place": place.to_string()},
                "ownerReferences": [{"kind": "TaskGroup", "name": "g", "uid": "g"}],
            },
            "status": {"state": state},
        }));
    }

    #[test]
    fn members_after_one_another_are_as_promised() {
        let mut story = pipeline();
        for (place, state) in [(0, "Ready"), (1, "Created"), (0, "Succeeded"), (1, "Ready")] {
            member(&mut story, place, state);
        }
        assert!(story.broken("pipeline_order").is_empty());
    }

    #[test]
    fn a_member_before_its_turn_is_found() {
        let mut story = pipeline();
        for (place, state) in [(0, "Ready"), (1, "Created"), (0, "Failed"), (1, "Ready")] {
            member(&mut story, place, state);
        }
        assert_eq!(story.broken("pipeline_order").len(), 1);
    }
}
