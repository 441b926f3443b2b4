//! What the control plane needs from the outside, as few and coarse contracts.
//!
//! Is: the contracts of store, runtimes, files, publishers and clock, their in-memory fakes, and the conformance suites every adapter passes.
//! Is not: a place for decisions, nor for anything that talks to a disk or a network.
//!
//! Start here: [`store::Store`].

#![warn(missing_docs)]

pub mod blobs;
pub mod clock;
pub mod delegate;
pub mod explain;
pub mod inbox;
pub mod job_archive;
pub mod kube_jobs;
pub mod logs;
pub mod outbound;
pub mod pages;
pub mod publisher;
pub mod rates;
pub mod runtime;
pub mod store;
pub mod telemetry;
pub mod traces;
