//! A managed resource never says what is not so: it is Ready only at its latest generation, what it observed never goes back,
//! and an adapter has one task at a time for it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::history::What;
use super::{Moment, Statement};

const GROUP: &str = ".resources.muster.dev";
const ADAPTER: &str = "resources.muster.dev/adapter";

#[derive(Default)]
pub struct ManagedResources {
    /// The generation that Available spoke of, by uid.
    tracked: BTreeMap<String, i64>,
    /// The task that has not ended, by uid of the resource and adapter.
    open: BTreeMap<(String, String), String>,
}

impl Statement for ManagedResources {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::Change(commit) = &moment.entry.what else { return };
        if commit.resource.ends_with(GROUP)
            && let Some(resource) = moment.present.object(&commit.resource, &commit.path)
        {
            moment.present.compared();
            self.resource(&commit.path, resource, broken);
        }
        self.task(moment, broken);
    }
}

impl ManagedResources {
    fn resource(&mut self, path: &str, resource: &Value, broken: &mut Vec<String>) {
        let (metadata, status) = (&resource["metadata"], &resource["status"]);
        let generation = metadata["generation"].as_i64().unwrap_or(0);
        let condition = |r#type: &str| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().find(|condition| condition["type"] == r#type)
        };
        let Some(available) = condition("Available") else { return };
        let tracked = available["observedGeneration"].as_i64().unwrap_or(0);
        let last = self.tracked.entry(metadata["uid"].to_string()).or_insert(tracked);
        if tracked < *last {
            broken.push(format!("Available of {path} went back from generation {last} to {tracked}"));
        }
        *last = tracked;
        let is_ready = condition("Ready").is_some_and(|ready| ready["status"] == "True");
        if is_ready && (tracked != generation || available["status"] != "True") {
            broken.push(format!(
                "{path} is Ready at generation {generation}, and Available is {} at {tracked}",
                available["status"]
            ));
        }
        if is_ready && !metadata["deletionTimestamp"].is_null() {
            broken.push(format!("{path} is Ready and is being deleted"));
        }
    }

    fn task(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let Some(task) = moment.task else { return };
        let Some(adapter) = task.metadata.labels.get(ADAPTER) else { return };
        let Some(owner) = task.metadata.owner_references.first() else { return };
        moment.present.compared();
        let (key, uid) = ((owner.uid.clone(), adapter.clone()), &task.metadata.uid);
        if task.gone || task.is_over() {
            if self.open.get(&key) == Some(uid) {
                self.open.remove(&key);
            }
        } else if moment.before.is_none()
            && let Some(other) = self.open.insert(key, uid.clone())
        {
            let (name, adapter) = (&task.metadata.name, adapter);
            broken.push(format!("{adapter} made {name} while its task {other} had not ended"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    fn cluster(generation: i64, observed: i64) -> Value {
        json!({
            "metadata": {"uid": "c", "generation": generation},
            "status": {"conditions": [
                {"type": "Available", "status": "True", "observedGeneration": observed},
                {"type": "Ready", "status": "True"},
            ]},
        })
    }

    #[test]
    fn a_resource_that_is_ready_at_its_generation_is_as_promised() {
        let mut story = Story::new();
        story.object("clusters.resources.muster.dev", "d/c", cluster(2, 2));
        assert!(story.broken("managed_resources").is_empty());
    }

    #[test]
    fn a_resource_that_is_ready_at_an_older_generation_is_found() {
        let mut story = Story::new();
        story.object("clusters.resources.muster.dev", "d/c", cluster(2, 1));
        assert_eq!(story.broken("managed_resources").len(), 1);
    }

    #[test]
    fn two_tasks_of_one_adapter_at_once_are_found() {
        let mut story = Story::new();
        for name in ["a", "b"] {
            story.write(&json!({"metadata": {
                "name": name, "uid": name, "namespace": "d", "labels": {"resources.muster.dev/adapter": "x"},
                "ownerReferences": [{"kind": "Cluster", "name": "c", "uid": "c"}],
            }}));
        }
        assert_eq!(story.broken("managed_resources").len(), 1);
    }
}
