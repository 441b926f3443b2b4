//! The log in one SQLite file.
//!
//! Guarantees:
//! - What [`Log::append`] acknowledged survives `kill -9` and power loss: write-ahead log, `synchronous=FULL`.
//! - What [`Log::load`] gives is what was appended. Each row carries a checksum, and the header counts the rows and
//!   sums their checksums, so that rows that are damaged, missing or back from the dead are all noticed. Rows that were
//!   only added since the header was written last have no gap between their revisions. None of them is out of the
//!   write-ahead log, which has checksums of its own.
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
const SELECT_LAST: &str = "SELECT max(revision) FROM log";
const UPDATE_HEADER: &str =
    "UPDATE header SET revision = ?1, compacted = ?2, rows = ?3, digest = ?4, seal = ?5 WHERE id = 0";

/// A log in a SQLite database.
#[derive(Debug)]
pub struct SqliteLog {
    path: PathBuf,
    connection: Connection,
    /// From when on the file may be written.
    mover: Option<Mover>,
    /// The schema version of the file.
    version: i64,
    ledger: Ledger,
    /// What the header in the file says, which is all but the rows that were added since.
    noted: Ledger,
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
        let connection = file::connect(&path, Sharing::Alone).map_err(|error| words.reading(&error))?;
        let version = file::version(&connection, &words)?;
        migrations::check(version, migrations::ALL, &words)?;
        let (ledger, noted, mover) = (Ledger::default(), Ledger::default(), None);
        Ok(Self { path, connection, mover, version, ledger, noted, trusted: false, words, _lock: lock })
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

    /// Returns what all rows amount to now, and whether the header says so.
    fn write(&mut self, changes: &[Arc<Change>], forget: &Forget) -> rusqlite::Result<(Ledger, bool)> {
        let mut ledger = self.ledger;
        let notes = !only_adds(&ledger.header, changes, forget) || self.is_to_be_moved(changes);
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
            if notes {
                note(&transaction, &ledger)?;
            }
        }
        transaction.commit()?;
        Ok((ledger, notes))
    }

    /// True if these changes may make the write-ahead log long enough to be moved.
    fn is_to_be_moved(&self, changes: &[Arc<Change>]) -> bool {
        let bytes = changes.iter().map(|change| change.object.json().len()).sum();
        self.mover.as_ref().is_some_and(|mover| mover.is_due_after(bytes))
    }

    /// What is on disk is not known any more; closing leaves it to the next start.
    fn distrust(&mut self) {
        self.trusted = false;
        self.mover = None;
        if let Err(error) = file::leave_alone(&self.connection) {
            tracing::warn!(%error, "the database cannot be kept from tidying up");
        }
    }

    /// The header as it is in the file, its seal, and the last row.
    fn read_header(&self) -> rusqlite::Result<(Ledger, u32, Revision)> {
        let last: Option<i64> = self.connection.query_row(SELECT_LAST, [], |row| row.get(0))?;
        self.connection.query_row(SELECT_HEADER, [], |row| {
            let unsigned = |index| row.get(index).map(i64::cast_unsigned);
            let header = Header { revision: Revision(unsigned(0)?), compacted: Revision(unsigned(1)?) };
            let ledger = Ledger { header, rows: unsigned(2)?, digest: unsigned(3)? };
            Ok((ledger, row.get(4)?, Revision(last.unwrap_or(0).cast_unsigned())))
        })
    }

    /// Feeds the rows to `sink` and returns what those amount to that the header is about, and how many others there are, which
    /// were added later.
    fn read_rows(&self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(Ledger, Ledger), LogError> {
        let failed = |error: rusqlite::Error| self.words.reading(&error);
        let mut noted = Ledger::default();
        let mut added = Ledger { header: self.noted.header, ..Ledger::default() };
        let mut statement = self.connection.prepare(SELECT).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (row, crc) = decode(row).map_err(failed)?;
            if crc != checksum::of(&row) {
                let path = row.path.escape_debug();
                let what = format!("the row of revision {} ({path}) is not what was written", row.revision);
                return Err(self.words.corrupt(&what));
            }
            if row.revision <= noted.header.revision {
                return Err(self
                    .words
                    .corrupt(&format!("the row of revision {} is out of order", row.revision)));
            }
            if row.revision <= self.noted.header.revision {
                noted.add(row.revision, crc);
            } else if row.revision == added.header.revision.next() {
                added.add(row.revision, crc);
            } else {
                let what = format!("the rows before revision {} are missing", row.revision);
                return Err(self.words.corrupt(&what));
            }
            sink(row);
        }
        Ok((noted, added))
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
        let (noted, seal, last) = self.read_header().map_err(|error| self.words.reading(&error))?;
        if seal != noted.seal() {
            return Err(self.words.corrupt("the header is not what was written"));
        }
        self.noted = noted;
        Ok(Header { revision: noted.header.revision.max(last), ..noted.header })
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        let (found, added) = self.read_rows(sink)?;
        let expected = &self.noted;
        if found.rows != expected.rows {
            let what = format!("it has {} rows, and {} were written", found.rows, expected.rows);
            return Err(self.words.corrupt(&what));
        }
        if found.digest != expected.digest {
            return Err(self.words.corrupt("its rows are not the ones that were written"));
        }
        self.ledger = expected.with(&added);
        self.version = migrations::apply(&mut self.connection, self.version, migrations::ALL, &self.words)?;
        if !self.begin().map_err(|error| self.words.reading(&error))? {
            let unsupported = io::Error::from(io::ErrorKind::Unsupported);
            return Err(self.words.io("make a write-ahead log for", &unsupported));
        }
        self.trusted = true;
        Ok(())
    }

    fn append(&mut self, changes: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        match self.write(changes, forget) {
            Ok((ledger, notes)) => {
                self.ledger = ledger;
                if notes {
                    self.noted = ledger;
                }
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
        if !self.trusted {
            return;
        }
        let noted = if self.noted == self.ledger { Ok(()) } else { note(&self.connection, &self.ledger) };
        // What is not in the header stays in the write-ahead log.
        if let Err(error) =
            noted.and_then(|()| self.connection.pragma_update(None, "wal_checkpoint", "TRUNCATE"))
        {
            tracing::warn!(%error, "the database's write-ahead log stays until the next start");
        }
    }
}

/// Writes the header.
fn note(connection: &Connection, ledger: &Ledger) -> rusqlite::Result<()> {
    connection.prepare_cached(UPDATE_HEADER)?.execute((
        ledger.header.revision.0.cast_signed(),
        ledger.header.compacted.0.cast_signed(),
        ledger.rows.cast_signed(),
        ledger.digest.cast_signed(),
        ledger.seal(),
    ))?;
    Ok(())
}

/// True if nothing happens but that rows come, each with the revision behind the one before.
fn only_adds(header: &Header, changes: &[Arc<Change>], forget: &Forget) -> bool {
    let mut last = header.revision;
    let follows = |change: &Arc<Change>| {
        let expected = std::mem::replace(&mut last, change.revision());
        change.revision() == expected.next()
    };
    !changes.is_empty()
        && changes.iter().all(follows)
        && forget.revisions.is_empty()
        && forget.given <= header.revision
}
