//! What the server does outside besides tasks and messages: calls of URLs, manifests applied to a cluster, traces sent.
//!
//! Is: [`LiveOutbound`], which does each thing it is told once and reports what came of it, and [`Otlp`], which sends spans. Is not: a place for decisions;
//! what an answer means is decided by whoever asked.

#![warn(missing_docs)]

mod cluster;
mod egress_connector;
mod http;
mod live_outbound;
mod otlp;

pub use live_outbound::LiveOutbound;
pub use otlp::Otlp;
