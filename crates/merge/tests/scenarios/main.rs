//! Stories of several writers and one object.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in what tests share")]
#![allow(clippy::needless_pass_by_value, reason = "stories read better without & before every json!")]

mod apply;
mod patch;
mod store;
mod track;
