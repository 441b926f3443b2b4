//! Making, checking and opening the file.
//!
//! A new database is made under another name and renamed when it is whole. So a file under the right name has had
//! its tables from the start, and one that has not is damaged, never new.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use muster_ports::store::LogError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::errors::Words;
use super::migrations;

/// Says that a SQLite file is ours: `MUST`.
const APPLICATION_ID: i64 = 0x4d55_5354;
/// Bytes of a page. A commit writes two pages or more, however small it is: with half the size a lone caller is a
/// tenth faster. But the file is a seventh smaller for objects of a kilobyte, and many callers write half as many pieces.
const PAGE_SIZE: i64 = 8192;
/// What is left of the write-ahead log after it grew in a large transaction.
const WAL_BYTES: i64 = 64 << 20;
/// How long to wait for another program that reads the file.
const BUSY: Duration = Duration::from_secs(1);

/// Makes the directory if it is missing, and the path absolute: SQLite reads some relative ones as addresses.
pub(super) fn prepare(path: &Path) -> Result<PathBuf, LogError> {
    let words = Words::new(path);
    let name =
        path.file_name().ok_or_else(|| words.io("open", &io::Error::from(io::ErrorKind::InvalidInput)))?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let directory = made.and_then(|()| directory.canonicalize());
    Ok(directory.map_err(|error| words.io("make the directory of", &error))?.join(name))
}

/// Makes the database if there is none, and refuses what cannot be one.
pub(super) fn ensure(path: &Path, words: &Words) -> Result<(), LogError> {
    let length = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return create(path, words),
        Err(error) => return Err(words.io("open", &error)),
    };
    if length == 0 {
        return Err(words.corrupt("it is empty"));
    }
    if length < expected_length(path).map_err(|error| words.io("open", &error))? {
        return Err(words.corrupt("its end is missing"));
    }
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(0o600)) {
        tracing::warn!(%error, file = %path.display(), "cannot keep others from reading the database");
    }
    Ok(())
}

/// How long a database says it is. SQLite looks at that only when it needs the pages. With a write-ahead log beside
/// it the file may be shorter. It is opened for writing too: SQLite would do with less, and fail later.
fn expected_length(path: &Path) -> io::Result<u64> {
    // Closed again before SQLite has a lock on it, which closing would give back.
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut start = [0; 32];
    let written_ahead = fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0);
    if written_ahead || file.read_exact(&mut start).is_err() {
        return Ok(0);
    }
    let page_size = u64::from(u16::from_be_bytes([start[16], start[17]]));
    let pages = u64::from(u32::from_be_bytes([start[28], start[29], start[30], start[31]]));
    Ok(page_size * pages)
}

fn create(path: &Path, words: &Words) -> Result<(), LogError> {
    if beside(path, "-wal").exists() {
        return Err(words.corrupt("it is missing, though its write-ahead log is there"));
    }
    let new = beside(path, ".new");
    // What an earlier attempt left behind.
    for suffix in ["", "-wal", "-journal"] {
        match fs::remove_file(beside(&new, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(words.io("make", &error)),
            _ => {}
        }
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    made.map_err(|error| words.io("make", &error))?;
    fill(&new, words)?;
    publish(&new, path).map_err(|error| words.io("make", &error))
}

fn fill(new: &Path, words: &Words) -> Result<(), LogError> {
    let mut connection = connect(new, Sharing::Alone).map_err(|error| words.reading(&error))?;
    let prepared = connection
        .pragma_update(None, "page_size", PAGE_SIZE)
        .and_then(|()| connection.pragma_update(None, "application_id", APPLICATION_ID));
    prepared.map_err(|error| words.reading(&error))?;
    migrations::apply(&mut connection, 0, migrations::ALL, words)?;
    connection.close().map_err(|(_, error)| words.reading(&error))
}

fn publish(new: &Path, path: &Path) -> io::Result<()> {
    File::open(new)?.sync_all()?;
    fs::rename(new, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Who may have the database open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Only this connection. It finds out whether another program is there, and leaves no file of its own.
    Alone,
    /// Further connections of this process.
    Shared,
}

/// A connection that has changed nothing yet, and will not when it is closed.
pub(super) fn connect(path: &Path, sharing: Sharing) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    leave_alone(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    if sharing == Sharing::Alone {
        // Before the first access: then the index of the write-ahead log is private memory, not a file.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Where a plain sync stops at the disk's own memory.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// Closing will not move the write-ahead log to the database.
pub(super) fn leave_alone(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(())
}

/// The schema version of a database that is ours.
pub(super) fn version(connection: &Connection, words: &Words) -> Result<i64, LogError> {
    let id = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i64>(0));
    if id.map_err(|error| words.reading(&error))? != APPLICATION_ID {
        return Err(words.corrupt("it is not marked as a database of this program"));
    }
    let version = migrations::version(connection).map_err(|error| words.reading(&error))?;
    if version < 1 {
        return Err(words.corrupt(&format!("it cannot have schema version {version}")));
    }
    Ok(version)
}

/// From now on commits go to the write-ahead log, which is empty after a clean end. False if there can be none here.
pub(super) fn enter_wal(connection: &Connection) -> rusqlite::Result<bool> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(mode == "wal")
}
