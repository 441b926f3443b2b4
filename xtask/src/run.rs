//! Running other programs: quietly with their output kept for the error, or in the open, with retries for the network.
//!
//! Nothing here reads standard input: every child gets an empty one, so no command can stop to ask.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How often a step that uses the network is tried.
const ATTEMPTS: u32 = 4;
/// Lines of a failed program's output that are worth repeating in its error.
const TAIL: usize = 12;

/// The cargo that runs us, without the variables it set for us alone.
///
/// Build scripts that watch `CARGO_PKG_*` (ring's does) would otherwise run again in every nested build.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        if is_set_by_cargo_run(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn is_set_by_cargo_run(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| {
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    })
}

/// Runs to the end in silence and returns standard output; the error carries the end of what the program said.
pub fn quietly(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{line}`"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = stdout + &String::from_utf8_lossy(&output.stderr);
        bail!("`{line}` failed ({}){}", output.status, tail(&said));
    }
    Ok(stdout)
}

/// Runs to the end with the program's output going where ours goes.
pub fn openly(command: &mut Command) -> Result<()> {
    let line = describe(command);
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Tries a step that depends on the network a few times, waiting longer after each failure.
pub fn retry<T>(what: &str, first_pause: Duration, mut step: impl FnMut() -> Result<T>) -> Result<T> {
    let mut pause = first_pause;
    for attempt in 1..ATTEMPTS {
        match step() {
            Ok(value) => return Ok(value),
            Err(error) => {
                eprintln!("    {what}: attempt {attempt} of {ATTEMPTS} failed, trying again: {error:#}");
                thread::sleep(pause);
                pause *= 2;
            }
        }
    }
    step().with_context(|| format!("{what}: gave up after {ATTEMPTS} attempts"))
}

/// The first executable file of that name in the directories of `PATH`.
pub fn find_in_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| is_executable(path))
}

/// Whether the path is a file that may be run.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The last lines of what a program said, for its error.
pub fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let kept = &lines[lines.len().saturating_sub(TAIL)..];
    kept.iter().flat_map(|line| ["\n      | ", line]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_recovers_is_retried_and_its_value_returned() {
        let mut calls = 0;
        let value = retry("step", Duration::ZERO, || {
            calls += 1;
            if calls == 3 { Ok(calls) } else { Err(anyhow::anyhow!("no network")) }
        });
        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn a_step_that_never_works_gives_up_with_its_last_error() {
        let mut calls = 0;
        let error = retry("step", Duration::ZERO, || -> Result<()> {
            calls += 1;
            bail!("no network")
        })
        .unwrap_err();
        assert_eq!(calls, ATTEMPTS);
        assert_eq!(format!("{error:#}"), "step: gave up after 4 attempts: no network");
    }

    #[test]
    fn a_failed_program_is_quoted_in_its_error() {
        let error = quietly(Command::new("sh").args(["-c", "echo out; echo why >&2; exit 3"])).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("exit status: 3") && text.contains("| out") && text.contains("| why"),
            "{text}"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = quietly(&mut Command::new("/nonexistent/program")).unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot start `/nonexistent/program`"), "{error:#}");
    }

    #[test]
    fn only_executable_files_of_the_path_are_found() {
        assert!(find_in_path("sh").is_some());
        assert!(find_in_path("no-such-program-anywhere").is_none());
        assert!(!is_executable(Path::new("/etc/passwd")), "a file without the x bit is not a program");
        assert!(!is_executable(Path::new("/")), "a directory is not a program");
    }

    #[test]
    fn variables_of_cargo_run_are_told_from_settings() {
        assert!(is_set_by_cargo_run(&"CARGO_PKG_NAME".into()));
        assert!(is_set_by_cargo_run(&"CARGO_MANIFEST_DIR".into()));
        assert!(!is_set_by_cargo_run(&"CARGO_TARGET_DIR".into()));
        assert!(!is_set_by_cargo_run(&"CARGO_HOME".into()));
    }
}
