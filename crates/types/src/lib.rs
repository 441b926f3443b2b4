//! The nouns of Muster: kinds, metadata, conditions, and the small languages inside them.
//!
//! Is: plain values that decode from and encode to the JSON users write, with their schemas.
//! Is not: a place for decisions. Nothing here does I/O, reads a clock or knows a store.
//!
//! Start here: [`Object`] is what every kind looks like, [`Resource`] is what makes a type a kind, and
//! [`task`] is the kind everything else turns around.

#![warn(missing_docs)]

#[macro_use]
pub mod json_text;
#[macro_use]
mod words;
#[macro_use]
pub mod task_group;

mod counted;
mod decode_text;

pub mod adapter;
pub mod adapter_action;
pub mod adapter_report;
pub mod adapter_standing;
pub mod addon;
pub mod application;
pub mod attempt;
pub mod condition;
pub mod container;
pub mod duration;
pub mod event_sink;
pub mod event_sink_status;
pub mod explanation;
pub mod extension;
pub mod field_selector;
mod human_duration;
pub mod image_launch;
pub mod job;
pub mod kube_job;
pub mod kube_job_view;
pub mod kube_pod_view;
pub mod label_selector;
pub mod managed_resource;
pub mod message;
pub mod metadata;
mod millis;
pub mod name_rules;
pub mod names;
pub mod object;
pub mod placement;
pub mod pod_launch;
pub mod quantity;
pub mod recovery;
pub mod resource_type;
pub mod robot;
pub mod robot_launch;
pub mod robot_status;
pub mod schedule;
pub mod schedule_status;
pub mod schema;
pub mod strict;
pub mod task;
pub mod task_kind;
pub mod task_status;
pub mod task_template;
pub mod timestamp;
pub mod work_state;

pub use adapter::Adapter;
pub use adapter_report::AdapterReport;
pub use adapter_standing::AdapterStanding;
pub use addon::Addon;
pub use application::Application;
pub use condition::Condition;
pub use counted::counted;
pub use duration::Duration;
pub use event_sink::EventSink;
pub use event_sink_status::EventSinkStatus;
pub use extension::Extension;
pub use field_selector::FieldSelector;
pub use human_duration::{human_duration, human_millis};
pub use job::Job;
pub use json_text::JsonText;
pub use kube_job::KubeJob;
pub use kube_job_view::{KubeJobEnd, KubeJobView};
pub use kube_pod_view::KubePodView;
pub use label_selector::LabelSelector;
pub use managed_resource::{ManagedResource, ManagedStatus};
pub use message::Message;
pub use metadata::{Metadata, OwnerReference};
pub use millis::Millis;
pub use names::{Names, Scope};
pub use object::{NoStatus, Object, Resource};
pub use quantity::Quantity;
pub use resource_type::ResourceType;
pub use robot::Robot;
pub use schedule::Schedule;
pub use schedule_status::ScheduleStatus;
pub use task::{Task, TaskSpec};
pub use task_group::TaskGroup;
pub use task_kind::TaskKind;
pub use task_status::{State, TaskStatus};
pub use task_template::TaskTemplate;
pub use timestamp::{MicroTimestamp, MilliTimestamp, Timestamp};
pub use words::UnknownWord;
pub use work_state::{Counts, WorkState};
