//! Tests that need the whole product: stock Kubernetes clients, and clients that mean no good, against a real server.
//!
//! Is: a [`server::Server`] to start, a [`client_tool::ClientTool`] to drive, and a deadline to wait by.
//! Is not: a place for assertions about the product; those are in `tests/`.
//!
//! Start here: [`kubectl::Kubectl::current`] gives a kubectl in a namespace of its own.

pub mod agent;
pub mod brokers;
pub mod browser;
pub mod client_tool;
pub mod cluster;
pub mod databases;
pub mod guide;
pub mod http;
pub mod installation;
pub mod kubectl;
pub mod lines;
pub mod load;
pub mod object_storage;
pub mod outage;
pub mod round_robin;
pub mod server;
pub mod terminal;
pub mod wait;
