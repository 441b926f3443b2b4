//! Application: a subject of tasks.

use std::collections::BTreeSet;

use muster_types::Application;
use muster_types::application::ApplicationSpec;
use serde_json::json;

use crate::kind::{Column, Strategy};
use crate::refusal::Causes;

impl Strategy for ApplicationSpec {
    const HAS_STATUS: bool = false;

    fn validate(object: &Application, causes: &mut Causes) {
        let mut seen = BTreeSet::new();
        for (index, tag) in object.spec.tags.iter().enumerate() {
            for (name, value) in [("category", &tag.category), ("tag", &tag.tag)] {
                if value.is_empty() {
                    causes.required(format!("spec.tags[{index}].{name}"), "must not be empty");
                }
            }
            if !seen.insert((&tag.category, &tag.tag)) {
                causes.invalid(format!("spec.tags[{index}]"), &tag.tag, "is given twice");
            }
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![Column::<Self>::text("Tags", "Its tags, by category.", |object| {
            let tags: Vec<_> =
                object.spec.tags.iter().map(|tag| format!("{}={}", tag.category, tag.tag)).collect();
            json!(tags.join(","))
        })]
    }
}
