//! A TaskGroup or a Job that failed is not deleted because its time is over, and neither are its tasks: it is released, and stays.

use std::collections::BTreeSet;

use serde_json::Value;

use super::history::What;
use super::{Moment, Statement};

#[derive(Default)]
pub struct FailedWorkIsKept {
    /// What users deleted, by resource and path.
    asked: BTreeSet<(String, String)>,
}

impl Statement for FailedWorkIsKept {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if let What::Asked(request) = &moment.entry.what {
            self.asked.insert((request.resource.clone(), request.path.clone()));
        }
        let What::Change(commit) = &moment.entry.what else { return };
        let is_work = matches!(commit.resource.as_str(), "taskgroups.muster.dev" | "jobs.muster.dev");
        if !is_work || !commit.deleted {
            return;
        }
        let Ok(object) = serde_json::from_str::<Value>(commit.object.get()) else { return };
        let is_own = object["metadata"]["ownerReferences"].is_null();
        // A time that the user set for it is an answer to how it ended.
        let is_wanted = object["spec"]["ttl"].is_null()
            && !self.asked.contains(&(commit.resource.clone(), commit.path.clone()));
        moment.present.compared();
        if is_own && is_wanted && object["status"]["state"] == "Failed" {
            broken.push(format!("{} {} failed and was deleted", commit.resource, commit.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn deleted(state: &str) -> Vec<String> {
        let mut story = Story::new();
        let group =
            json!({"metadata": {"name": "g", "namespace": "d"}, "spec": {}, "status": {"state": state}});
        story.gone("taskgroups.muster.dev", "d/g", &group).broken("failed_work_is_kept")
    }

    #[test]
    fn a_group_that_succeeded_may_go() {
        assert!(deleted("Succeeded").is_empty());
    }

    #[test]
    fn a_group_that_failed_and_went_by_itself_is_found() {
        assert_eq!(deleted("Failed").len(), 1);
    }
}
