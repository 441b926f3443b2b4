//! The cycle: observe, index, plan, commit, act.
//!
//! Is: the loop that feeds the board with what is committed, lets the core decide, commits what it decided, and only then
//! tells the runtime. Is not: a place for decisions; those are in `muster-tasks`.
//!
//! Start here: [`engine::Engine::step`] is one whole cycle; [`engine::run`] does it whenever there is a reason.

#![warn(missing_docs)]

mod catalogs;
mod edits;
pub mod engine;
