//! Work that makes work: schedules and what triggers them.
//!
//! Is: decisions as pure functions. Is not: anything that does I/O, reads a clock or knows a store.
//!
//! Start here: [`time_spec::TimeSpec`] says when.

#![warn(missing_docs)]

mod cron;
pub mod time_spec;
