//! What happens to tasks: lifecycle, order, rules, selection, rendering, retry and reaping.
//!
//! Is: decisions as pure functions and one in-memory index, the [`board::Board`]. Is not: anything that does I/O, reads a
//! clock or knows a store.
//!
//! Start here: [`lifecycle::transition`] is the contract of states, [`board::Board::plan`] chooses what starts.

#![warn(missing_docs)]

pub mod absent;
pub mod board;
pub mod brief;
pub mod capacity;
pub mod check;
mod explain;
mod group;
pub mod guard;
pub mod kinds;
mod lanes;
pub mod lifecycle;
mod names;
mod no_node;
pub mod places;
pub mod plan;
mod preemption;
pub mod progress;
pub mod quota;
pub mod reap;
pub mod reconcile;
pub mod records;
pub mod recovery;
pub mod render;
pub mod report;
mod rest;
pub mod select;
mod set_back;
pub mod settings;
pub mod stuck;
pub mod trace_context;
pub mod view;
