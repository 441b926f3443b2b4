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
        step(connection, migration).map_err(|error| words.migrating(migration.version, &error))?;
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const STEPS: &[Migration] = &[
        Migration { version: 1, sql: "CREATE TABLE story (word TEXT); INSERT INTO story VALUES ('one');" },
        Migration { version: 2, sql: "INSERT INTO story VALUES ('two');" },
        Migration {
            version: 3,
            sql: "INSERT INTO story VALUES ('three'); DELETE FROM story WHERE word = 'one';",
        },
    ];

    fn story(connection: &Connection) -> Vec<String> {
        let mut statement = connection.prepare("SELECT word FROM story ORDER BY rowid").unwrap();
        let words = statement.query_map([], |row| row.get(0)).unwrap();
        words.map(Result::unwrap).collect()
    }

    fn words() -> Words {
        Words::new(Path::new("/data/muster.db"))
    }

    #[test]
    fn steps_are_numbered_from_one_without_a_gap() {
        let versions: Vec<_> = ALL.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..).take(ALL.len()).collect::<Vec<_>>());
    }

    #[test]
    fn steps_happen_in_order_and_each_one_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        for newest in 1..=3 {
            let from = version(&connection).unwrap();
            apply(&mut connection, from, &STEPS[..newest], &words()).unwrap();
            assert_eq!(version(&connection).unwrap(), i64::try_from(newest).unwrap());
        }
        assert_eq!(story(&connection), ["two", "three"]);
        let mut at_once = Connection::open_in_memory().unwrap();
        apply(&mut at_once, 0, STEPS, &words()).unwrap();
        apply(&mut at_once, 3, STEPS, &words()).unwrap();
        assert_eq!(story(&at_once), ["two", "three"]);
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply(&mut connection, 0, &STEPS[..2], &words()).unwrap();
        let failing = Migration { version: 3, sql: "DELETE FROM story; INSERT INTO elsewhere VALUES (1);" };
        let steps = [Migration { ..STEPS[0] }, Migration { ..STEPS[1] }, failing];
        let error = apply(&mut connection, 2, &steps, &words()).unwrap_err();
        let expected =
            "cannot bring the database /data/muster.db to schema version 3: no such table: elsewhere";
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!((version(&connection).unwrap(), story(&connection).len()), (2, 2));
        apply(&mut connection, 2, STEPS, &words()).unwrap();
        assert_eq!(story(&connection), ["two", "three"]);
    }

    #[test]
    fn a_version_beyond_the_newest_step_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(matches!(apply(&mut connection, 4, STEPS, &words()), Err(LogError::TooNew(_))));
        assert_eq!(version(&connection).unwrap(), 0);
    }
}
