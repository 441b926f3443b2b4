//! The kinds that are served. One file each: validation, columns and selectable fields.

mod adapter;
mod addon;
mod application;
mod container;
mod event_sink;
mod extension;
mod job;
mod kube_job;
mod patterns;
mod resource_type;
mod robot;
mod robots;
mod schedule;
pub(crate) mod task;
mod task_group;
mod task_kind;
mod task_template;
mod task_update;

use muster_types::Resource as _;
use muster_types::adapter::AdapterSpec;
use muster_types::addon::AddonSpec;
use muster_types::application::ApplicationSpec;
use muster_types::event_sink::EventSinkSpec;
use muster_types::extension::ExtensionSpec;
use muster_types::job::JobSpec;
use muster_types::kube_job::KubeJobSpec;
use muster_types::names::Names;
use muster_types::resource_type::ResourceTypeSpec;
use muster_types::robot::RobotSpec;
use muster_types::schedule::ScheduleSpec;
use muster_types::task::TaskSpec;
use muster_types::task_group::TaskGroupSpec;
use muster_types::task_kind::TaskKindSpec;
use muster_types::task_template::TaskTemplateSpec;

use crate::access::Ask;
use crate::registry::Registry;

/// The kinds that say where the server writes, what it calls, what it serves and whom it lets in: only admins write them.
pub const INFRASTRUCTURE: [Names; 4] =
    [EventSinkSpec::NAMES, AdapterSpec::NAMES, ResourceTypeSpec::NAMES, RobotSpec::NAMES];

/// True if such a kind, or a part of one, is among what is asked for; `*` asks for all, and kubectl asks for all of that with no group.
pub(crate) fn has_infrastructure(ask: &Ask<'_>) -> bool {
    let plural = ask.resource.split('/').next().unwrap_or_default();
    let is_asked = |asked: &str, name: &str| asked == "*" || asked == name;
    let is_everything = plural == "*" && ask.group.is_empty();
    let is_meant = |names: &Names| is_asked(ask.group, names.group) && is_asked(plural, names.plural);
    is_everything || INFRASTRUCTURE.iter().any(is_meant)
}

/// Every kind of the product.
pub fn registry() -> Registry {
    Registry::default()
        .with::<TaskSpec>()
        .with::<TaskGroupSpec>()
        .with::<JobSpec>()
        .with::<ScheduleSpec>()
        .with::<RobotSpec>()
        .with::<EventSinkSpec>()
        .with::<KubeJobSpec>()
        .with::<TaskTemplateSpec>()
        .with::<TaskKindSpec>()
        .with::<AddonSpec>()
        .with::<ExtensionSpec>()
        .with::<ApplicationSpec>()
        .with::<ResourceTypeSpec>()
        .with::<AdapterSpec>()
}
