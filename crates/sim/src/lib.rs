//! The whole control plane in one seed: the real engine and core on a fake store, runtimes and clock, with faults; and a judge
//! who reads what happened.
//!
//! Is: [`world::simulate`], which plays a seed and says which promises were broken in it, and [`judge`], which reads the history
//! of a seed, or of real servers. Is not: a place for rules; the judge has its own and simpler idea of what must hold, and uses
//! nothing of what it judges.

pub mod dice;
mod failing_log;
mod fake_cluster;
mod fake_fleet;
mod fake_runtime;
mod fake_sinks;
pub mod judge;
mod recorder;
pub mod world;
