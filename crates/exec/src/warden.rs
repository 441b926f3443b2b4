//! Stands above the shepherd so that nothing survives, whichever of the two is killed.
//!
//! The warden is the subreaper of everything the shepherd starts. It waits for the shepherd to end; if that leaves anything
//! behind, because the shepherd was killed, the warden kills it, then ends too. The shepherd in turn ends everything when
//! the warden is gone. If the server is gone and the shepherd does not end by itself, the warden ends it, unless it is to go on.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, getppid, pidfd_open, set_child_subreaper, setsid};

use crate::household::end_descendants;
use crate::when_deserted::WhenDeserted;

/// The variable by which the program that is named as the shepherd knows that it is one. Whoever starts it sets it to
/// [`shepherd_value`]; what the value means is between the warden and the shepherd.
pub const SHEPHERD_VARIABLE: &str = "MUSTER_SHEPHERD";
/// What it is set to where attempts go on without whoever asked for them: the warden then does not wait for its parent to end.
const STAYS: &str = "stays";
const GOES: &str = "goes";
/// What it is set to in one that becomes a program of an attempt.
pub(crate) const LAUNCHES: &str = "launches";

/// What [`SHEPHERD_VARIABLE`] is set to.
pub fn shepherd_value(when_deserted: WhenDeserted) -> &'static str {
    match when_deserted {
        WhenDeserted::End => GOES,
        WhenDeserted::GoOn { .. } => STAYS,
    }
}

/// How long the shepherd may take to end everything once the server is gone.
const SHEPHERD_GRACE: Duration = Duration::from_secs(10);
/// How long what was killed may take to be gone.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// What this process is.
#[derive(Debug)]
pub(crate) enum Role {
    Warden {
        /// Also when whoever started it is gone.
        stays: bool,
    },
    /// The one below, with a descriptor that is readable when the warden is gone; none if it is gone already.
    Shepherd { warden: Option<OwnedFd> },
    /// One that a shepherd started to become a program.
    Launcher,
}

impl Role {
    pub(crate) fn of_this_process() -> Self {
        let value = std::env::var(SHEPHERD_VARIABLE).ok();
        if value.as_deref() == Some(LAUNCHES) {
            return Self::Launcher;
        }
        let Some(warden) = value.as_deref().and_then(|value| value.strip_prefix("below:")) else {
            return Self::Warden { stays: value.as_deref() == Some(STAYS) };
        };
        let parent = getppid().filter(|parent| parent.to_string() == warden);
        let warden = parent.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
        // The number could have been used again between the two calls, unless it is still the parent's.
        Self::Shepherd { warden: warden.filter(|_| getppid() == parent) }
    }
}

/// The whole life of a warden.
pub(crate) fn run(stays: bool) -> ExitCode {
    match guard(stays) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn guard(stays: bool) -> io::Result<()> {
    rustix::thread::set_name(c"muster-warden").ok();
    // Keys pressed on the server's terminal are not for the programs.
    setsid().ok();
    set_child_subreaper(Some(getpid()))?;
    let server = getppid().filter(|_| !stays);
    let server = server.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
    let shepherd = start_shepherd()?;
    // Only the shepherd holds the socket, so that it closes when the shepherd ends.
    close_input()?;
    wait_for_shepherd(shepherd, server)?;
    end_descendants(Instant::now() + LAST_WAIT);
    Ok(())
}

fn start_shepherd() -> io::Result<Child> {
    this_program().env(SHEPHERD_VARIABLE, format!("below:{}", getpid())).stdin(Stdio::inherit()).spawn()
}

/// What this process runs, called as it was called.
pub(crate) fn this_program() -> Command {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| OsString::from("shepherd"));
    // The file, even if it was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).args(arguments);
    command
}

fn wait_for_shepherd(mut shepherd: Child, server: Option<OwnedFd>) -> io::Result<()> {
    let ended = pidfd_open(Pid::from_child(&shepherd), PidfdFlags::empty())?;
    let mut server = server;
    let mut kill_at = None;
    loop {
        let left = kill_at.map(|at: Instant| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            shepherd.kill()?;
            kill_at = None;
        }
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = vec![PollFd::new(&ended, PollFlags::IN)];
        fds.extend(server.as_ref().map(|server| PollFd::new(server, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if fds[0].revents().contains(PollFlags::IN) {
            shepherd.wait()?;
            return Ok(());
        }
        if fds.get(1).is_some_and(|fd| fd.revents().contains(PollFlags::IN)) {
            server = None;
            kill_at = Some(Instant::now() + SHEPHERD_GRACE);
        }
    }
}

/// Puts nothing in place of this process's input.
pub(crate) fn close_input() -> io::Result<()> {
    let null = rustix::fs::openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}
