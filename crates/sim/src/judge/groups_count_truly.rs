//! A group that has ended counts its members as they ended, also those that were reaped since. And a member is not let go by
//! time while its group has not ended.

use std::collections::BTreeSet;

use super::history::What;
use super::present::Present;
use super::{Moment, Statement};

#[derive(Default)]
pub struct GroupsCountTruly {
    /// Tasks that users deleted, by path.
    asked: BTreeSet<String>,
}

impl Statement for GroupsCountTruly {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if let What::Asked(request) = &moment.entry.what {
            self.asked.insert(request.path.clone());
        }
        let Some(task) = moment.task.filter(|task| task.gone) else { return };
        let (name, namespace) = (&task.metadata.name, &task.metadata.namespace);
        let path = format!("{namespace}/{name}");
        let Some(owner) = task.metadata.owner_references.iter().find(|it| it.kind == "TaskGroup") else {
            return;
        };
        let group = moment.present.object("taskgroups.muster.dev", &format!("{namespace}/{}", owner.name));
        let Some(group) = group.filter(|_| !self.asked.contains(&path)) else { return };
        moment.present.compared();
        let is_wanted = group["metadata"]["deletionTimestamp"].is_null()
            && group["metadata"]["uid"] == owner.uid.as_str();
        let state = group["status"]["state"].as_str().unwrap_or("Created");
        // A time that the user set for how it ended is an answer to that.
        let own_time = task.spec.ttl.get(&task.state().to_lowercase());
        let is_own_time = task.is_over() && own_time.is_some_and(|time| time != "0s");
        if is_wanted && !is_over(state) && !task.status.expired && !is_own_time {
            broken.push(format!("{name} ({}) went while its group {} was {state}", task.state(), owner.name));
        }
    }

    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        for group in present.all("taskgroups.muster.dev") {
            let (status, metadata) = (&group["status"], &group["metadata"]);
            if !is_over(status["state"].as_str().unwrap_or_default()) {
                continue;
            }
            let Some(uid) = metadata["uid"].as_str() else { continue };
            let members = present
                .tasks
                .values()
                .filter(|task| task.metadata.owner_references.iter().any(|owner| owner.uid == uid));
            let (mut succeeded, mut failed, mut unsure) = (0, 0, 0);
            for member in members {
                succeeded += u64::from(member.state() == "Succeeded");
                failed += u64::from(member.state() == "Failed");
                // One that a user deleted counts as it ended or as canceled.
                let path = format!("{}/{}", member.metadata.namespace, member.metadata.name);
                unsure += u64::from(member.is_over() && self.asked.contains(&path));
            }
            present.compared();
            let count = |word: &str| status["counts"][word].as_u64().unwrap_or(0);
            let missing = |all: u64, word: &str| all.checked_sub(count(word)).unwrap_or(u64::MAX);
            let missing = missing(succeeded, "succeeded").saturating_add(missing(failed, "failed"));
            if missing > unsure {
                broken.push(format!(
                    "group {} counts {}, but {succeeded} of its members succeeded and {failed} failed",
                    metadata["name"], status["counts"]
                ));
            }
        }
    }
}

fn is_over(state: &str) -> bool {
    matches!(state, "Succeeded" | "Failed" | "Canceled" | "Skipped")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    fn member(state: &str) -> Value {
        json!({
            "metadata": {"name": "m", "namespace": "d", "uid": "m",
                "ownerReferences": [{"kind": "TaskGroup", "name": "g", "uid": "g"}]},
            "status": {"state": state},
        })
    }

    fn group(state: &str, counts: &Value) -> Value {
        json!({"metadata": {"name": "g", "uid": "g"}, "status": {"state": state, "counts": counts}})
    }

    #[test]
    fn a_group_that_counts_what_succeeded_and_was_reaped_is_as_promised() {
        let mut story = Story::new();
        story.write(&member("Succeeded"));
        story
            .object("taskgroups.muster.dev", "d/g", group("Succeeded", &json!({"succeeded": 1})))
            .delete("m");
        assert!(story.broken("groups_count_truly").is_empty());
    }

    #[test]
    fn a_group_that_counts_what_succeeded_as_canceled_is_found() {
        let mut story = Story::new();
        story.write(&member("Succeeded"));
        story.object("taskgroups.muster.dev", "d/g", group("Canceled", &json!({"canceled": 1})));
        assert_eq!(story.broken("groups_count_truly").len(), 1);
    }

    #[test]
    fn a_member_that_goes_before_it_was_submitted_is_found() {
        let mut story = Story::new();
        story.object("taskgroups.muster.dev", "d/g", group("Running", &json!({})));
        story.write(&member("Created")).delete("m");
        assert_eq!(story.broken("groups_count_truly").len(), 1);
    }
}
