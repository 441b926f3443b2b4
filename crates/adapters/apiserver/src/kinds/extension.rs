//! Extension: a sidecar of addons.

use muster_types::Extension;
use muster_types::extension::ExtensionSpec;

use super::task::or_none;
use super::{container, patterns};
use crate::kind::{Column, Strategy};
use crate::refusal::Causes;

impl Strategy for ExtensionSpec {
    fn validate(object: &Extension, causes: &mut Causes) {
        patterns::validate_names("spec.addon", &object.spec.addon, causes);
        patterns::validate_selector("spec.selector", &object.spec.selector, causes);
        container::validate("spec.container", &object.spec.container, causes);
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::text("Addon", "Addons it extends.", |object| or_none(&object.spec.addon)),
            Column::<Self>::text("Selector", "Subjects it is for.", |object| or_none(&object.spec.selector)),
            Column::<Self>::text("Runs", "Image or command.", |object| {
                container::cell(&object.spec.container)
            })
            .wide(),
        ]
    }
}
