//! Starts one program: its own process group, nothing on its input, its whole output in one pipe.
//!
//! Through `posix_spawn`, which costs the same however large this process is, unless it is for another user. Nothing is run between fork and exec, so there
//! is nothing unsafe here.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use muster_types::attempt::{Handle, LaunchContainer};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid};

use crate::account::Account;
use crate::program_path::FoundPrograms;
use crate::start_failure::StartFailure;

/// A program that runs. Its number is that of its process group too.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    /// Readable when the program has ended.
    pub(crate) pidfd: OwnedFd,
    /// What it writes to its output and its error output, in the order it does. Does not block.
    pub(crate) output: OwnedFd,
}

/// In the environment of every program and of what it starts: the attempt it belongs to.
const MARK: &str = "MUSTER_ATTEMPT";

/// The mark of what belongs to an attempt, as it stands in an environment.
pub(crate) fn mark_of(attempt: &Handle) -> String {
    format!("{MARK}={attempt}")
}

/// Where a program runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// For which attempt.
    pub(crate) attempt: &'a Handle,
    /// Its directory.
    pub(crate) work: &'a Path,
    /// As whom, if not as whoever runs this.
    pub(crate) account: Option<Account>,
}

/// Starts a container's program, with an input that is at its end.
pub(crate) fn spawn(
    container: &LaunchContainer,
    place: Place<'_>,
    null: &OwnedFd,
    default_path: &str,
    programs: &mut FoundPrograms,
) -> Result<Spawned, StartFailure> {
    match spawn_found(container, place, null, default_path, programs) {
        // It may have been taken away since it was found.
        Err(_) if programs.forget() => spawn_found(container, place, null, default_path, programs),
        spawned => spawned,
    }
}

fn spawn_found(
    container: &LaunchContainer,
    place: Place<'_>,
    null: &OwnedFd,
    default_path: &str,
    programs: &mut FoundPrograms,
) -> Result<Spawned, StartFailure> {
    let path = find(container, place.work, default_path, programs)?;
    spawn_file(container, &path, place, null)
}

/// The file that a container's program is.
pub(crate) fn find(
    container: &LaunchContainer,
    work: &Path,
    default_path: &str,
    programs: &mut FoundPrograms,
) -> Result<PathBuf, StartFailure> {
    let program = container.command.first().ok_or_else(no_command)?;
    let search = container.env.iter().rev().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_str());
    programs.find(program, search.unwrap_or(default_path), work)
}

/// Starts a container's program, which is this file.
pub(crate) fn spawn_file(
    container: &LaunchContainer,
    path: &Path,
    Place { attempt, work, account }: Place<'_>,
    null: &OwnedFd,
) -> Result<Spawned, StartFailure> {
    let [program, arguments @ ..] = container.command.as_slice() else { return Err(no_command()) };
    let resources = |error| StartFailure::of_resources("make a pipe for the output", &error);
    let (output, input) = output_pipe().map_err(|errno| resources(errno.into()))?;
    let mut command = Command::new(path);
    command
        .arg0(program)
        .args(arguments)
        .env_clear()
        .envs(container.env.iter().map(|(key, value)| (key, value)))
        .env(MARK, attempt.to_string())
        .current_dir(work)
        .process_group(0)
        .stdin(null.try_clone().map_err(resources)?)
        .stdout(input.try_clone().map_err(resources)?)
        .stderr(Stdio::from(input));
    if let Some(Account { uid, gid }) = account {
        // The groups of whoever runs this are left behind with it.
        command.uid(uid).gid(gid);
    }
    let child = command.spawn().map_err(|error| StartFailure::of_spawn(program, path, &error))?;
    let pid = Pid::from_child(&child);
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Spawned { pid, pidfd, output }),
        Err(errno) => {
            end_at_once(pid);
            Err(StartFailure::of_resources("follow the process", &errno.into()))
        }
    }
}

fn no_command() -> StartFailure {
    StartFailure::permanent(crate::start_failure::Reason::NoCommand, "no command")
}

/// A pipe of which the reading side does not block and the writing side does.
fn output_pipe() -> Result<(OwnedFd, OwnedFd), rustix::io::Errno> {
    let (output, input) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&output, OFlags::RDONLY | OFlags::NONBLOCK)?;
    Ok((output, input))
}

/// Kills a program that cannot be followed and waits for it.
pub(crate) fn end_at_once(pid: Pid) {
    kill_process_group(pid, Signal::KILL).ok();
    waitpid(Some(pid), WaitOptions::empty()).ok();
}
