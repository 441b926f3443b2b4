//! What a server behind the API server of a Kubernetes cluster asks of that cluster: who its users are, what they may do, how
//! its API server is known, and to be trusted by it.
//!
//! Is: token reviews and access reviews with short memories, and two watches of single objects. Is not: a judge; the roles of
//! the cluster decide, and the API server of Muster acts on it.
//!
//! Start here: [`ClusterDelegate`].

#![warn(missing_docs)]

mod cluster_delegate;
mod memory;
mod own_services;
mod trust;
mod watch_one;

pub use cluster_delegate::ClusterDelegate;
pub use own_services::keep_authority;
pub use trust::watch_trust;
