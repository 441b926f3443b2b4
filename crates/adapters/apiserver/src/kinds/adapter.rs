//! Adapter: what it may do on a pulse, and how it is shown.

use std::borrow::Cow;

use muster_resources::{AdapterRules, FieldProblem};
use muster_types::Adapter;
use muster_types::adapter::AdapterSpec;
use muster_types::name_rules;
use serde_json::json;

use super::task::{or_none, validate_spec};
use crate::kind::{Column, FieldOf, Strategy};
use crate::refusal::Causes;

impl Strategy for AdapterSpec {
    fn validate(object: &Adapter, causes: &mut Causes) {
        let spec = &object.spec;
        // It is named in a label of its tasks.
        if let Err(why) = name_rules::dns1123_label(&object.metadata.name) {
            causes.invalid("metadata.name", &object.metadata.name, why);
        }
        if spec.resource_type.is_empty() {
            causes.required("spec.resourceType", "the resource type it is for, by its plural");
        } else if let Err(why) = name_rules::dns1123_label(&spec.resource_type) {
            causes.invalid("spec.resourceType", &spec.resource_type, why);
        }
        for FieldProblem { field, value, why } in
            AdapterRules::compile(&object.metadata.name, spec).err().unwrap_or_default()
        {
            causes.invalid(field, value, why);
        }
        if let Some(task) = &spec.task {
            validate_spec("spec.task.spec", &task.spec, causes);
        }
        if let Some(task) = spec.delete.as_ref().and_then(|delete| delete.task.as_ref()) {
            validate_spec("spec.delete.task.spec", &task.spec, causes);
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Type", "The resource type it is for.", |it| json!(it.spec.resource_type)),
            Column::<Self>::text(
                "Does",
                "Whether it makes a task, applies a manifest or calls a URL.",
                |it| {
                    or_none(match (&it.spec.task, &it.spec.manifest, &it.spec.http) {
                        (Some(_), _, _) => "task",
                        (_, Some(_), _) => "manifest",
                        (_, _, Some(_)) => "http",
                        (None, None, None) => "",
                    })
                },
            ),
            Column::<Self>::text("Suspended", "Whether it was told to do nothing.", |it| {
                json!(it.spec.suspend.to_string())
            }),
        ]
    }

    fn fields() -> &'static [(&'static str, FieldOf<Self>)] {
        &[("spec.resourceType", |adapter| Cow::Borrowed(&adapter.spec.resource_type))]
    }
}
