//! The bridge: what robots say goes to the store and to the engine, what the engine orders goes to robots.

mod buckets;
mod desk;
mod joining;
mod pulses;

pub(crate) use buckets::Buckets;
pub(crate) use desk::{Desk, Order};
