//! Why a file could not be fetched, as the runtime contract says it. Whether trying again may help is decided here.

use std::io;
use std::path::Path;

use muster_types::attempt::Observation;

/// A file that could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchFailure {
    /// CamelCase, for machines.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// True if the same may work later.
    pub transient: bool,
}

impl FetchFailure {
    fn lasting(reason: &'static str, message: String) -> Self {
        Self { reason, message, transient: false }
    }

    /// It is described in a way that makes no sense.
    pub fn bad(message: String) -> Self {
        Self::lasting("BadArtifact", message)
    }

    /// It is not there, or not for us.
    pub fn refused(message: String) -> Self {
        Self::lasting("ArtifactNotFound", message)
    }

    /// It is not what it should be.
    pub fn wrong(message: String) -> Self {
        Self::lasting("ChecksumMismatch", message)
    }

    /// Nobody answered, or the answer broke off again and again.
    pub fn unreachable(message: String) -> Self {
        Self { reason: "ArtifactUnreachable", message, transient: true }
    }

    /// A file of this machine cannot be read.
    pub fn of_file(path: &Path, error: &io::Error) -> Self {
        Self::refused(format!("cannot read {}: {error}", path.display()))
    }

    /// What was fetched cannot be written.
    pub fn of_disk(path: &Path, error: &io::Error) -> Self {
        let message = format!("cannot write {}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self { reason: "DiskFull", message, transient: true }
            }
            _ => Self::lasting("WorkDirectory", message),
        }
    }

    /// As the runtime contract says it.
    pub fn into_observation(self) -> Observation {
        let Self { reason, message, transient } = self;
        Observation::StartFailed { reason: reason.to_owned(), message, transient }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_and_may_have_room_later() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let failure = FetchFailure::of_disk(Path::new("/a"), &full);
        assert_eq!((failure.reason, failure.transient), ("DiskFull", true));
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(!FetchFailure::of_disk(Path::new("/a"), &denied).transient);
    }
}
