//! A shepherd as a process of the server: started with a socket for orders, waited for when the socket is closed.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster_exec::SHEPHERD_VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thiserror::Error;
use tokio::net::UnixStream;

use crate::claim::{Claim, ClaimError};

/// How long a shepherd may take to end everything after its socket was closed.
const LAST_WAIT: Duration = Duration::from_secs(20);

/// Why there is no shepherd.
#[derive(Debug, Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("cannot start the shepherd {program}: {source}")]
    Start { program: PathBuf, source: io::Error },
    #[error("cannot talk to the shepherd: {0}")]
    Talk(#[from] io::Error),
}

/// A shepherd that runs, below its warden.
pub(crate) struct ShepherdProcess {
    warden: Child,
}

impl ShepherdProcess {
    /// Starts a shepherd in a work root and answers with the socket to it.
    pub(crate) async fn spawn(
        program: PathBuf,
        arguments: Vec<OsString>,
        root: PathBuf,
        patience: Duration,
    ) -> Result<(Self, UnixStream), SpawnError> {
        let blocking = move || spawn_blocking(&program, &arguments, &root, patience);
        let spawned = tokio::task::spawn_blocking(blocking).await;
        let (warden, socket) = spawned.map_err(io::Error::other)??;
        socket.set_nonblocking(true)?;
        Ok((Self { warden }, UnixStream::from_std(socket)?))
    }

    /// Waits until the shepherd and all that it started are gone. Its socket must be closed.
    pub(crate) async fn wait(self) {
        let waited = tokio::task::spawn_blocking(move || wait_blocking(self.warden)).await;
        if let Err(error) = waited.map_err(io::Error::other).flatten() {
            tracing::error!(%error, "cannot wait for the shepherd");
        }
    }
}

fn wait_blocking(mut warden: Child) -> io::Result<()> {
    let ended = pidfd_open(Pid::from_child(&warden), PidfdFlags::empty())?;
    let timeout = Timespec::try_from(LAST_WAIT).ok();
    let mut fds = [PollFd::new(&ended, PollFlags::IN)];
    if poll(&mut fds, timeout.as_ref())? == 0 {
        tracing::error!("the shepherd does not end; killing it");
        warden.kill()?;
    }
    warden.wait().map(|_| ())
}

fn spawn_blocking(
    program: &Path,
    arguments: &[OsString],
    root: &Path,
    patience: Duration,
) -> Result<(Child, StdStream), SpawnError> {
    let claim = Claim::take(root, patience)?;
    let (ours, theirs) = StdStream::pair()?;
    let name = std::env::args_os().next().unwrap_or_else(|| OsString::from("muster"));
    let warden = Command::new(program)
        .arg0(name)
        .args(arguments)
        .env(SHEPHERD_VARIABLE, "1")
        .stdin(OwnedFd::from(theirs))
        // Not for output: the copy of the lock is held as long as the warden or the shepherd runs.
        .stdout(claim.copy()?)
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|source| SpawnError::Start { program: program.to_path_buf(), source })?;
    claim.record(warden.id())?;
    Ok((warden, ours))
}
