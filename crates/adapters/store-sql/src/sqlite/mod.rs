//! The log in one SQLite file.
//!
//! Guarantees:
//! - What [`Log::append`] acknowledged survives `kill -9` and power loss: write-ahead log, `synchronous=FULL`.
//! - What [`Log::load`] gives is what was appended. Each row carries a checksum, and the header counts the rows and
//!   sums their checksums, so that rows that are damaged, missing or back from the dead are all noticed.
//! - One process at a time, by a lock file beside the database; a file that another program reads or writes is not opened.
//! - A file that is refused is left as it was, to the byte.

mod errors;
mod file;
mod lock;
mod migrations;
mod mover;
#[cfg(test)]
mod tests;
mod wal;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::{Change, Forget, Header, Log, LogError, Revision, Row};
use rusqlite::{Connection, TransactionBehavior};

use crate::checksum::{self, Ledger};
use errors::Words;
use file::Sharing;
use lock::FileLock;
use mover::Mover;

const INSERT: &str =
    "INSERT INTO log (revision, at, resource, path, splice, crc, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const DELETE: &str = "DELETE FROM log WHERE revision = ?1 RETURNING crc";
const SELECT: &str = "SELECT revision, at, resource, path, splice, crc, json FROM log ORDER BY revision";
const SELECT_HEADER: &str = "SELECT revision, compacted, rows, digest, seal FROM header WHERE id = 0";
const UPDATE_HEADER: &str =
    "UPDATE header SET revision = ?1, compacted = ?2, rows = ?3, digest = ?4, seal = ?5 WHERE id = 0";

/// A log in a SQLite database.
#[derive(Debug)]
pub struct SqliteLog {
    path: PathBuf,
    connection: Connection,
    /// From when on the file may be written.
    mover: Option<Mover>,
    ledger: Ledger,
    /// Everything was read and found to be as it was written. Before that the file is not touched.
    trusted: bool,
    words: Words,
    // Last, so that it is given back after the connection is closed.
    _lock: FileLock,
}

impl SqliteLog {
    /// Opens the database at `path`, or makes one if there is none, directories included.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let path = file::prepare(path)?;
        let words = Words::new(&path);
        let lock = FileLock::take(&path)?;
        file::ensure(&path, &words)?;
        wal::check(&file::beside(&path, "-wal"), &words)?;
        let mut connection = file::connect(&path, Sharing::Alone).map_err(|error| words.reading(&error))?;
        let version = file::version(&connection, &words)?;
        migrations::apply(&mut connection, version, migrations::ALL, &words)?;
        let (ledger, mover) = (Ledger::default(), None);
        Ok(Self { path, connection, mover, ledger, trusted: false, words, _lock: lock })
    }

    /// Makes ready for writing. False if there can be no write-ahead log here.
    fn begin(&mut self) -> rusqlite::Result<bool> {
        self.mover = None;
        // The one before keeps others out as long as it is there.
        let before = std::mem::replace(&mut self.connection, Connection::open_in_memory()?);
        before.close().map_err(|(_, error)| error)?;
        self.connection = file::connect(&self.path, Sharing::Shared)?;
        if !file::enter_wal(&self.connection)? {
            return Ok(false);
        }
        self.mover = Some(Mover::start(&self.path, &mut self.connection)?);
        Ok(true)
    }

    fn write(&mut self, changes: &[Arc<Change>], forget: &Forget) -> rusqlite::Result<Ledger> {
        let mut ledger = self.ledger;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for change in changes {
                let row = Row::from(&**change);
                let crc = checksum::of(&row);
                insert.execute((
                    row.revision.0.cast_signed(),
                    row.at.0,
                    row.resource,
                    row.path,
                    row.splice,
                    crc,
                    row.json,
                ))?;
                ledger.add(row.revision, crc);
            }
            let mut delete = transaction.prepare_cached(DELETE)?;
            for revision in &forget.revisions {
                let mut removed = delete.query([revision.0.cast_signed()])?;
                while let Some(row) = removed.next()? {
                    ledger.remove(row.get(0)?);
                }
            }
            ledger.compact(forget.compacted);
            ledger.header.revision = ledger.header.revision.max(forget.given);
            transaction.prepare_cached(UPDATE_HEADER)?.execute((
                ledger.header.revision.0.cast_signed(),
                ledger.header.compacted.0.cast_signed(),
                ledger.rows.cast_signed(),
                ledger.digest.cast_signed(),
                ledger.seal(),
            ))?;
        }
        transaction.commit()?;
        Ok(ledger)
    }

    /// What is on disk is not known any more; closing leaves it to the next start.
    fn distrust(&mut self) {
        self.trusted = false;
        self.mover = None;
        if let Err(error) = file::leave_alone(&self.connection) {
            tracing::warn!(%error, "the database cannot be kept from tidying up");
        }
    }

    fn read_header(&self) -> rusqlite::Result<(Ledger, u32)> {
        self.connection.query_row(SELECT_HEADER, [], |row| {
            let unsigned = |index| row.get(index).map(i64::cast_unsigned);
            let header = Header { revision: Revision(unsigned(0)?), compacted: Revision(unsigned(1)?) };
            let ledger = Ledger { header, rows: unsigned(2)?, digest: unsigned(3)? };
            Ok((ledger, row.get(4)?))
        })
    }

    /// Feeds the rows to `sink` and returns what they amount to.
    fn read_rows(&self, sink: &mut dyn FnMut(Row<'_>)) -> Result<Ledger, LogError> {
        let failed = |error: rusqlite::Error| self.words.reading(&error);
        let mut found = Ledger::default();
        let mut statement = self.connection.prepare(SELECT).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (row, crc) = decode(row).map_err(failed)?;
            if crc != checksum::of(&row) {
                let path = row.path.escape_debug();
                let what = format!("the row of revision {} ({path}) is not what was written", row.revision);
                return Err(self.words.corrupt(&what));
            }
            if row.revision <= found.header.revision {
                return Err(self
                    .words
                    .corrupt(&format!("the row of revision {} is out of order", row.revision)));
            }
            found.add(row.revision, crc);
            sink(row);
        }
        Ok(found)
    }
}

fn decode<'a>(row: &'a rusqlite::Row<'_>) -> rusqlite::Result<(Row<'a>, u32)> {
    let decoded = Row {
        revision: Revision(row.get::<_, i64>(0)?.cast_unsigned()),
        at: Millis(row.get(1)?),
        resource: row.get_ref(2)?.as_str()?,
        path: row.get_ref(3)?.as_str()?,
        splice: row.get(4)?,
        json: row.get_ref(6)?.as_blob_or_null()?,
    };
    Ok((decoded, row.get(5)?))
}

impl Log for SqliteLog {
    fn header(&mut self) -> Result<Header, LogError> {
        let (ledger, seal) = self.read_header().map_err(|error| self.words.reading(&error))?;
        if seal != ledger.seal() {
            return Err(self.words.corrupt("the header is not what was written"));
        }
        self.ledger = ledger;
        Ok(ledger.header)
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        let found = self.read_rows(sink)?;
        let expected = &self.ledger;
        if found.rows != expected.rows {
            let what = format!("it has {} rows, and {} were written", found.rows, expected.rows);
            return Err(self.words.corrupt(&what));
        }
        if found.digest != expected.digest || found.header.revision > expected.header.revision {
            return Err(self.words.corrupt("its rows are not the ones that were written"));
        }
        if !self.begin().map_err(|error| self.words.reading(&error))? {
            let unsupported = io::Error::from(io::ErrorKind::Unsupported);
            return Err(self.words.io("make a write-ahead log for", &unsupported));
        }
        self.trusted = true;
        Ok(())
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        match self.write(changes, forget) {
            Ok(ledger) => {
                self.ledger = ledger;
                if let Some(mover) = &self.mover {
                    mover.committed(&self.connection);
                }
                Ok(())
            }
            Err(error) => {
                let error = self.words.writing(&error, self.connection.is_autocommit());
                if !error.is_refusal() {
                    self.distrust();
                }
                Err(error)
            }
        }
    }
}

impl Drop for SqliteLog {
    fn drop(&mut self) {
        self.mover = None;
        if self.trusted
            && let Err(error) = self.connection.pragma_update(None, "wal_checkpoint", "TRUNCATE")
        {
            tracing::warn!(%error, "the database's write-ahead log stays until the next start");
        }
    }
}
