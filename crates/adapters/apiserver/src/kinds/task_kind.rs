//! TaskKind: a named sort of task.

use std::collections::BTreeSet;

use muster_ports::store::Snapshot;
use muster_tasks::kinds::KindGraph;
use muster_types::name_rules;
use muster_types::task_kind::TaskKindSpec;
use muster_types::{JsonText, TaskKind};
use serde_json::json;

use super::task::or_none;
use crate::kind::{Column, Strategy};
use crate::refusal::Causes;

impl Strategy for TaskKindSpec {
    const HAS_STATUS: bool = false;

    fn validate(object: &TaskKind, causes: &mut Causes) {
        if let Some(priority) = object.spec.priority.filter(|priority| *priority < 0) {
            causes.invalid("spec.priority", priority, "must be at least 0, which is the lowest");
        }
        let mut names = BTreeSet::new();
        for (index, name) in object.spec.dependencies.iter().enumerate() {
            let field = format!("spec.dependencies[{index}]");
            if let Err(why) = name_rules::dns1123_subdomain(name) {
                causes.invalid(field, name, why);
            } else if *name == object.metadata.name {
                causes.invalid(field, name, "a kind cannot depend on itself");
            } else if !names.insert(name) {
                causes.invalid(field, name, "is given twice");
            }
        }
    }

    /// Two kinds that are changed at the same time may still make a circle; the queue lives with it.
    fn admit(object: &TaskKind, stored: &Snapshot, causes: &mut Causes) {
        let (name, dependencies) = (&object.metadata.name, &object.spec.dependencies);
        let others: Vec<TaskKind> = stored
            .range(Some(&object.metadata.namespace), None)
            .filter_map(|stored| TaskKind::from_json(stored.json()).ok())
            .collect();
        let graph = KindGraph::of_kinds(&others);
        if let Some(circle) = graph.would_cycle(name, dependencies.iter().map(String::as_str)) {
            let why = format!("kinds cannot wait for each other in a circle: {}", circle.join(" -> "));
            causes.invalid("spec.dependencies", dependencies.join(","), why);
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::number("Priority", "Default priority of its tasks.", |object| {
                json!(object.spec.priority.unwrap_or(0))
            }),
            Column::<Self>::text("Dependencies", "Kinds that come first on the same subject.", |object| {
                or_none(&object.spec.dependencies.join(","))
            }),
        ]
    }
}
