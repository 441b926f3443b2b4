//! What people and scripts read: streams, tables, documents, ages, progress.
//!
//! Rendering is pure; only `streams` and `progress` write.

pub mod age;
pub mod documents;
pub mod progress;
pub mod streams;
pub mod table;
