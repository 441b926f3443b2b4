//! Programs that go on when this one ends, and are ended by their id.
//!
//! An id may be used again after its process ended, so a process is known by its id and the time it began.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::wait_until::wait_until;
use crate::run;

/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// How long one that was killed may take to be gone.
const KILLED: Duration = Duration::from_secs(5);

/// Starts a program in a session of its own, with its output in a file, and writes down which process it is.
pub fn start(command: &Command, log: &Path, record: &Path) -> Result<()> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let errors = output.try_clone().context("cannot share a log")?;
    // Not a leader of a group yet, it becomes the program itself, with the same id.
    let mut detached = Command::new("setsid");
    detached.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => detached.env(name, value),
            None => detached.env_remove(name),
        };
    }
    detached.stdin(Stdio::null()).stdout(output).stderr(errors);
    let shown = command.get_program().display();
    let child = detached.spawn().with_context(|| format!("cannot start {shown}"))?;
    let begun = begun(child.id()).with_context(|| format!("{shown} ended at once"))?;
    fs::write(record, format!("{} {begun}\n", child.id()))
        .with_context(|| format!("cannot write {}", record.display()))
}

pub fn is_running(record: &Path) -> bool {
    running_pid(record).is_some()
}

/// The process that was written down, if it has not ended.
pub fn running_pid(record: &Path) -> Option<u32> {
    let text = fs::read_to_string(record).ok()?;
    let (pid, began) = text.trim().split_once(' ')?;
    let pid = pid.parse().ok()?;
    (begun(pid).as_deref() == Some(began)).then_some(pid)
}

/// Ends the process that was written down, if it has not ended.
pub fn end(record: &Path) {
    for (signal, patience) in [("TERM", GRACE), ("KILL", KILLED)] {
        let Some(pid) = running_pid(record) else { return };
        let kill = run::quietly(Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]));
        if let Err(error) = kill {
            eprintln!("    process {pid} cannot be ended: {error:#}");
        }
        if wait_until(patience, || (!is_running(record)).then_some(())).is_some() {
            return;
        }
    }
}

/// When a process began, unless it has ended: a zombie has.
fn begun(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, also spaces and parentheses.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    (state != "Z" && state != "X").then(|| fields.nth(18).map(String::from))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("xtask-detached-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_detached_program_is_found_by_its_record_and_ended_by_it() {
        let dir = scratch("ended");
        let record = dir.join("record");
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; exec sleep 600"]);
        start(&command, &dir.join("log"), &record).unwrap();
        let said = || fs::read_to_string(dir.join("log")).ok().filter(|text| text == "begun\n");
        assert!(wait_until(GRACE, said).is_some());
        assert!(is_running(&record));
        end(&record);
        assert!(!is_running(&record));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn another_process_with_the_same_id_is_left_alone() {
        let dir = scratch("other");
        let record = dir.join("record");
        fs::write(&record, format!("{} 1\n", std::process::id())).unwrap();
        assert!(!is_running(&record));
        end(&record);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn nothing_runs_without_a_record_that_can_be_read() {
        let dir = scratch("bad");
        for text in ["", "x 1", "1", "99999999 5"] {
            fs::write(dir.join("record"), text).unwrap();
            assert!(!is_running(&dir.join("record")), "{text:?}");
        }
        assert!(!is_running(&dir.join("none")));
        fs::remove_dir_all(dir).unwrap();
    }
}
