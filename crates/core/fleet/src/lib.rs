//! Robots: which are there, which works, and which task goes where (seed 003, R7, R10, R11, R16–R18).
//!
//! Is: decisions as pure functions, and one in-memory index of robots and what they hold, the [`fleet::Fleet`]. Is not: anything
//! that speaks to a robot, reads a clock or knows a store.
//!
//! Start here: [`fleet::Fleet::place`] finds a robot for a task, [`liveness::judge`] decides on the phase of a robot.

#![warn(missing_docs)]

pub mod fleet;
pub mod liveness;
mod robot_view;
mod version;
mod wish;

pub use robot_view::{RobotView, Traits};
pub use wish::describe_bad_constraint;
