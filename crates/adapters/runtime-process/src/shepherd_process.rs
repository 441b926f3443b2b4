//! A shepherd as a process of this machine: started with a socket for orders, or taken over from a master that is gone; waited for when
//! the socket is closed.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command as Program, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use muster_exec::{Command, Decoder, Report, SHEPHERD_VARIABLE, WhenDeserted, encode, knock, shepherd_value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thiserror::Error;
use tokio::net::UnixStream;

use crate::claim::{Claim, ClaimError};
use crate::runtime::Settings;

/// How long a shepherd may take to end everything after its socket was closed.
const LAST_WAIT: Duration = Duration::from_secs(20);
/// Between two looks at a work root that somebody else holds.
const LOOK: Duration = Duration::from_millis(10);

/// Why there is no shepherd.
#[derive(Debug, Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("cannot start the shepherd {program}: {source}")]
    Start { program: PathBuf, source: io::Error },
    #[error(
        "the shepherd {program} ended before it could take orders, with {status}; what it said is in the standard error of this server"
    )]
    Ended { program: PathBuf, status: ExitStatus },
    #[error("cannot talk to the shepherd: {0}")]
    Talk(#[from] io::Error),
}

/// A shepherd that runs, below its warden.
pub(crate) struct ShepherdProcess {
    /// None if another process started it.
    warden: Option<Child>,
    root: PathBuf,
}

/// A shepherd that waits for orders.
pub(crate) struct Met {
    pub(crate) process: ShepherdProcess,
    pub(crate) socket: UnixStream,
    /// Its process id.
    pub(crate) shepherd: u32,
}

impl ShepherdProcess {
    /// Takes over the shepherd of a work root if one goes on there, else starts one.
    pub(crate) async fn meet(settings: Settings) -> Result<Met, SpawnError> {
        let met = tokio::task::spawn_blocking(move || meet(&settings)).await;
        let (process, socket, shepherd) = met.map_err(io::Error::other)??;
        socket.set_nonblocking(true)?;
        Ok(Met { process, socket: UnixStream::from_std(socket)?, shepherd })
    }

    /// Waits until the shepherd and all that it started are gone. Its socket must be closed, and it must have been told to end if it
    /// goes on otherwise.
    pub(crate) async fn wait(self) {
        let waited = tokio::task::spawn_blocking(move || match self.warden {
            Some(warden) => wait_for_child(warden).map(|_| ()),
            None => Claim::wait_for_holder(&self.root, LAST_WAIT).map_err(io::Error::other),
        });
        if let Err(error) = waited.await.map_err(io::Error::other).flatten() {
            tracing::error!(%error, "cannot wait for the shepherd");
        }
    }
}

fn wait_for_child(mut warden: Child) -> io::Result<ExitStatus> {
    let ended = pidfd_open(Pid::from_child(&warden), PidfdFlags::empty())?;
    let timeout = Timespec::try_from(LAST_WAIT).ok();
    let mut fds = [PollFd::new(&ended, PollFlags::IN)];
    if poll(&mut fds, timeout.as_ref())? == 0 {
        tracing::error!("the shepherd does not end; killing it");
        warden.kill()?;
    }
    warden.wait()
}

fn meet(settings: &Settings) -> Result<(ShepherdProcess, StdStream, u32), SpawnError> {
    let root = &settings.executor.work_root;
    let begun = Instant::now();
    loop {
        if let Some(claim) = Claim::try_take(root)? {
            return start(&claim, settings);
        }
        // One that is about to end, or has a master already, does not answer.
        if let WhenDeserted::GoOn { .. } = settings.executor.when_deserted
            && let Ok(mut socket) = knock(root)
            && let Ok(shepherd) = greet(&mut socket, settings)
        {
            return Ok((ShepherdProcess { warden: None, root: root.clone() }, socket, shepherd));
        }
        if begun.elapsed() >= settings.patience {
            return Err(ClaimError::InUse(root.clone()).into());
        }
        std::thread::sleep(LOOK);
    }
}

fn start(claim: &Claim, settings: &Settings) -> Result<(ShepherdProcess, StdStream, u32), SpawnError> {
    let (mut ours, theirs) = StdStream::pair()?;
    let name = std::env::args_os().next().unwrap_or_else(|| OsString::from("muster"));
    let warden = Program::new(&settings.program)
        .arg0(name)
        .args(&settings.arguments)
        .env(SHEPHERD_VARIABLE, shepherd_value(settings.executor.when_deserted))
        .stdin(OwnedFd::from(theirs))
        // Not for output: the copy of the lock is held as long as the warden or the shepherd runs.
        .stdout(claim.copy()?)
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|source| SpawnError::Start { program: settings.program.clone(), source })?;
    claim.record(warden.id())?;
    match greet(&mut ours, settings) {
        Ok(shepherd) => {
            let root = settings.executor.work_root.clone();
            Ok((ShepherdProcess { warden: Some(warden), root }, ours, shepherd))
        }
        Err(error) => {
            drop(ours);
            let status = wait_for_child(warden)?;
            let has_hung_up = matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            );
            Err(if has_hung_up {
                SpawnError::Ended { program: settings.program.clone(), status }
            } else {
                error.into()
            })
        }
    }
}

/// Tells a shepherd how to work and waits for its answer.
fn greet(socket: &mut StdStream, settings: &Settings) -> io::Result<u32> {
    let patience = Some(settings.patience.max(LOOK));
    socket.set_read_timeout(patience)?;
    socket.set_write_timeout(patience)?;
    let mut begin = Vec::new();
    encode(&Command::Begin(settings.executor.clone()), &mut begin).map_err(io::Error::other)?;
    socket.write_all(&begin)?;
    // Byte by byte, so that nothing is taken of what follows.
    let mut decoder = Decoder::default();
    let report = loop {
        if let Some(report) = decoder.next_message().map_err(io::Error::other)? {
            break report;
        }
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        decoder.extend(&byte);
    };
    match report {
        Report::Ready { shepherd } => Ok(shepherd),
        Report::Failed { message } => Err(io::Error::other(message)),
        Report::Notice(_) | Report::Fact(_) => Err(io::Error::other("it does not answer")),
    }
}
