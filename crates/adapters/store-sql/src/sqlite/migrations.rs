//! The schema, as numbered steps from nothing to the newest.
//!
//! A database says in `PRAGMA user_version` which step it has seen last. Each further step happens in a transaction
//! of its own, together with its number. Steps are never edited once released: add the next one.

use muster_ports::store::LogError;
use rusqlite::{Connection, TransactionBehavior};

use super::errors::Words;

/// One step.
pub(super) struct Migration {
    /// The version a database has afterwards.
    pub version: i64,
    /// How it gets there.
    pub sql: &'static str,
}

/// All steps, in order.
pub(super) const ALL: &[Migration] = &[Migration {
    version: 1,
    // Beside the JSON a row is small and starts with what is read without it, so that removing a row needs no more
    // than its head. The seal is the checksum of an empty header.
    sql: "
        CREATE TABLE log (
            revision INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            resource TEXT NOT NULL,
            path TEXT NOT NULL,
            splice INTEGER NOT NULL,
            crc INTEGER NOT NULL,
            json BLOB
        ) STRICT;
        CREATE TABLE header (
            id INTEGER PRIMARY KEY CHECK (id = 0),
            revision INTEGER NOT NULL,
            compacted INTEGER NOT NULL,
            rows INTEGER NOT NULL,
            digest INTEGER NOT NULL,
            seal INTEGER NOT NULL
        ) STRICT;
        INSERT INTO header (id, revision, compacted, rows, digest, seal) VALUES (0, 0, 0, 0, 0, 420107693);
    ",
}];

/// Takes a database of version `from` to the newest, step by step. What a step before a failing one did, stays.
pub(super) fn apply(
    connection: &mut Connection,
    from: i64,
    migrations: &[Migration],
    words: &Words,
) -> Result<(), LogError> {
    let newest = migrations.last().map_or(0, |migration| migration.version);
    if from > newest {
        return Err(words.too_new(from, newest));
    }
    for migration in migrations.iter().filter(|migration| migration.version > from) {
        step(connection, migration)
            .map_err(|error| words.io(&format!("bring to schema version {}", migration.version), &error))?;
    }
    Ok(())
}

fn step(connection: &mut Connection, migration: &Migration) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(migration.sql)?;
    transaction.pragma_update(None, "user_version", migration.version)?;
    transaction.commit()
}

/// The version a database has.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
