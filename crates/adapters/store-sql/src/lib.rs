//! Durable logs for the store port, in SQL databases.
//!
//! Is: an implementation of [`muster_ports::store::Log`] per database: load rows, append rows, forget rows.
//! Is not: a place for revisions, preconditions or watches; those are the store's, once for all databases.
//!
//! Start here: [`SqliteLog`], [`PostgresLog`].

#![warn(missing_docs)]

mod checksum;
mod copy;
mod postgres;
mod sqlite;

pub use copy::{Copied, copy};
pub use postgres::{PostgresLog, Target};
pub use sqlite::SqliteLog;
