//! A managed resource goes only after every required adapter agreed to its deletion; and when the outside is quiet it becomes Ready,
//! or goes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::adapter_reports::{condition, required};
use super::history::What;
use super::present::Present;
use super::{Moment, Statement};

const GROUP: &str = ".resources.muster.dev";
/// Within this time a resource becomes Ready in a quiet world, in milliseconds.
const SOON: i64 = 900_000;

#[derive(Default)]
pub struct ManagedEnds {
    /// Adapters that agreed to the deletion of a resource, by its uid.
    finalized: BTreeMap<String, BTreeSet<String>>,
    /// Resources that were Ready since all is quiet.
    ready: BTreeSet<String>,
    /// Resources whose deletion was asked for.
    deleting: BTreeSet<String>,
}

impl Statement for ManagedEnds {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::Change(commit) = &moment.entry.what else { return };
        if !commit.resource.ends_with(GROUP) {
            return;
        }
        let gone: Value = if commit.deleted {
            serde_json::from_str(commit.object.get()).unwrap_or_default()
        } else {
            Value::Null
        };
        let resource = moment.present.object(&commit.resource, &commit.path).unwrap_or(&gone);
        let Some(uid) = resource["metadata"]["uid"].as_str() else { return };
        moment.present.compared();
        let agreed = self.finalized.entry(uid.to_owned()).or_default();
        let reports = resource["status"]["adapters"].as_array().into_iter().flatten();
        for report in reports.filter(|it| it["observedGeneration"] == resource["metadata"]["generation"]) {
            if condition(&report["conditions"], "Finalized").is_some_and(|it| it["status"] == "True") {
                agreed.extend(report["adapter"].as_str().map(str::to_owned));
            }
        }
        if commit.deleted && !required(moment.present, &commit.resource).is_subset(agreed) {
            broken.push(format!("{} went though only {agreed:?} agreed", commit.path));
        }
        self.settle(moment.present, &commit.path, uid, resource, broken);
    }

    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        let Some(quiet) = present.quiet_since else { return };
        let left = present.objects.iter().filter(|((resource, _), _)| resource.ends_with(GROUP));
        for ((_, path), resource) in left {
            let uid = resource["metadata"]["uid"].as_str().unwrap_or_default();
            if !resource["metadata"]["deletionTimestamp"].is_null() {
                broken.push(format!("{path} never went though all is quiet"));
            } else if present.at - quiet > SOON && !self.ready.contains(uid) {
                broken.push(format!("{path} was never Ready since all is quiet"));
            }
        }
    }
}

impl ManagedEnds {
    fn settle(
        &mut self,
        present: &Present,
        path: &str,
        uid: &str,
        resource: &Value,
        broken: &mut Vec<String>,
    ) {
        let is_deleting = !resource["metadata"]["deletionTimestamp"].is_null();
        let is_news = is_deleting && self.deleting.insert(uid.to_owned());
        let Some(quiet) = present.quiet_since else { return };
        if condition(&resource["status"]["conditions"], "Ready").is_some_and(|it| it["status"] == "True") {
            self.ready.insert(uid.to_owned());
        }
        if is_news && present.at - quiet > SOON && !self.ready.contains(uid) {
            broken.push(format!("{path} was not Ready before its deletion, though all was quiet"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    const CLUSTERS: &str = "clusters.resources.muster.dev";

    fn story() -> Story {
        let mut story = Story::new();
        let spec = json!({"names": {"plural": "clusters"}, "adapters": ["x"]});
        story.object("resourcetypes.muster.dev", "/clusters", json!({"spec": spec}));
        story
    }

    fn cluster(finalized: &str, deletion: &Value) -> Value {
        json!({
            "metadata": {"uid": "c", "generation": 2, "deletionTimestamp": deletion},
            "status": {"adapters": [{
                "adapter": "x", "observedGeneration": 2,
                "conditions": [{"type": "Finalized", "status": finalized}],
            }]},
        })
    }

    #[test]
    fn a_resource_that_goes_after_all_agreed_is_as_promised() {
        let mut story = story();
        story.object(CLUSTERS, "d/c", cluster("True", &json!("now")));
        story.gone(CLUSTERS, "d/c", &cluster("True", &json!("now")));
        assert!(story.quiet().broken("managed_ends").is_empty());
    }

    #[test]
    fn a_resource_that_goes_before_all_agreed_is_found() {
        let mut story = story();
        story.object(CLUSTERS, "d/c", cluster("False", &json!("now")));
        story.gone(CLUSTERS, "d/c", &cluster("False", &json!("now")));
        assert_eq!(story.broken("managed_ends").len(), 1);
    }

    #[test]
    fn a_resource_that_never_goes_and_one_that_is_never_ready_are_found() {
        for deletion in [json!("now"), json!(null)] {
            let mut story = story();
            story.object(CLUSTERS, "d/c", cluster("False", &deletion)).quiet();
            assert_eq!(story.wait(1_000_000).link("r", true).broken("managed_ends").len(), 1, "{deletion}");
        }
    }
}
