//! A row as it was read.

use muster_ports::clock::Millis;
use muster_ports::store::{LogError, Revision, Row};
use tokio_postgres::Error;

use super::errors::{Words, tell};
use crate::checksum;

/// A row, checked against its checksum.
pub(super) struct StoredRow {
    pub revision: i64,
    pub crc: u32,
    at: i64,
    resource: String,
    path: String,
    splice: u32,
    json: Option<Vec<u8>>,
}

impl StoredRow {
    /// Reads the seven columns from `first` on: revision, at, resource, path, splice, crc, json.
    pub fn read(row: &tokio_postgres::Row, first: usize, words: &Words) -> Result<Self, LogError> {
        let read = Self::decode(row, first).map_err(|error| words.corrupt(&tell(&error)))?;
        let (found, written) = (checksum::of(&read.as_row()), read.crc);
        if found != written {
            let path = read.path.escape_debug();
            let what = format!("the row of revision {} ({path}) is not what was written", read.revision);
            return Err(words.corrupt(&what));
        }
        Ok(read)
    }

    fn decode(row: &tokio_postgres::Row, first: usize) -> Result<Self, Error> {
        // What does not fit its type cannot have the right checksum either.
        let narrow = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Self {
            revision: row.try_get(first)?,
            at: row.try_get(first + 1)?,
            resource: row.try_get(first + 2)?,
            path: row.try_get(first + 3)?,
            splice: narrow(row.try_get(first + 4)?),
            crc: narrow(row.try_get(first + 5)?),
            json: row.try_get(first + 6)?,
        })
    }

    pub fn as_row(&self) -> Row<'_> {
        Row {
            revision: Revision(self.revision.cast_unsigned()),
            at: Millis(self.at),
            resource: &self.resource,
            path: &self.path,
            splice: self.splice,
            json: self.json.as_deref(),
        }
    }
}
