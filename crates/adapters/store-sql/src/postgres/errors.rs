//! What went wrong with a database, in words that say what to do about it.

use std::error::Error as _;
use std::io;

use muster_ports::store::LogError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Words about one database.
#[derive(Debug, Clone)]
pub(super) struct Words {
    place: String,
}

impl Words {
    pub fn new(place: &str) -> Self {
        Self { place: place.to_owned() }
    }

    /// It cannot be reached now.
    pub fn away(&self, why: &str) -> LogError {
        LogError::Away(format!("the database {} cannot be used now: {why}", self.place))
    }

    /// It did not answer in time.
    pub fn slow(&self) -> LogError {
        self.away("it does not answer")
    }

    /// It went away while it was asked to write.
    pub fn unknown(&self, why: &str) -> LogError {
        LogError::Unknown(format!("the database {} went away while it was written to: {why}", self.place))
    }

    /// What is stored is not what was written.
    pub fn corrupt(&self, what: &str) -> LogError {
        LogError::Corrupt(format!("the database {} is damaged: {what}; restore it from a backup", self.place))
    }

    /// It is not the database that this server knew.
    pub fn diverged(&self, known: i64, found: i64) -> LogError {
        LogError::Corrupt(format!(
            "the database {} is not the one this server knew: it is at revision {found}, and this server saw revision {known} \
             of another history. It was restored from a backup, or a standby took over that had not seen every write. Start \
             this server again to go on with what the database has; make the standby synchronous to lose nothing",
            self.place
        ))
    }

    /// It was made by a newer server.
    pub fn too_new(&self, version: i32, newest: i32) -> LogError {
        LogError::TooNew(format!(
            "the database {} has schema version {version}, and this server knows versions up to {newest}; nothing was \
             changed. Start the newer server, or restore a backup from before the upgrade",
            self.place
        ))
    }

    /// It belongs to somebody else.
    pub fn of_another(&self, theirs: &str, ours: &str) -> LogError {
        LogError::InUse(format!(
            "the database {} belongs to the installation `{theirs}`, and this server is of `{ours}`; nothing was changed. Give \
             this server a database of its own with --store, or say --installation {theirs} if it is meant to join",
            self.place
        ))
    }

    /// It can never hold what it should.
    pub fn unfit(&self, what: &str) -> LogError {
        LogError::Io(format!("the database {} cannot be used: {what}", self.place))
    }

    /// It refused something before anything was written.
    pub fn refused(&self, error: &Error) -> LogError {
        match error.code() {
            Some(code) if *code == SqlState::DISK_FULL || *code == SqlState::PROGRAM_LIMIT_EXCEEDED => {
                LogError::Full(format!("the database {}: {}; nothing was changed", self.place, tell(error)))
            }
            _ => self.away(&tell(error)),
        }
    }
}

/// An error with everything behind it.
pub(super) fn tell(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint}", error.message());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// True if it is not known whether the statement that failed did something.
pub(super) fn is_uncertain(error: &Error) -> bool {
    match error.code() {
        // The server ends the connection, or the connection itself failed: it may have been in the middle of anything.
        Some(code) => ["57P", "08", "XX"].iter().any(|class| code.code().starts_with(class)),
        None => true,
    }
}

/// True if asking again cannot help until somebody changes something.
pub(super) fn is_final(error: &Error) -> bool {
    let classes = ["28", "3D", "42", "3F"];
    let refused = |code: &SqlState| classes.iter().any(|class| code.code().starts_with(class));
    error.code().is_some_and(refused) || is_mistrusted(error)
}

/// True if the certificate of the server is not one to trust.
fn is_mistrusted(error: &Error) -> bool {
    let is_certificate = |error: &(dyn std::error::Error + 'static)| {
        matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
    };
    let mut source = error.source();
    while let Some(inner) = source {
        // What comes from a stream is wrapped in an error of I/O, which hides it from its sources.
        let wrapped = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if is_certificate(inner) || wrapped.is_some_and(|wrapped| is_certificate(wrapped)) {
            return true;
        }
        source = inner.source();
    }
    false
}
