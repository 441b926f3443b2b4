//! Everything that needs a kubelet.

mod bad_input;
mod edited;
mod endings;
mod manifests;
mod outage;
mod queue;
mod restarts;
mod sidecars;
mod stuck;
mod upkeep;
