//! The whole control plane in one seed: the real engine and core on a fake store, runtime and clock, with faults.
//!
//! Is: [`world::simulate`], [`workflows::simulate_workflows`], [`schedules::simulate`] and [`resources::simulate`], which play one seed and say what
//! went wrong. Is not: a place for rules; it watches from outside, with its own and simpler idea of what must hold.

mod dice;
mod fake_fleet;
mod fake_runtime;
pub mod fleet;
pub mod judge;
pub mod resources;
pub mod schedules;
mod watchers;
pub mod workflows;
pub mod world;
