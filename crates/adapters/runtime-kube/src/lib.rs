//! The runtime that runs attempts as pods of a Kubernetes cluster.
//!
//! Is: one pod per attempt, named after it; one cached watch over all of them; their logs, tailed while they run; and what was
//! seen, as facts. Is not: a scheduler (the board decides what starts) nor a store (whatever it knows can be seen again in the
//! cluster). A pod outlives the server: the next one takes it over by its name.
//!
//! Start here: [`KubeRuntime`]. What a pod is made from is in `manifest`, what is read out of one in `pod_view` and
//! `ending`, what an error means in `refusal`; all four are pure. `desk` is the one loop that puts them together.

#![warn(missing_docs)]

mod attempt;
mod cluster;
mod connect;
mod creation_queue;
mod desk;
mod ending;
mod live_logs;
mod log_store;
mod manifest;
mod pause;
mod pod;
mod pod_view;
mod refusal;
mod runtime;
mod settings;
mod snapshot;
mod tail;
mod watch;

pub use connect::{ConnectError, connect};
pub use live_logs::PodLogs;
pub use manifest::POD_FIELDS;
pub use runtime::KubeRuntime;
pub use settings::PodSettings;
