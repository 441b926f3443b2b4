//! One shepherd at a time per work root, and nothing left over from the one before.
//!
//! The lock on `<work root>/.shepherd` is not held by the server but handed to the shepherd and its warden, so it is free
//! only when both are gone, and with them all they started. The file also says which session they had: should all of them
//! have been killed in one blow, the next server finds what they left behind and ends it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use muster_exec::{ProcessStat, boot_id, processes, stat_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use thiserror::Error;

/// Between two looks at a lock that somebody else holds.
const LOOK: Duration = Duration::from_millis(10);
/// Below the work root: the lock, and who has it.
const RECORD: &str = ".shepherd";
/// How long what was killed may take to be gone.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Why the work root could not be had.
#[derive(Debug, Error)]
pub(crate) enum ClaimError {
    #[error("cannot use the work directory {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "the work directory {0} is in use: another server or agent runs there, or processes of one that ended cannot be killed"
    )]
    InUse(PathBuf),
}

/// The right to run a shepherd in a work root.
#[derive(Debug)]
pub(crate) struct Claim {
    file: File,
}

impl Claim {
    /// Takes the right and ends what an earlier shepherd left behind; none if somebody else has it. Blocks.
    pub(crate) fn try_take(root: &Path) -> Result<Option<Self>, ClaimError> {
        let failed = |source| ClaimError::Io { path: root.to_path_buf(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(failed)?;
        let mut options = File::options();
        // Should the shepherd ever print something, it goes behind the record.
        options.read(true).append(true).create(true).mode(0o600);
        let file = options.open(root.join(RECORD)).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if let Some(record) = Record::read(&file) {
            record.end_survivors(root);
        }
        Ok(Some(Self { file }))
    }

    /// Waits until whoever has the right is gone, and all it started with it; kills it if it takes too long. Blocks.
    pub(crate) fn wait_for_holder(root: &Path, patience: Duration) -> Result<(), ClaimError> {
        let mut kill_at = Some(Instant::now() + patience);
        while Self::try_take(root)?.is_none() {
            if kill_at.is_some_and(|at| at <= Instant::now()) {
                tracing::error!("the shepherd does not end; killing it");
                kill_at = None;
                let file = File::open(root.join(RECORD)).ok();
                // Its shepherd ends everything when the warden is gone.
                drop(file.and_then(|file| Record::read(&file)?.warden()).as_ref().and_then(kill));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Hands the lock to a process: whoever holds the copy holds the right.
    pub(crate) fn copy(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes down which process got it.
    pub(crate) fn record(&self, warden: u32) -> io::Result<()> {
        let Some(record) = Record::of(warden) else { return Ok(()) };
        self.file.set_len(0)?;
        (&self.file).write_all(record.to_line().as_bytes())
    }
}

/// Which session ran here last. Its number is that of the warden.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    boot: String,
    session: i32,
    start_ticks: u64,
}

impl Record {
    fn of(warden: u32) -> Option<Self> {
        let session = i32::try_from(warden).ok()?;
        Some(Self { boot: boot_id()?, session, start_ticks: stat_of(session)?.start_ticks })
    }

    fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; 200];
        let read = file.read_at(&mut bytes, 0).ok()?;
        Self::parse(std::str::from_utf8(&bytes[..read]).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.split(' ');
        let (boot, session, start_ticks) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            boot: boot.into(),
            session: session.parse().ok()?,
            start_ticks: start_ticks.parse().ok()?,
        })
    }

    /// The process whose session it is, if it still runs.
    fn warden(&self) -> Option<ProcessStat> {
        let same_boot = boot_id().as_ref() == Some(&self.boot);
        stat_of(self.session).filter(|stat| same_boot && stat.start_ticks == self.start_ticks)
    }

    fn to_line(&self) -> String {
        format!("{} {} {}\n", self.boot, self.session, self.start_ticks)
    }

    /// Kills what is left of the session and waits until it is gone.
    ///
    /// The number of a session may be used again after its last process ended, so a process must also be at home in the work
    /// root. What left both its session and its directory is not found.
    fn end_survivors(&self, root: &Path) {
        if boot_id().as_ref() != Some(&self.boot) {
            return;
        }
        let mine = |process: &ProcessStat| {
            let in_session = process.session == self.session && process.start_ticks >= self.start_ticks;
            in_session && !process.zombie && is_at_home(process.pid, root)
        };
        let survivors: Vec<_> = processes().filter(mine).collect();
        let killed: Vec<_> = survivors.iter().filter_map(kill).collect();
        if !killed.is_empty() {
            tracing::warn!(count = killed.len(), "ended processes that an earlier server left behind");
        }
        let deadline = Instant::now() + LAST_WAIT;
        for process in &killed {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
            poll(&mut [PollFd::new(process, PollFlags::IN)], left.as_ref()).ok();
        }
    }
}

fn is_at_home(pid: i32, root: &Path) -> bool {
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory.starts_with(root))
}

/// Kills a process if it is still the one that was looked at.
fn kill(process: &ProcessStat) -> Option<rustix::fd::OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
    let same = stat_of(process.pid).is_some_and(|now| now.start_ticks == process.start_ticks);
    (same && pidfd_send_signal(&pidfd, Signal::KILL).is_ok()).then_some(pidfd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(root: &Path) -> Option<Claim> {
        Claim::try_take(root).unwrap()
    }

    #[test]
    fn a_work_root_has_one_claim_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        let claim = take(&root).unwrap();
        assert!(take(&root).is_none());
        let copy = claim.copy().unwrap();
        drop(claim);
        assert!(take(&root).is_none());
        drop(copy);
        assert!(take(&root).is_some());
    }

    #[test]
    fn whoever_has_a_claim_is_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let claim = take(temp.path()).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| Claim::wait_for_holder(temp.path(), Duration::from_mins(1)).is_ok());
            drop(claim);
            assert!(waits.join().unwrap());
        });
        assert!(take(temp.path()).is_some());
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let temp = tempfile::tempdir().unwrap();
        let claim = take(temp.path()).unwrap();
        assert_eq!(Record::read(&claim.file), None);
        claim.record(std::process::id()).unwrap();
        assert_eq!(Record::read(&claim.file), Record::of(std::process::id()));
        for bad in ["", "\n", "boot 1", "boot x 2", "boot 1 x"] {
            assert_eq!(Record::parse(bad), None, "{bad:?}");
        }
    }
}
