//! Work that makes work: schedules and what triggers them.
//!
//! Is: decisions as pure functions. Is not: anything that does I/O, reads a clock or knows a store.
//!
//! Start here: [`time_spec::TimeSpec`] says when, [`schedule::plan_schedule`] decides what is made.

#![warn(missing_docs)]

mod cron;
mod mix;
pub mod schedule;
pub mod schedule_history;
pub mod schedule_run;
pub mod time_spec;
pub mod trigger;
