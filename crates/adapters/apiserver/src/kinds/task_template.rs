//! TaskTemplate: a task to be made later.

use muster_types::TaskTemplate;
use muster_types::task_template::TaskTemplateSpec;

use super::task::{or_none, validate_spec};
use crate::kind::{Column, Strategy};
use crate::refusal::Causes;

impl Strategy for TaskTemplateSpec {
    const HAS_STATUS: bool = false;

    fn validate(object: &TaskTemplate, causes: &mut Causes) {
        validate_spec("spec.template.spec", &object.spec.template.spec, causes);
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Kind", "TaskKind of the tasks.", |object| {
                or_none(&object.spec.template.spec.kind)
            }),
            Column::<Self>::text("Addon", "Addon of the tasks.", |object| {
                or_none(&object.spec.template.spec.addon)
            }),
        ]
    }
}
