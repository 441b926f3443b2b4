//! What adapters of managed resources do outside: calls of URLs, manifests applied to a cluster.
//!
//! Is: [`LiveOutbound`], which does each thing it is told once and reports what came of it. Is not: a place for decisions;
//! what an answer means is decided by whoever asked.

#![warn(missing_docs)]

mod cluster;
mod http;
mod live_outbound;

pub use live_outbound::LiveOutbound;
