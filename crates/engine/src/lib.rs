//! The cycle: observe, index, plan, commit, act.
//!
//! Is: the loop that feeds the board with what is committed, lets the core decide, commits what it decided, and only then
//! tells the runtime. Is not: a place for decisions; those are in `muster-tasks`.
//!
//! Start here: [`engine::Engine::step`] is one whole cycle; [`run::run`] does it whenever there is a reason.

#![warn(missing_docs)]

mod catalogs;
mod due;
mod edits;
pub mod engine;
pub mod files;
pub mod fleet;
mod intake;
pub mod leadership;
mod prefetch;
pub mod questions;
mod read_briefs;
mod readiness;
mod refusals;
pub mod relay;
pub mod resources;
pub mod responder;
pub mod run;
pub mod runtimes;
pub mod saved_jobs;
pub mod schedules;
pub mod settings;
mod start;
mod task_tracer;
mod telemetry;
mod wake;
pub mod workflows;
mod writes;
