//! Starts programs within control groups.
//!
//! Whatever a process needs is counted where it is, and what is above a limit is killed there. So the shepherd never goes into the
//! group of an attempt: it starts itself once more, as a launcher, which is told on its input what to become, goes into the group and
//! becomes it. A limit that is too small for any program ends that program alone.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cgroup::enter;
use crate::frame::{Decoder, encode};
use crate::spawn::Program;
use crate::warden::{self, LAUNCHES, SHEPHERD_VARIABLE};

/// A launcher that has not become a program after so long never will.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a launcher is to become, and where.
#[derive(Debug, Serialize, Deserialize)]
struct Order<'a> {
    /// The control groups it goes into, one in each hierarchy.
    groups: Vec<PathBuf>,
    program: Program<'a>,
}

/// What went wrong. Nothing is said by one that became what it should.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    /// It was in its groups already.
    entered: bool,
    errno: Option<i32>,
    message: String,
}

/// Why a launcher did not become a program.
#[derive(Debug)]
pub(crate) enum LaunchError {
    NotEntered(io::Error),
    NotRun(io::Error),
}

/// A launcher, and the side of its input from which it is told what to become.
pub(crate) fn launcher() -> io::Result<(Command, UnixStream)> {
    let (ours, its) = UnixStream::pair()?;
    for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
        set(&ours, Some(PATIENCE))?;
    }
    let mut command = warden::this_program();
    command.env_clear().env(SHEPHERD_VARIABLE, LAUNCHES).stdin(OwnedFd::from(its));
    Ok((command, ours))
}

/// Tells a launcher what to become, and waits until it has.
pub(crate) fn instruct(
    mut launcher: UnixStream,
    groups: Vec<PathBuf>,
    program: Program<'_>,
) -> Result<(), LaunchError> {
    let tell = || {
        let mut message = Vec::new();
        encode(&Order { groups, program }, &mut message).map_err(io::Error::other)?;
        // One that has ended is not told, and its last words are read all the same.
        launcher.write_all(&message).and_then(|()| launcher.shutdown(Shutdown::Write)).ok();
        let mut answer = Vec::new();
        launcher.read_to_end(&mut answer)?;
        read_one::<Failure>(&answer)
    };
    match tell().map_err(LaunchError::NotEntered)? {
        None => Ok(()),
        Some(Failure { entered, errno, message }) => {
            let error = errno.map_or_else(|| io::Error::other(message), io::Error::from_raw_os_error);
            Err(if entered { LaunchError::NotRun(error) } else { LaunchError::NotEntered(error) })
        }
    }
}

/// The whole life of a launcher.
pub(crate) fn run() -> ExitCode {
    let Ok(mut socket) = take_over_input() else { return ExitCode::FAILURE };
    let (entered, error) = match become_program(&mut socket) {
        LaunchError::NotEntered(error) => (false, error),
        LaunchError::NotRun(error) => (true, error),
    };
    let failure = Failure { entered, errno: error.raw_os_error(), message: error.to_string() };
    let mut message = Vec::new();
    // If nobody can be told, this ends all the same.
    encode(&failure, &mut message).ok();
    socket.write_all(&message).ok();
    ExitCode::FAILURE
}

/// Takes the socket from the input: no program inherits it, and it is closed when this becomes one.
fn take_over_input() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    warden::close_input()?;
    Ok(socket)
}

/// Returns only if that fails.
fn become_program(socket: &mut UnixStream) -> LaunchError {
    let entered = read_order(socket).and_then(|order| {
        order.groups.iter().try_for_each(|group| enter(group))?;
        Ok(order.program)
    });
    match entered {
        Ok(program) => LaunchError::NotRun(program.command().exec()),
        Err(error) => LaunchError::NotEntered(error),
    }
}

fn read_order(socket: &mut UnixStream) -> io::Result<Order<'static>> {
    let mut message = Vec::new();
    socket.read_to_end(&mut message)?;
    Ok(read_one(&message)?.ok_or(io::ErrorKind::UnexpectedEof)?)
}

fn read_one<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<Option<T>> {
    let mut decoder = Decoder::default();
    decoder.extend(bytes);
    decoder.next_message().map_err(io::Error::other)
}
