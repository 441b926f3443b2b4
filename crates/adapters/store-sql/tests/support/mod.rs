//! What the tests of the SQLite log share.

#![allow(clippy::unwrap_used, dead_code, reason = "each test uses some of it")]

use std::path::{Path, PathBuf};

use muster_ports::clock::{ManualClock, Millis};
use muster_ports::store::{
    Batch, Draft, Header, History, Key, Log, LogError, Precondition, ResourceName, Revision, Store, Write,
};
use muster_store_sql::SqliteLog;
use tempfile::TempDir;

/// A data directory.
pub struct Directory(TempDir);

impl Directory {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn database(&self) -> PathBuf {
        self.beside("")
    }

    /// The database's file with a suffix.
    pub fn beside(&self, suffix: &str) -> PathBuf {
        self.0.path().join(format!("muster.db{suffix}"))
    }
}

pub fn open(database: &Path) -> Result<Store, LogError> {
    Store::open(SqliteLog::open(database)?, History::default(), ManualClock::default())
}

/// Everything in a log.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents {
    pub header: Header,
    pub rows: Vec<OwnedRow>,
}

/// Revision, time, kind, path, splice and JSON.
pub type OwnedRow = (Revision, Millis, String, String, u32, Option<Vec<u8>>);

/// Reads a log without changing it.
pub fn read(database: &Path) -> Result<Contents, LogError> {
    let mut log = SqliteLog::open(database)?;
    let header = log.header()?;
    let mut rows = Vec::new();
    log.load(&mut |row| {
        let (resource, path) = (row.resource.to_owned(), row.path.to_owned());
        rows.push((row.revision, row.at, resource, path, row.splice, row.json.map(<[u8]>::to_vec)));
    })?;
    Ok(Contents { header, rows })
}

pub fn key(name: &str) -> Key {
    Key::new(&ResourceName::new("tasks.example.dev"), "default", name)
}

pub fn put(name: &str, expect: Precondition) -> Write {
    let text = format!("\",\"name\":\"{name}\",\"padding\":\"{}\"}}", "x".repeat(900));
    Write::Put { key: key(name), expect, draft: Draft::joined("{\"revision\":\"", &text) }
}

pub fn delete(name: &str) -> Write {
    Write::Delete { key: key(name), expect: Precondition::Exists }
}

pub fn create(name: &str) -> Batch {
    Batch::of(put(name, Precondition::Absent))
}

/// Objects of a kilobyte in one batch.
pub fn create_many(name: &str, count: usize) -> Batch {
    let writes = (0..count).map(|number| put(&format!("{name}-{number}"), Precondition::Absent)).collect();
    Batch { checks: Vec::new(), writes }
}

/// Numbers that look random and are the same each time.
pub struct Numbers(pub u64);

impl Numbers {
    /// One of `0..limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
