//! A client of a Muster server, or of a cluster that serves Muster's kinds.
//!
//! Is: choosing a server and credentials ([`access`]), finding resources by the names people use ([`catalog`]), and the
//! requests of the command line ([`client`], [`tasks`], [`follow`], [`tokens`]), with errors that say what to do next
//! ([`error`]). What an addon asks from inside of its attempt has a way of its own ([`addon`]).
//!
//! Is not: output. What is shown, and how, belongs to the program that asks.
//!
//! Start at [`client::Client`]. The transport, TLS and credentials are those of the `kube` crate. Objects are
//! `serde_json::Value`s, so that nothing a server sends is lost on the way to a person.

pub mod access;
pub mod addon;
mod backup;
pub mod catalog;
pub mod client;
pub mod error;
pub mod follow;
mod kube_jobs;
mod query;
pub mod resource;
pub mod tasks;
pub mod tokens;
mod transport;

pub use access::{Access, Sources};
pub use catalog::Catalog;
pub use client::Client;
pub use error::ClientError;
pub use resource::{Resource, Scope};
