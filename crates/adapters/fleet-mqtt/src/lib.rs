//! Robots over MQTT: the words both sides speak, the connection, and the server's side of it (seed 003).
//!
//! Is: a bridge that forwards between a broker and the store, a runtime that hands attempts to it, and the embedded broker. Is
//! not: a place for decisions. It never chooses a robot, never writes a phase, and never writes a task; what it hears of
//! attempts it reports as facts, what it hears of robots it writes down as it was said.
//!
//! Start here: [`messages`] is the protocol, `bridge/reception.rs` hears what robots say of themselves, `bridge/desk.rs` what they
//! say of attempts.

#![warn(missing_docs)]

mod broker_url;
mod connection;
pub mod messages;
mod topics;

#[cfg(feature = "server")]
mod bridge;
#[cfg(feature = "server")]
mod broker;
#[cfg(feature = "server")]
mod credentials;
#[cfg(feature = "server")]
mod link;
#[cfg(feature = "server")]
mod live_logs;
#[cfg(feature = "server")]
mod log_store;
#[cfg(feature = "server")]
mod runtime;
#[cfg(feature = "server")]
mod tls_front;

pub use broker_url::{BrokerUrl, BrokerUrlError};
pub use connection::{Connection, Event, Login, Will, joining_client, trust_file};
pub use topics::{DEFAULT_PREFIX, Inbound, Topics};

#[cfg(feature = "server")]
pub use bridge::{Reception, ReceptionSettings};
#[cfg(feature = "server")]
pub use broker::{BrokerError, BrokerSettings, EmbeddedBroker};
#[cfg(feature = "server")]
pub use credentials::{Credentials, JoinTokens, Taken};
#[cfg(feature = "server")]
pub use link::Link;
#[cfg(feature = "server")]
pub use live_logs::RobotLogs;
#[cfg(feature = "server")]
pub use runtime::{RobotRuntime, RobotSettings};
