//! Everything that needs a kubelet.

mod bad_input;
mod endings;
mod queue;
mod restarts;
mod sidecars;
mod upkeep;
