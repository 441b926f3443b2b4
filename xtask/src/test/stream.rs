//! Following a program's output line by line while it runs, both streams in the order they were written.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// How long output may stay silent after the program ended before we stop listening.
const GRACE: Duration = Duration::from_secs(1);

/// How a followed program ended.
#[derive(Debug, PartialEq)]
pub struct Ended {
    pub success: bool,
    /// Another process still held the output after the program was gone.
    pub left_behind: bool,
}

/// Runs the command, repeats each line to `echo` at once and hands it to `observe`.
///
/// Ends with the program, not with its output: a server that a test forgot to stop must not hang the run.
pub fn follow(command: &mut Command, echo: &mut impl Write, mut observe: impl FnMut(&str)) -> Result<Ended> {
    let (reader, writer) = io::pipe().context("cannot make a pipe")?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().context("cannot share a pipe")?).stderr(writer);
    let spawned = command.spawn();
    // The command keeps the write ends it was given; without them here, the end of output can be seen.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawned.with_context(|| format!("cannot start {}", command.get_program().display()))?;

    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    loop {
        match lines.recv_timeout(GRACE) {
            Ok(line) => {
                echo.write_all(line.as_bytes()).context("cannot repeat the output of the tests")?;
                observe(line.trim_end());
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait().context("cannot wait for the program")?;
                return Ok(Ended { success: status.success(), left_behind: false });
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = child.try_wait().context("cannot wait for the program")? {
                    return Ok(Ended { success: status.success(), left_behind: true });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(script: &str) -> (String, Ended) {
        let (mut echo, mut observed) = (Vec::new(), String::new());
        let mut shell = Command::new("sh");
        let ended =
            follow(shell.args(["-c", script]), &mut echo, |line| observed = format!("{observed}{line}\n"));
        assert_eq!(
            String::from_utf8(echo).unwrap().trim_end(),
            observed.trim_end(),
            "what is seen is also shown"
        );
        (observed, ended.unwrap())
    }

    #[test]
    fn both_streams_arrive_in_the_order_written() {
        let (lines, ended) = followed("echo a; echo b >&2; echo c; printf d; exit 7");
        assert_eq!(lines, "a\nb\nc\nd\n");
        assert_eq!(ended, Ended { success: false, left_behind: false });
    }

    #[test]
    fn a_process_left_behind_is_reported_and_does_not_hang_the_run() {
        let (lines, ended) = followed("sleep 600 & echo $!");
        crate::run::quietly(Command::new("sh").args(["-c", &format!("kill {lines}")])).unwrap();
        assert_eq!(ended, Ended { success: true, left_behind: true });
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(follow(&mut Command::new("/nonexistent/program"), &mut io::sink(), |_| ()).is_err());
    }
}
