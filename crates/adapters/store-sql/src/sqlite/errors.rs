//! What went wrong, in words that say what to do about it.

use std::path::{Path, PathBuf};

use muster_ports::store::LogError;
use rusqlite::{ErrorCode, ffi};

/// Words about one database file.
#[derive(Debug, Clone)]
pub(super) struct Words {
    file: PathBuf,
}

impl Words {
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned() }
    }

    /// The file is not what was written.
    pub fn corrupt(&self, what: &str) -> LogError {
        let file = self.file.display();
        LogError::Corrupt(format!(
            "the database {file} is damaged: {what}; nothing was changed. Restore it from a backup, or save what can \
             be read with: sqlite3 {file} .recover > recovered.sql"
        ))
    }

    /// The file was written by a newer version.
    pub fn too_new(&self, version: i64, newest: i64) -> LogError {
        let file = self.file.display();
        LogError::TooNew(format!(
            "the database {file} has schema version {version}, and this server knows versions up to {newest}; nothing \
             was changed. Start the newer server again, or restore a backup from before the upgrade"
        ))
    }

    /// A step of the schema failed and was undone.
    pub fn migrating(&self, version: i64, error: &rusqlite::Error) -> LogError {
        let file = self.file.display();
        LogError::Io(format!(
            "cannot bring the database {file} to schema version {version}: {error}; that step changed nothing, and the \
             server before this one still opens it"
        ))
    }

    /// A file could not be handled, whatever is in it.
    pub fn io(&self, doing: &str, error: &dyn std::error::Error) -> LogError {
        LogError::Io(format!("cannot {doing} {}: {error}", self.file.display()))
    }

    /// SQLite failed before anything was written. What it cannot make sense of is damage.
    pub fn reading(&self, error: &rusqlite::Error) -> LogError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LogError::InUse(format!(
                "the database {} is open in another program; close that one, or choose another directory with --data",
                self.file.display()
            )),
            Some(ErrorCode::DiskFull) => self.full(error),
            Some(ErrorCode::SystemIoFailure) if is_short_read(error) => self.corrupt("its end is missing"),
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::NoLargeFileSupport,
            ) => self.io("read", error),
            _ => self.corrupt(&error.to_string()),
        }
    }

    /// SQLite failed in a transaction, which was rolled back or not.
    pub fn writing(&self, error: &rusqlite::Error, rolled_back: bool) -> LogError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) if rolled_back => self.full(error),
            Some(ErrorCode::TooBig) if rolled_back => LogError::Full(format!(
                "{}: an object of the change is larger than a database can take",
                self.file.display()
            )),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => self.corrupt(&error.to_string()),
            _ => self.io("write", error),
        }
    }

    fn full(&self, error: &rusqlite::Error) -> LogError {
        LogError::Full(format!(
            "{}: {error}; nothing was changed, make room and try again",
            self.file.display()
        ))
    }
}

/// True if the file ends where a page should be.
fn is_short_read(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHORT_READ)
}
