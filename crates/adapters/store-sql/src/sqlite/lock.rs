//! One process per database: a lock on a file beside it, which the kernel gives back however the process ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use muster_ports::store::LogError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Held while it lives. The file stays: removing it would let two processes hold locks on two files.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock of the database at `path`.
    pub fn take(path: &Path) -> Result<Self, LogError> {
        let lock = lock_path(path);
        let failed = |error: io::Error| LogError::Io(format!("cannot lock {}: {error}", lock.display()));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use(path, &mut file)),
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// `muster.db` is locked by `muster.db.lock`.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn in_use(path: &Path, file: &mut File) -> LogError {
    let directory = path.parent().unwrap_or(path).display();
    let mut text = String::new();
    let holder = match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("another server (process {})", text.trim()),
        _ => "another server".to_owned(),
    };
    LogError::InUse(format!(
        "the directory {directory} is in use by {holder}; stop that one, or choose another directory with --data"
    ))
}
