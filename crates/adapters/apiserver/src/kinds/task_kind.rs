//! TaskKind: a named sort of task.

use std::collections::BTreeSet;

use muster_types::TaskKind;
use muster_types::name_rules;
use muster_types::task_kind::TaskKindSpec;
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
