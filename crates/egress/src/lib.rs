//! Where the server may connect to on behalf of objects that users write: URLs of adapters and of event sinks.
//!
//! Is: [`EgressPolicy`], a pure decision over a host, a port and a resolved address, and [`EgressPolicy::connect`], which
//! resolves a host once and connects to the addresses the policy allows, and to no others. Is not: a rule for what the flags of the
//! server name (object storage, databases, brokers of robots, collectors of traces).
//!
//! Invariant: the address that is judged is the address that is connected to, so an answer of DNS that changes in between has no effect.

#![warn(missing_docs)]

mod address_class;
mod connect;
mod egress_policy;
mod egress_rule;
mod ip_range;

pub use connect::EgressError;
pub use egress_policy::{Denial, EgressPolicy};
pub use egress_rule::{BadRule, EgressRule};
