//! Why an attempt could not be started, as the runtime contract says it.
//!
//! Whether trying again may help is decided here, once, by [`is_transient`].

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;

use muster_types::attempt::{EXECUTOR_LOST, Launch, LaunchContainer, Observation};
use rustix::io::Errno;

use crate::attempt_dir::DirError;

/// More containers than this are a mistake.
const MAX_CONTAINERS: usize = 256;

/// What stood in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A container has no program to run.
    NoCommand,
    /// A name that cannot name a directory or a log.
    BadName,
    /// An argument or a variable that no program can be given.
    BadEnvironment,
    /// The program, or what should interpret it, is not there.
    CommandNotFound,
    /// The program may not be run, or not as this user.
    NotPermitted,
    /// The user is not there.
    NoSuchUser,
    /// The program that runs images is not there.
    NoDriver,
    /// The program is a file that cannot be run.
    BadExecutable,
    /// More arguments, environment or containers than can be started.
    TooLarge,
    /// The attempt's directory could not be made.
    WorkDirectory,
    /// The machine had no room for another process.
    NoResources,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An attempt that could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartFailure {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    pub(crate) transient: bool,
}

impl StartFailure {
    /// One that no retry will mend.
    pub(crate) fn permanent(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), transient: false }
    }

    /// The attempt's directory could not be made.
    pub(crate) fn of_directory(path: &Path, error: &io::Error) -> Self {
        let message = format!("cannot make the work directory {}: {error}", path.display());
        Self { reason: Reason::WorkDirectory, message, transient: is_transient(error) }
    }

    /// Something the machine needs for a process could not be had.
    pub(crate) fn of_resources(what: &str, error: &io::Error) -> Self {
        let message = format!("cannot {what}: {error}");
        Self { reason: Reason::NoResources, message, transient: is_transient(error) }
    }

    /// `program` was found as `path` but did not start.
    pub(crate) fn of_spawn(program: &str, path: &Path, error: &io::Error) -> Self {
        let shown = path.display();
        match Errno::from_io_error(error) {
            Some(Errno::NOENT) if path.exists() => Self::permanent(
                Reason::CommandNotFound,
                format!("cannot run {shown}: the interpreter or loader it names was not found"),
            ),
            Some(Errno::NOENT | Errno::NOTDIR) => {
                Self::permanent(Reason::CommandNotFound, format!("command not found: {program}"))
            }
            Some(Errno::ACCESS | Errno::PERM) => {
                Self::permanent(Reason::NotPermitted, format!("not permitted to run {shown}"))
            }
            Some(Errno::TOOBIG) => Self::permanent(
                Reason::TooLarge,
                format!("the arguments and the environment of {program} are too large"),
            ),
            Some(Errno::NOEXEC) => Self::permanent(
                Reason::BadExecutable,
                format!("cannot run {shown}: neither a program nor a script with an interpreter line"),
            ),
            _ if is_transient(error) => Self::of_resources(&format!("start {program}"), error),
            _ => Self::permanent(Reason::BadExecutable, format!("cannot run {shown}: {error}")),
        }
    }

    /// As the runtime contract says it.
    pub(crate) fn into_observation(self) -> Observation {
        let Self { reason, message, transient } = self;
        Observation::StartFailed { reason: reason.to_string(), message, transient }
    }
}

/// Why nothing was started.
#[derive(Debug)]
pub(crate) enum Refusal {
    Failed(StartFailure),
    StartedBefore,
}

impl Refusal {
    /// The attempt's directory could not be made.
    pub(crate) fn of_directory(path: &Path, error: DirError) -> Self {
        let error = match error {
            DirError::Exists => return Self::StartedBefore,
            DirError::Io(error) => error,
            other @ (DirError::NotFound | DirError::BadName(_)) => io::Error::other(other),
        };
        Self::Failed(StartFailure::of_directory(path, &error))
    }

    /// As the runtime contract says it.
    pub(crate) fn into_observation(self) -> Observation {
        match self {
            Self::Failed(failure) => failure.into_observation(),
            Self::StartedBefore => Observation::Lost {
                reason: EXECUTOR_LOST.into(),
                message: "it was started before and is not started twice".into(),
            },
        }
    }
}

/// Whether the same thing may work later, because what was missing comes and goes.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::AGAIN
                | Errno::NOMEM
                | Errno::MFILE
                | Errno::NFILE
                | Errno::NOSPC
                | Errno::DQUOT
                | Errno::TXTBSY
                | Errno::INTR
        )
    )
}

/// Refuses what could never be started, before anything is made for it.
pub(crate) fn check(launch: &Launch) -> Result<(), StartFailure> {
    let bad_name = |what: &str, name: &str| {
        let message = format!("`{name}` cannot name {what}: use letters, digits, `-`, `_` and `.`");
        StartFailure::permanent(Reason::BadName, message)
    };
    let handle = launch.handle.to_string();
    if !is_file_name(&handle) {
        return Err(bad_name("an attempt's directory", &handle));
    }
    if launch.containers.is_empty() {
        return Err(StartFailure::permanent(Reason::NoCommand, "the attempt has no containers"));
    }
    if launch.containers.len() > MAX_CONTAINERS {
        let message = format!("the attempt has more than {MAX_CONTAINERS} containers");
        return Err(StartFailure::permanent(Reason::TooLarge, message));
    }
    let mut names = BTreeSet::new();
    for container in &launch.containers {
        let name = container.name.as_str();
        if !is_file_name(name) {
            return Err(bad_name("a container", name));
        }
        if !names.insert(name) {
            return Err(StartFailure::permanent(
                Reason::BadName,
                format!("two containers are named `{name}`"),
            ));
        }
        check_container(container, launch.image.is_some())?;
    }
    if let Some(image) = &launch.image
        && image.containers.len() != launch.containers.len()
    {
        return Err(StartFailure::permanent(Reason::BadName, "each container needs an image of its own"));
    }
    Ok(())
}

fn check_container(container: &LaunchContainer, is_image: bool) -> Result<(), StartFailure> {
    let name = &container.name;
    if !is_image && container.command.first().is_none_or(String::is_empty) {
        return Err(StartFailure::permanent(
            Reason::NoCommand,
            format!("container `{name}` has no command to run"),
        ));
    }
    if let Some(bad) = container.command.iter().find(|argument| argument.contains('\0')) {
        let message = format!("an argument of container `{name}` holds a zero byte: {bad:?}");
        return Err(StartFailure::permanent(Reason::BadEnvironment, message));
    }
    let bad_variable = |(key, value): &&(String, String)| {
        key.is_empty() || key.contains(['=', '\0']) || value.contains('\0')
    };
    if let Some((key, _)) = container.env.iter().find(bad_variable) {
        let message = format!("variable {key:?} of container `{name}` is not one a program can be given");
        return Err(StartFailure::permanent(Reason::BadEnvironment, message));
    }
    Ok(())
}

/// Whether a name is one plain, visible part of a path.
pub(crate) fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=200).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use muster_types::attempt::{Handle, Limits};

    use super::*;

    fn launch(task: &str, containers: &[(&str, &[&str])]) -> Launch {
        let container = |(name, command): &(&str, &[&str])| LaunchContainer {
            name: (*name).into(),
            command: command.iter().map(ToString::to_string).collect(),
            env: vec![],
        };
        Launch {
            handle: Handle { task: task.into(), attempt: 1 },
            containers: containers.iter().map(container).collect(),
            timeout: None,
            kill_timeout: Duration::ZERO,
            priority: 0,
            prefetch: 0,
            limits: Limits::default(),
            pod: None,
            robot: None,
            image: None,
            data: None,
        }
    }

    fn refusal(launch: &Launch) -> Option<Reason> {
        check(launch).err().map(|failure| failure.reason)
    }

    #[test]
    fn what_can_be_started_is_not_refused() {
        assert_eq!(refusal(&launch("a0-b.c_d", &[("main", &["true"]), ("side.car", &["true", ""])])), None);
    }

    #[test]
    fn names_that_leave_their_directory_are_refused() {
        for task in ["", ".hidden", "..", "a/b", "../a", "a\0b", "ä", &"x".repeat(250)] {
            let expected = if task.is_empty() { None } else { Some(Reason::BadName) };
            assert_eq!(refusal(&launch(task, &[("main", &["true"])])), expected, "task {task:?}");
        }
        for name in ["", ".hidden", "a/b", ".."] {
            assert_eq!(refusal(&launch("t", &[(name, &["true"])])), Some(Reason::BadName), "{name:?}");
        }
        assert_eq!(refusal(&launch("t", &[("a", &["true"]), ("a", &["true"])])), Some(Reason::BadName));
    }

    #[test]
    fn containers_without_a_command_are_refused() {
        assert_eq!(refusal(&launch("t", &[])), Some(Reason::NoCommand));
        assert_eq!(refusal(&launch("t", &[("main", &[])])), Some(Reason::NoCommand));
        assert_eq!(refusal(&launch("t", &[("main", &["true"]), ("side", &[""])])), Some(Reason::NoCommand));
    }

    #[test]
    fn what_no_program_can_be_given_is_refused() {
        assert_eq!(refusal(&launch("t", &[("main", &["a", "b\0"])])), Some(Reason::BadEnvironment));
        for (key, value) in [("", "v"), ("a=b", "v"), ("a\0", "v"), ("a", "v\0")] {
            let mut launch = launch("t", &[("main", &["true"])]);
            launch.containers[0].env.push((key.into(), value.into()));
            assert_eq!(refusal(&launch), Some(Reason::BadEnvironment), "{key:?}={value:?}");
        }
    }

    #[test]
    fn only_what_comes_and_goes_is_transient() {
        let failure =
            |errno: Errno| StartFailure::of_spawn("p", Path::new("/no/such/p"), &io::Error::from(errno));
        for errno in [Errno::AGAIN, Errno::NOMEM, Errno::MFILE] {
            assert_eq!((failure(errno).reason, failure(errno).transient), (Reason::NoResources, true));
        }
        for (errno, reason) in [
            (Errno::NOENT, Reason::CommandNotFound),
            (Errno::ACCESS, Reason::NotPermitted),
            (Errno::NOEXEC, Reason::BadExecutable),
            (Errno::TOOBIG, Reason::TooLarge),
            (Errno::ISDIR, Reason::BadExecutable),
        ] {
            assert_eq!((failure(errno).reason, failure(errno).transient), (reason, false), "{errno}");
        }
        let full = StartFailure::of_directory(Path::new("/w"), &io::Error::from(Errno::NOSPC));
        assert_eq!((full.reason, full.transient), (Reason::WorkDirectory, true));
        let denied = StartFailure::of_directory(Path::new("/w"), &io::Error::from(Errno::ACCESS));
        assert_eq!((denied.reason, denied.transient), (Reason::WorkDirectory, false));
    }
}
