//! What can be done with the objects of a kind.

pub mod create;
pub mod create_list;
pub mod delete;
pub mod list;
pub mod patch;
pub mod update;
pub mod watch;
