//! Addon: the main container of tasks of a kind.

use muster_types::Addon;
use muster_types::addon::AddonSpec;

use super::task::or_none;
use super::{container, patterns};
use crate::kind::{Column, Strategy};
use crate::refusal::Causes;

impl Strategy for AddonSpec {
    fn validate(object: &Addon, causes: &mut Causes) {
        patterns::validate_names("spec.task", &object.spec.task, causes);
        patterns::validate_selector("spec.selector", &object.spec.selector, causes);
        container::validate("spec.container", &object.spec.container, causes);
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Task", "Kinds of tasks it serves.", |object| or_none(&object.spec.task)),
            Column::<Self>::text("Selector", "Subjects it serves.", |object| or_none(&object.spec.selector)),
            Column::<Self>::text("Runs", "Image or command.", |object| {
                container::cell(&object.spec.container)
            })
            .wide(),
        ]
    }
}
