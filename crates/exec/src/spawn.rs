//! Starts one program: its own process group, nothing on its input, its whole output in one pipe.
//!
//! Through `posix_spawn`, which costs the same however large this process is, unless it is for another user. Nothing is run between fork
//! and exec, so there is nothing unsafe here; what has to be done there is done by a [launcher](crate::launcher).

use std::borrow::Cow;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use muster_types::attempt::{Handle, LaunchContainer};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::cgroup::Group;
use crate::launcher::{LaunchError, instruct, launcher};
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
    /// Within which limits, if any.
    pub(crate) group: Option<&'a Group>,
}

/// What a process becomes: nothing of its environment is that of whoever starts it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Program<'a> {
    path: Cow<'a, Path>,
    command: Cow<'a, [String]>,
    env: Cow<'a, [(String, String)]>,
    /// The attempt that its environment names.
    attempt: String,
    account: Option<Account>,
}

impl Program<'_> {
    pub(crate) fn command(&self) -> Command {
        let mut words = self.command.iter();
        let mut command = Command::new(&*self.path);
        command
            .arg0(words.next().map_or("", String::as_str))
            .args(words)
            .env_clear()
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .env(MARK, &self.attempt);
        if let Some(Account { uid, gid }) = self.account {
            // The groups of whoever runs this are left behind with it.
            command.uid(uid).gid(gid);
        }
        command
    }
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
    Place { attempt, work, account, group }: Place<'_>,
    null: &OwnedFd,
) -> Result<Spawned, StartFailure> {
    let Some(word) = container.command.first() else { return Err(no_command()) };
    let resources = |error| StartFailure::of_resources("make a pipe for the output", &error);
    let (output, input) = output_pipe().map_err(|errno| resources(errno.into()))?;
    let program = Program {
        path: path.into(),
        command: container.command.as_slice().into(),
        env: container.env.as_slice().into(),
        attempt: attempt.to_string(),
        account,
    };
    let (mut command, launcher) = if group.is_some() {
        let (mut command, socket) = launcher().map_err(resources)?;
        // It belongs to the attempt before it is its program.
        command.env(MARK, &program.attempt);
        (command, Some(socket))
    } else {
        let mut command = program.command();
        command.stdin(null.try_clone().map_err(resources)?);
        (command, None)
    };
    command
        .current_dir(work)
        .process_group(0)
        .stdout(input.try_clone().map_err(resources)?)
        .stderr(Stdio::from(input));
    let child = command.spawn().map_err(|error| StartFailure::of_spawn(word, path, &error))?;
    // With it goes the launcher's side of the socket, which is then closed when the launcher is the program.
    drop(command);
    let pid = Pid::from_child(&child);
    let instructed = launcher.map_or(Ok(()), |launcher| {
        instruct(launcher, group.map(Group::directories).unwrap_or_default(), program).map_err(|error| {
            match error {
                LaunchError::NotEntered(error) => StartFailure::of_resources(
                    "go into the control group that holds it to its limits",
                    &error,
                ),
                LaunchError::NotRun(error) => StartFailure::of_spawn(word, path, &error),
            }
        })
    });
    instructed.inspect_err(|_| end_at_once(pid))?;
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
