//! What is reported on a managed resource is never forgotten, and says what adapters said: no pulse and no report goes back to an
//! earlier one, and Available is True at a generation only if every required adapter said so at that generation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::{Commit, What};
use super::present::Present;
use super::{Moment, Statement};

const GROUP: &str = ".resources.muster.dev";

#[derive(Default)]
pub struct AdapterReports {
    /// What was seen of each resource, by uid.
    seen: BTreeMap<String, Seen>,
}

#[derive(Default)]
struct Seen {
    pulse: i64,
    /// The generation of the last report, by adapter.
    reported: BTreeMap<String, i64>,
    /// Adapters that said True, by generation.
    said_true: BTreeMap<i64, BTreeSet<String>>,
}

impl Statement for AdapterReports {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::Change(commit) = &moment.entry.what else { return };
        if !commit.resource.ends_with(GROUP) {
            return;
        }
        let Some(resource) = moment.present.object(&commit.resource, &commit.path) else { return };
        let Some(uid) = resource["metadata"]["uid"].as_str() else { return };
        moment.present.compared();
        let seen = self.seen.entry(uid.to_owned()).or_default();
        let status = &resource["status"];
        let pulse = status["pulse"]["sequence"].as_i64().unwrap_or(0);
        if pulse < seen.pulse {
            broken.push(format!("{} went back from pulse {} to {pulse}", commit.path, seen.pulse));
        }
        seen.pulse = pulse;
        for report in status["adapters"].as_array().into_iter().flatten() {
            seen.report(&commit.path, report, broken);
        }
        seen.available(commit, status, &required(moment.present, &commit.resource), broken);
    }
}

impl Seen {
    fn report(&mut self, path: &str, report: &Value, broken: &mut Vec<String>) {
        let Some(adapter) = report["adapter"].as_str() else { return };
        // One commit may carry several reports of an adapter; the history has them all.
        let history = report["history"].as_array().into_iter().flatten();
        for trace in history.filter(|trace| trace["available"] == "True") {
            let generation = trace["generation"].as_i64().unwrap_or(0);
            self.said_true.entry(generation).or_default().insert(adapter.to_owned());
        }
        let available = condition(&report["conditions"], "Available");
        if !available.is_some_and(|it| it["status"] == "True" || it["status"] == "False") {
            return;
        }
        let generation = report["observedGeneration"].as_i64().unwrap_or(0);
        let last = self.reported.entry(adapter.to_owned()).or_insert(generation);
        if generation < *last {
            broken.push(format!("the report of {adapter} on {path} went back from {last} to {generation}"));
        }
        *last = generation;
    }

    fn available(
        &self,
        commit: &Commit,
        status: &Value,
        required: &BTreeSet<String>,
        broken: &mut Vec<String>,
    ) {
        let available = condition(&status["conditions"], "Available");
        let Some(available) = available.filter(|it| it["status"] == "True") else { return };
        let generation = available["observedGeneration"].as_i64().unwrap_or(0);
        let said = self.said_true.get(&generation).cloned().unwrap_or_default();
        if !required.is_subset(&said) {
            broken.push(format!(
                "{} is Available at generation {generation}, and only {said:?} said so",
                commit.path
            ));
        }
    }
}

/// A condition by its type.
pub fn condition<'a>(conditions: &'a Value, r#type: &str) -> Option<&'a Value> {
    conditions.as_array()?.iter().find(|condition| condition["type"] == r#type)
}

/// The adapters that the type of a resource requires.
pub fn required(present: &Present, resource: &str) -> BTreeSet<String> {
    let plural = resource.strip_suffix(GROUP).unwrap_or_default();
    let types = present.all("resourcetypes.muster.dev");
    let own = types.into_iter().find(|it| it["spec"]["names"]["plural"] == plural);
    let adapters = own.and_then(|own| own["spec"]["adapters"].as_array()).into_iter().flatten();
    adapters.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    const CLUSTERS: &str = "clusters.resources.muster.dev";

    fn story() -> Story {
        let mut story = Story::new();
        let spec = json!({"names": {"plural": "clusters"}, "adapters": ["x", "y"]});
        story.object("resourcetypes.muster.dev", "/clusters", json!({"spec": spec}));
        story
    }

    fn report(adapter: &str, generation: i64) -> Value {
        json!({
            "adapter": adapter, "observedGeneration": generation,
            "conditions": [{"type": "Available", "status": "True"}],
            "history": [{"generation": generation, "available": "True"}],
        })
    }

    fn cluster(pulse: i64, available: i64, adapters: &[Value]) -> Value {
        json!({"metadata": {"uid": "c", "generation": 2}, "status": {
            "pulse": {"sequence": pulse}, "adapters": adapters,
            "conditions": [{"type": "Available", "status": "True", "observedGeneration": available}],
        }})
    }

    #[test]
    fn a_resource_that_all_adapters_call_available_is_as_promised() {
        let mut story = story();
        story.object(CLUSTERS, "d/c", cluster(1, 1, &[report("x", 1), report("y", 1)]));
        story.object(CLUSTERS, "d/c", cluster(2, 1, &[report("x", 2), report("y", 1)]));
        assert!(story.broken("adapter_reports").is_empty());
    }

    #[test]
    fn a_resource_that_is_available_though_an_adapter_did_not_say_so_is_found() {
        let mut story = story();
        story.object(CLUSTERS, "d/c", cluster(1, 2, &[report("x", 2), report("y", 1)]));
        assert_eq!(story.broken("adapter_reports").len(), 1);
    }

    #[test]
    fn a_report_and_a_pulse_that_go_back_are_found() {
        let mut story = story();
        story.object(CLUSTERS, "d/c", cluster(2, 1, &[report("x", 2), report("x", 1), report("y", 1)]));
        assert_eq!(story.broken("adapter_reports").len(), 1);
        story.object(CLUSTERS, "d/c", cluster(1, 1, &[report("y", 1)]));
        assert_eq!(story.broken("adapter_reports").len(), 2);
    }
}
