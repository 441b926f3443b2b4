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

use muster_types::adapter::AdapterSpec;
use muster_types::addon::AddonSpec;
use muster_types::application::ApplicationSpec;
use muster_types::event_sink::EventSinkSpec;
use muster_types::extension::ExtensionSpec;
use muster_types::job::JobSpec;
use muster_types::kube_job::KubeJobSpec;
use muster_types::resource_type::ResourceTypeSpec;
use muster_types::robot::RobotSpec;
use muster_types::schedule::ScheduleSpec;
use muster_types::task::TaskSpec;
use muster_types::task_group::TaskGroupSpec;
use muster_types::task_kind::TaskKindSpec;
use muster_types::task_template::TaskTemplateSpec;

use crate::registry::Registry;

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
