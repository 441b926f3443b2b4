//! What others are told about changes, and how it is known what was told (seed 004).
//!
//! Is: the classification of changes into messages, and the window of messages that are not confirmed. Pure.
//! Is not: anything that talks to a broker, or knows what a store is.
//!
//! Start here: [`classify::classify`] makes messages of a change; [`window::Window`] says which may be sent now and up to
//! where everything was told.

#![warn(missing_docs)]

mod cds;
pub mod classify;
mod cloud_event;
pub mod job_board;
pub mod kube_job;
mod managed;
pub mod response;
mod step;
mod task;
pub mod wants;
pub mod window;
mod work;
