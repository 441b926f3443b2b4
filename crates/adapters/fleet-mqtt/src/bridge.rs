//! The bridge: what robots say goes to the store and to the engine, what the engine orders goes to robots.

mod bucket;
mod desk;
mod joining;
mod pulses;

pub(crate) use bucket::Bucket;
pub(crate) use desk::{Desk, Order};
