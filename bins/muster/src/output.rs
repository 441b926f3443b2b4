//! What people and scripts read: streams, tables, documents, ages, progress.
//!
//! Rendering is pure; only `streams`, `progress` and `tally_view` write.

pub mod age;
pub mod documents;
pub mod progress;
pub mod streams;
pub mod table;
pub mod tally;
pub mod tally_view;
